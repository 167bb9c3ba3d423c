"""A trained model behind HTTP: one engine, many clients."""
