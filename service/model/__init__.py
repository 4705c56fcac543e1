"""The object model: typed values, defaults, validation, and conversion of manifests."""
