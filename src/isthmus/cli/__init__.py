"""The command line. Nothing heavy is imported before a command runs.

Nobody imports it. Begin with `main.py`; `commands/` has one file per command or group of commands.
"""
