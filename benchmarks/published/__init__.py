"""Experiments of the papers, one file per paper, and what they share."""
