"""Kernels that fill and read stores: asynchronous reads, checksums, sorting of arcs, look-up of ids.

`graph/` imports them. Begin with `aio.py` for reading and `arc_keys.py` for ingest.
"""
