"""Carries decisions out: sessions, the loop, the executor, traces, results, checkpoints, plans.

Streams, reports and commands import it. Begin with `session.py`, then `execute.py` and `loop.py`.
"""
