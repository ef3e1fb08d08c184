"""Which task comes next: pure decisions."""
