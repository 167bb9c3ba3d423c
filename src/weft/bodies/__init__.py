"""The encoder: its layers, its weights on disk, and where it is found."""
