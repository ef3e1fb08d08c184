"""Near memory: how a budget is split, and what a session keeps near from run to run.

Sessions and passes import it. Begin with `near_memory.py`.
"""
