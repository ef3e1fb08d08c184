"""Graphs that change: batches, answers that are kept current, results of every batch, a log.

Commands and reports import it. Begin with `live.py` and `batch_application.py`, which shows one batch from end to end.
"""
