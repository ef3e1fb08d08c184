"""Carries decisions out: the loop, the pipeline, the memory budget, the trace, the result."""
