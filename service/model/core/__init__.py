"""Types, validation, metadata, and manifests shared by all kinds of objects."""
