"""Modelled GPUs: far memory is an array, and a model of the interconnect counts bytes, requests and seconds.

Only `devices/` imports it. Begin with `link.py`; `figures.py` reads the figures of a device.
"""
