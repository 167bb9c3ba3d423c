"""Modules between the body and a loss: layer selection, poolings and heads."""
