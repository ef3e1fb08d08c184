"""Where programs run: this machine's processor, a modelled GPU, or a GPU of this machine.

Sessions, the loop and streams ask a device and never test which one it is. Begin with `device.py`; `choose.py` finds a
device by its name.
"""
