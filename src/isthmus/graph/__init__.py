"""What is stored: compressed sparse rows in a checked on-disk store, and every way into it."""
