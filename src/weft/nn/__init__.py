"""The body, and what stands between it and a loss: poolings and heads."""
