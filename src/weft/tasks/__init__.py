"""A task: its data, how it is read, what stands on the body, and how it is scored."""
