"""Stored objects of every kind: how they are listed, read, written, patched, and deleted."""

from service.api.resources.objects.routes import object_handlers

__all__ = ["object_handlers"]
