"""Controlled comparisons of recipes: every arm with every seed under equal conditions, and tests of claims."""
