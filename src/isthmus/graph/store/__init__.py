"""The on-disk store: a folder of raw arrays with a manifest and a checksum for every block.

`graph/` imports it, and links read its files. Begin with `store.py` for reading and `writer.py` for writing.
"""
