"""Streams on modelled devices and GPUs: lists are read over a link, and what is read is counted.

`context.py` and maintained programs import it. Begin with `reads.py`.
"""
