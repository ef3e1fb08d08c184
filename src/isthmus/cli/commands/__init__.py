"""The commands, a file for each or for a group of them.

`cli/main.py` imports them when they are called. Begin with `run.py`.
"""
