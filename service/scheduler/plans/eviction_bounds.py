"""How many evictions a stored plan's bounds still allow."""

from service.model.plans.plan import PlanBody


def evictions_left(body: PlanBody) -> int | None:
    """Return how many more pods a plan may evict, or None for any number."""
    most = body.spec.bounds.evictions_max
    return None if most is None else max(most - body.status.evicted, 0)
