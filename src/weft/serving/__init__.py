"""HTTP server for a trained model: one engine, many clients."""
