"""Data health: duplicates, contradictions, outliers and probable label errors (`weft check --audit`)."""
