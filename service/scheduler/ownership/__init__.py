"""Ownership: leases name the worker that decides each cluster's requests; clusters are shared out evenly."""
