"""Pages for people: what a run did, in one self-contained HTML file.

Results and commands load it on demand. Begin with `page.py`.
"""
