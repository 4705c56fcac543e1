"""One module for each part of the API: what its operations do with a request."""
