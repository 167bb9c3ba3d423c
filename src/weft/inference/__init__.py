"""Answers of a trained model: passes, engines, files of any size."""
