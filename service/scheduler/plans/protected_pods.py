"""Which pods a plan's bounds keep on their nodes, whatever its goal."""

from service.model.core.selectors import matches
from service.model.plans.plan import ProtectedPods
from service.model.pods.pod import Pod


def is_protected(pod: Pod, protect: ProtectedPods | None) -> bool:
    """Return whether a pod is on a node and protected; None protects no pods."""
    if protect is None or pod.node_name is None:
        return False
    if protect.priority is not None and pod.priority >= protect.priority:
        return True
    return protect.selector is not None and matches(protect.selector, pod.labels)
