"""Kernels of caches of lists: use counts, the choice of the hottest lists, their places in memory.

`cache/` imports them. Begin with `hot_lists.py`.
"""
