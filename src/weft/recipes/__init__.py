"""Recipes: the type, the shipped ones, `weft init` for your files, and checks before training."""
