"""Graphs that change: batches, answers that are kept current, and results of every batch."""
