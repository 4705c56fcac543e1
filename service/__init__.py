"""Scheduling as a service: Kubernetes affinity, anti-affinity and topology spread."""

from service.runtime import compiled_engine

compiled_engine.install()
