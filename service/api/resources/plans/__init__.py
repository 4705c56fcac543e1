"""Plans: make and commit them, drain nodes, and find repairs."""

from service.api.resources.plans.routes import PLAN_HANDLERS

__all__ = ["PLAN_HANDLERS"]
