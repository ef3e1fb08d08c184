"""Whose edges stay near between iterations."""
