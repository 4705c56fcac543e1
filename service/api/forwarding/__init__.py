"""Requests that go to the worker that decides for their cluster."""
