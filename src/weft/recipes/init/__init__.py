"""`weft init`: inspects a user's files and proposes a recipe that explains every choice.

Choices are inferred from whole columns, never from the first rows only. Each one is explained in a comment of the
recipe. One that a person should confirm is added to `doubts`, which `weft check` and `weft train` repeat.
"""
