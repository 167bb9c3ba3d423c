"""Building blocks that every other room may import."""
