"""Makes large plans on replicas of their own, so that placements do not wait for them."""

from service.scheduler.interleaved_planning.planners import Planners

__all__ = ["Planners"]
