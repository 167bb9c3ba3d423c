"""A search over keys of a recipe, by Optuna: what to try, who tries what, and what it came to."""
