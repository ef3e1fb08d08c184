"""NVIDIA GPUs of this machine: links, caches, frontier and worker in GPU memory.

Only `devices/choose.py` imports it, and only when a GPU is asked for. Begin with `card.py`, then `link.py` and
`worker.py`.
"""
