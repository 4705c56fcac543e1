"""The handlers of operations, in one module for each part of the API."""
