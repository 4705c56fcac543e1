"""Decide each cluster's requests in batches, and commit each batch by compare-and-swap."""
