"""What readers of a stream see: answers by batch, and what each batch has changed.

`batch_application.py` publishes them. Begin with `publication.py`.
"""
