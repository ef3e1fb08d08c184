"""What is computed, apart from how its edges are read: the interface of programs and what they share.

Parts above run programs; nothing here runs one. Begin with `program.py` and `algorithm.py`; `algorithms/` has one
algorithm per file.
"""
