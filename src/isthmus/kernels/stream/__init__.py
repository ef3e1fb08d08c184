"""Kernels that bring answers up to date after a batch: wrong values, core numbers, triangles.

Only `stream/maintain/` imports them. Begin with `correction.py`.
"""
