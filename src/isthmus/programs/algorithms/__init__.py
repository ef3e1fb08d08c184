"""One algorithm per file: its program, its public function with options, its help text and columns.

A file is found by its declaration, so nobody imports it by name. Begin with `bfs.py`, or with `widest_path.py`, the
shortest.
"""
