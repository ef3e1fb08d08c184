"""The rates of a disk: measured once, remembered per file system, guessed before that.

`link/open.py` and the command `calibrate` import it. Begin with `calibration.py`.
"""
