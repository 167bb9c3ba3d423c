"""Recipes: their type, the shipped ones, proposals for one's own files, and checks before training."""
