"""Bulk prediction and embedding for files of any size: in shards, with constant memory, resumable."""

SHARD_ROWS = 4096
"""rows per shard: enough to sort by length, few enough that a crash loses little work"""
