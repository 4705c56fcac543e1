"""What each operation declares, and the OpenAPI document that is made from it."""
