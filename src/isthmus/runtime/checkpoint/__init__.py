"""Checkpoints of runs: written between two iterations, and found again by what the run is.

Sessions import it. Begin with `checkpoint.py`.
"""
