"""Hyperparameter search over recipe keys with Optuna."""
