"""Training: steps, phases, checkpoints and processes."""
