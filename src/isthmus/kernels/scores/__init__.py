"""Kernels of scores that spread along edges: PageRank, Katz, hitting probabilities.

`programs/scores/`, `programs/algorithms/` and `stream/maintain/` import them. Begin with `passes.py`.
"""
