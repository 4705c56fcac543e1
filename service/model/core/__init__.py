"""Types, validation, metadata, and manifests that all kinds of objects share; it knows no kind."""
