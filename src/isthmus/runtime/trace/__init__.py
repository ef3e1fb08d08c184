"""What a run did, iteration by iteration, and what is needed to repeat it.

The loop writes it; results and reports read it. Begin with `trace.py`.
"""
