"""Carries decisions out: sessions, the loop, the executor, the memory budget, traces, results."""
