"""Locks that let one process write at a time, on one machine or on several that share a folder.

Stores, checkpoints and the log of a stream import it. Begin with `lock_file.py`.
"""
