"""Kernels for NVIDIA GPUs, with the same functions of programs that the processor compiles."""
