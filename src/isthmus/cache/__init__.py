"""Which edges stay near between iterations."""
