"""The OpenAPI document, made from what operations declare."""
