"""Programs that are kept current: what a batch makes wrong, and how it is set right.

`batch_application.py` asks them. Begin with `maintained.py`, then `monotone.py`.
"""
