"""Scores that spread along edges, and the bounds on their errors: by sweeps, by deltas, in streams.

PageRank, Katz and hitting probabilities import it, and so do their maintained forms. Begin with `sweeps.py`, then
`deltas.py`.
"""
