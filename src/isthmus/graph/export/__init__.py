"""A graph as something else: a file of another format, an object of another library, a subgraph.

The public functions and the NetworkX backend import it. Begin with `export.py`.
"""
