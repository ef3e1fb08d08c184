"""Kernels for NVIDIA GPUs, as texts that are compiled with the functions of programs.

Only `devices/cuda/` imports them. Begin with `skeleton.py`.
"""
