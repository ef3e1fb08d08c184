"""The write-ahead log of a stream: frames, segments, checkpoints, recovery.

`live.py` imports it. Begin with `logged.py`, then `log_writer.py`.
"""
