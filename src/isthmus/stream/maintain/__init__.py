"""Maintained programs: they find the values that a batch makes wrong, and correct them.

`batch_application.py` calls them. Begin with `maintained.py`, then `monotone.py`.
"""
