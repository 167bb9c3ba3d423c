"""Windows, steps, checkpoints: how a network is trained."""
