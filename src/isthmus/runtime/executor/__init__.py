"""Fetches and runs the units of a schedule, on reader threads and on the members of a team.

The loop imports it. Begin with `executor.py`.
"""
