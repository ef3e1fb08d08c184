"""Which engine brings which partition: pure decisions, arrays in, arrays out.

The loop asks them. Begin with `policy.py`; `recipes/` has one combination of parts per file.
"""
