"""A graph on disk that takes batches: a store, and in memory the arcs added and removed since.

Streams import it. Begin with `overlay_graph.py`, then `overlay.py`.
"""
