"""Batches as users and files give them, checked and put into one form.

`live.py` imports it. Begin with `batch.py`.
"""
