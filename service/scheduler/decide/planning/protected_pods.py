"""Which pods the bounds of a plan leave on their nodes, whatever its goal is."""

from service.model.objects.pods_and_nodes import Pod
from service.model.objects.selectors import matches
from service.scheduler.protocol.plans import Protected


def is_protected(pod: Pod, protect: Protected) -> bool:
    """Whether a pod is on a node and does not leave it."""
    if pod.node_name is None:
        return False
    if protect.priority is not None and pod.priority >= protect.priority:
        return True
    return protect.selector is not None and matches(protect.selector, pod.labels)
