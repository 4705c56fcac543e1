"""The resources of the API: a folder for each, with its routes, schemas, and parsing."""
