"""The registry of kinds, and parsing of manifests of any kind."""
