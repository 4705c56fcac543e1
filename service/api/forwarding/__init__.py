"""Passes requests to the worker that decides the requests of their cluster."""
