"""Honest comparisons: arms x seeds under equal conditions, and what they say about a claim."""
