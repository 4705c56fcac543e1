"""Checks of a cluster's stored objects, recomputed from the objects alone."""

from service.scheduler.verification.object_checks import LoadedObjects

__all__ = ["LoadedObjects"]
