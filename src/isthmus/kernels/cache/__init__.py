"""Kernels of caches of lists: use counts and ranks, places in memory, and lists that move.

`cache/` imports them; kernels for GPUs share their small functions. Begin with `ranking.py`.
"""
