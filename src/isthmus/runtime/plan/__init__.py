"""Without or around a run: estimates beforehand, comparisons of recipes, measurements of links.

The public functions and commands import it. Begin with `plan.py`.
"""
