"""How kernels are compiled, kept on disk and timed, and what they need that Numba lacks: atomics.

Every kernel imports it, and nothing here imports another folder of kernels. Begin with `kernel.py`.
"""
