"""Which unit to fetch or run next: pure decisions.

The executor asks them. Begin with `schedule.py`.
"""
