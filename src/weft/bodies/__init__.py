"""The encoder: layers, weight files and body lookup."""
