"""Kernels of single algorithms, for edges that are near: searches, union-find, triangles, forests.

Only `programs/` and the maintained form of the same algorithm import them. Begin with `traversal.py`.
"""
