"""From edges to a graph: blocks of input edges, vertex numbers for ids, sorting on disk, generators.

The public functions are in `build.py`; readers of formats give it edges. Begin with `ingest.py`.
"""
