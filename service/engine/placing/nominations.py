"""Room reserved on nodes for nominated pending pods and for replacements of moved pods.

As in Kubernetes, a pod has to pass the filters of a node twice: as the node is, and with the pods
of equal or higher priority there that are nominated for it. A moved pod leaves its node before its
replacement arrives; room is reserved for the replacement in the same way. Most clusters have no
reservations, so callers check `Cluster.has_reservations` first, which is free.
"""

from typing import NamedTuple

from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod


class Reservation(NamedTuple):
    """A node, and the pods that room is reserved for; moved pods stand for their replacements."""

    slot: int
    node_name: str
    pods: list[Pod]


def reservations(cluster: Cluster, pod: Pod) -> list[Reservation]:
    """Return the reservations that a pod must respect."""
    key, pods_by_node = (pod.namespace, pod.name), dict[str, list[Pod]]()
    for name, nominated in cluster.nominated.items():
        pods = [p for k, p in nominated.items() if p.priority >= pod.priority and k != key]
        if pods:
            pods_by_node[name] = pods
    for name, moved in cluster.reserved.values():
        if moved.priority >= pod.priority and not replaces(pod, moved):
            pods_by_node.setdefault(name, []).append(moved)
    slots = cluster.nodes.slots
    return [
        Reservation(slots[name], name, pods) for name, pods in pods_by_node.items() if name in slots
    ]


def reserved_node(cluster: Cluster, pod: Pod) -> str | None:
    """Return the node reserved for a pod that replaces a moved one, or None."""
    moved = replaced_by(cluster, pod)
    return None if moved is None else cluster.reserved[moved][0]


def replaced_by(cluster: Cluster, pod: Pod) -> ObjectName | None:
    """Return the moved pod that a pod replaces: the one of its name, or else the first match."""
    own = (pod.namespace, pod.name)
    if own in cluster.reserved:
        return own
    candidates = [key for key, (_, moved) in cluster.reserved.items() if replaces(pod, moved)]
    return min(candidates, default=None)


def replaces(pod: Pod, moved: Pod) -> bool:
    """Return whether a pod replaces a moved one, by its name or its controller.

    Pods without a controller replace those with the same labels and the same spec.
    """
    if pod.namespace != moved.namespace:
        return False
    if pod.name == moved.name:
        return True
    if pod.controller is not None or moved.controller is not None:
        return pod.controller == moved.controller
    return pod.labels == moved.labels and pod.spec == moved.spec


def assume_reservation(cluster: Cluster, reservation: Reservation) -> None:
    """Tentatively place a reservation's pods on its node."""
    for pod in reservation.pods:
        cluster.put_pod(replace(pod, node_name=reservation.node_name))
