"""Compiled loops over plain arrays, a folder for each user of them.

The only package that imports Numba; it knows no type of Isthmus. Every part above may import it. Begin with
`compile/kernel.py`, which says how a kernel is declared, and `loops/skeleton.py`, the loop that every program shares.
"""
