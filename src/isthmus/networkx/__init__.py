"""The NetworkX backend `isthmus`: NetworkX's functions, computed by Isthmus (docs/networkx.md).

NetworkX finds it by entry points; nothing else imports it. Begin with `backend.py`.
"""
