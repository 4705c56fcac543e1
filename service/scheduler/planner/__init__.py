"""Makes large plans on replicas of their own, so that placements do not wait for them."""

from service.scheduler.planner.planner import Planners

__all__ = ["Planners"]
