"""How edges reach a kernel: each engine brings the edges of some partitions near, in its own way.

Policies choose engines by number; devices make them. Begin with `engine.py`; each other file is one engine.
"""
