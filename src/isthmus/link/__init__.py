"""Access to far memory: what a link costs, and the ways to read through it.

Engines, caches and devices import it. Begin with `link.py`; `ssd.py` and `ram.py` are the links of this machine.
"""
