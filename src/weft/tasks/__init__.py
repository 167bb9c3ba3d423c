"""Tasks: data, reading, modules on top of the body, and metrics."""
