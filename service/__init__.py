"""Scheduling as a service: Kubernetes affinity, anti-affinity and topology spread."""

from service import compiled_engine

compiled_engine.install()
