"""How edges reach a kernel: each engine brings the edges of some partitions near, in its own way."""
