"""Which edges stay near between iterations: whole partitions, or the lists of hot vertices.

Devices make caches, and the loop asks them. `cache.py` is the interface. The list cache (`list_cache.py`) holds the
lists that a ranking chooses (`ranking.py`), in one of two layouts (`contiguous.py`, `chunks.py`).
"""
