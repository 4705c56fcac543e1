"""Webhooks: create, change, list, test, and delete them."""

from service.api.resources.webhooks.routes import WEBHOOK_HANDLERS

__all__ = ["WEBHOOK_HANDLERS"]
