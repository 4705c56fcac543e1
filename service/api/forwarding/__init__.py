"""Forward requests to the worker that decides for their cluster."""
