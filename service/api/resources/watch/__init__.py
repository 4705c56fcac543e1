"""Streams of changes and of bindings, as Server-Sent Events or as lines of JSON."""

from service.api.resources.watch.routes import WATCH_HANDLERS

__all__ = ["WATCH_HANDLERS"]
