"""Placements: place, bind, evict, explain, and simulate pods, and find capacity and violations."""

from service.api.resources.placements.routes import PLACEMENT_HANDLERS

__all__ = ["PLACEMENT_HANDLERS"]
