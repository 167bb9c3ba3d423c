"""Inference with a trained model: forward passes, engines, bulk prediction for files of any size."""
