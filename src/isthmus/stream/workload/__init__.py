"""Changes to try a stream with, drawn from a graph or from edges with times.

`isthmus.make_workload` and the command import it. Begin with `make.py`.
"""
