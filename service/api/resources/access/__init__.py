"""Principals, groups, and tokens, and the audit log of what callers did."""

from service.api.resources.access.routes import PRINCIPAL_HANDLERS

__all__ = ["PRINCIPAL_HANDLERS"]
