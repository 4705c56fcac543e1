"""Declares each operation, and makes the OpenAPI document from these declarations."""
