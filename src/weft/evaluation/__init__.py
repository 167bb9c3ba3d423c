"""Scores and their uncertainty."""
