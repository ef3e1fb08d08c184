"""Graphs as they are stored: lists, snapshots, stores, changing graphs, and all ways to fill and to leave them.

The parts above know a graph as a `Snapshot` and nothing else. Begin with `lists.py` and `snapshot.py`; `graph.py` is
the object that users have.
"""
