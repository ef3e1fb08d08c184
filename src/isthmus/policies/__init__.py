"""Which engine brings which partition: pure decisions, arrays in, arrays out."""
