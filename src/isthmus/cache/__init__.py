"""Which edges stay near between iterations: whole partitions, or the lists of hot vertices.

Devices make caches, and the loop asks them. Begin with `cache.py`.
"""
