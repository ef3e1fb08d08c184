"""What is computed: one algorithm per file, written as data where it can be."""
