"""What is wrong with the objects of a cluster, counted anew from the objects alone."""

from service.scheduler.verification.object_checks import LoadedObjects

__all__ = ["LoadedObjects"]
