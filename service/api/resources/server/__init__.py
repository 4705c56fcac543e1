"""The server itself: its health, metrics, browser page, and documentation."""

from service.api.resources.server.routes import SERVER_HANDLERS

__all__ = ["SERVER_HANDLERS"]
