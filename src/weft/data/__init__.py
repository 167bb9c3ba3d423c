"""From files to batches: read, check, tokenize once, lay out in memory."""
