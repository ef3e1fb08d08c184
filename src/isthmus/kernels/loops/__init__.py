"""The loops of every run: over delivered edges, over rows and ranges of lists, over vertices.

Frontier, engines, the executor and maintained programs use them. Begin with `skeleton.py`.
"""
