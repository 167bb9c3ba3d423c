"""Looks into a user's files and proposes a recipe, every choice explained.

Guesses are made from whole columns, never from the first rows. Each one is written into the recipe as a comment, and
one that a person should confirm as a doubt, which `weft check` and `weft train` repeat.
"""
