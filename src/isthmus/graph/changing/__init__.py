"""A graph in memory that takes batches: packed lists with gaps behind them, and ids that come and go.

Streams and `graph/overlay/` import it. Begin with `advancing.py`, then `changing_graph.py`.
"""
