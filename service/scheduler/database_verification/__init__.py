"""What is wrong with the objects of a cluster, counted anew from the objects alone."""

from service.scheduler.database_verification.checks_of_loaded_objects import LoadedObjects

__all__ = ["LoadedObjects"]
