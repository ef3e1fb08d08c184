"""Kernels that parse text and streams of bits: edge lists, numbers, WebGraph's codes.

`graph/formats/` and `graph/reading/` import them. Begin with `edge_text.py`.
"""
