"""Parses the input of commands: manifests, durations, selectors, and settings."""
