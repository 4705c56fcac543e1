"""What objects mean: typed values, defaults, validation, and manifests to objects and back."""
