"""Data loading: read and check files, tokenize them once and build batches."""
