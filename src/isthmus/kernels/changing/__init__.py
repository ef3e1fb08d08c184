"""Kernels of graphs that change: packed lists with gaps, overlays of changes, the search for edges.

`graph/changing/` and `graph/overlay/` import them. Begin with `packed_array.py`.
"""
