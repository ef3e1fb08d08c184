"""Results: columns by vertex, edge or input, as mappings, tables and files.

Sessions make them. Begin with `result.py`.
"""
