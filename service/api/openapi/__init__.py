"""The OpenAPI document, generated from the declared operations."""
