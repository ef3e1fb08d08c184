"""The NetworkX backend `isthmus`: NetworkX's functions, computed by Isthmus (docs/networkx.md)."""
