"""The server itself: its health, its metrics, its page, and its documentation."""

from service.api.resources.server.routes import SERVER_HANDLERS

__all__ = ["SERVER_HANDLERS"]
