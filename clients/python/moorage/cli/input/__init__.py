"""What commands are given: manifests, durations, selectors, and settings."""
