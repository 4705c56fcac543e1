"""Placements of pods: place, bind, evict, explain, simulate, and find capacity and violations."""

from service.api.resources.placements.routes import PLACEMENT_HANDLERS

__all__ = ["PLACEMENT_HANDLERS"]
