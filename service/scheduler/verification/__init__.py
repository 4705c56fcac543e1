"""What is wrong with the objects of a cluster, counted anew from the objects alone."""

from service.scheduler.verification.loaded_objects import LoadedObjects

__all__ = ["LoadedObjects"]
