"""Graph storage: compressed sparse rows in an on-disk store with checksums, and all ways to fill it."""
