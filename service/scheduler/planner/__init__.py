"""Makes large plans on separate replicas, so that placements need not wait."""

from service.scheduler.planner.planner import Planners

__all__ = ["Planners"]
