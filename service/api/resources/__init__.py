"""The resources of the API: one folder each, with its routes, schemas, and parsing."""
