"""Plans of several steps: make, commit, drain, and repair."""

from service.api.resources.plans.routes import PLAN_HANDLERS

__all__ = ["PLAN_HANDLERS"]
