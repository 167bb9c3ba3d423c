"""Answers and vectors for files of any size: in shards, in constant memory, going on where they stopped."""

SHARD_ROWS = 4096
"""rows that are answered together: enough to sort by length, few enough that a crash costs little"""
