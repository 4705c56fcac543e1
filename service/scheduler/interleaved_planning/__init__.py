"""Makes large plans on replicas of their own, so that placements do not wait for them."""

from service.scheduler.interleaved_planning.past_explanations import PastExplanation
from service.scheduler.interleaved_planning.planners import Planner, Planners

__all__ = ["PastExplanation", "Planner", "Planners"]
