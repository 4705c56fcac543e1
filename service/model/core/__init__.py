"""What all kinds of objects rest on: primitive types, validation, names, metadata, and manifests."""
