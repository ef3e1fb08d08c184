"""Compiled loops over plain arrays. The only package that imports Numba; it knows no Isthmus type."""
