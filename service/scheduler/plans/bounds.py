"""What the bounds of a stored plan allow: the evictions left, and the pods that may not be moved."""

from service.model.core.selectors import matches
from service.model.plans.plan import PlanBody, ProtectedPods
from service.model.pods.pod import Pod


def evictions_left(body: PlanBody) -> int | None:
    """Return how many more pods a plan may evict, or None for any number."""
    most = body.spec.bounds.evictions_max
    return None if most is None else max(most - body.status.evicted, 0)


def is_protected(pod: Pod, protect: ProtectedPods | None) -> bool:
    """Return whether a pod is on a node and protected; None protects no pods."""
    if protect is None or pod.node_name is None:
        return False
    if protect.priority is not None and pod.priority >= protect.priority:
        return True
    return protect.selector is not None and matches(protect.selector, pod.labels)
