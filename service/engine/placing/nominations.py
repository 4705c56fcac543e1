"""Room that is kept on nodes: for pending pods that are nominated for them, and for moves.

As in Kubernetes, a pod passes the filters of a node only if it passes them twice: as the node is,
and with the pods of equal or higher priority there that are nominated for it. A pod that is moved
leaves its node before another one comes in its place; room is kept for that one in the same way.
Most clusters keep no room, so callers ask `Cluster.has_reservations` first, which costs them nothing.
"""

from typing import NamedTuple

from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod


class Reservation(NamedTuple):
    """One node, and the pods for which room is kept on it; in place of those that move, others come."""

    slot: int
    node_name: str
    pods: list[Pod]


def reservations(cluster: Cluster, pod: Pod) -> list[Reservation]:
    """Return the nodes on which a pod finds room only beside pods that are nominated for them."""
    key, kept = (pod.namespace, pod.name), dict[str, list[Pod]]()
    for name, nominated in cluster.nominated.items():
        pods = [p for k, p in nominated.items() if p.priority >= pod.priority and k != key]
        if pods:
            kept[name] = pods
    for name, moved in cluster.reserved.values():
        if moved.priority >= pod.priority and not replaces(pod, moved):
            kept.setdefault(name, []).append(moved)
    slots = cluster.nodes.slots
    return [Reservation(slots[name], name, pods) for name, pods in kept.items() if name in slots]


def reserved_node(cluster: Cluster, pod: Pod) -> str | None:
    """Return the node that is kept for a pod because it comes in place of one that is moved."""
    moved = replaced_by(cluster, pod)
    return None if moved is None else cluster.reserved[moved][0]


def replaced_by(cluster: Cluster, pod: Pod) -> ObjectName | None:
    """Return which pod that is moved another one replaces: that of its name, else the first of its kind."""
    own = (pod.namespace, pod.name)
    if own in cluster.reserved:
        return own
    alike = [key for key, (_, moved) in cluster.reserved.items() if replaces(pod, moved)]
    return min(alike, default=None)


def replaces(pod: Pod, moved: Pod) -> bool:
    """Whether a pod comes in place of one that is moved, as its name or its controller tells.

    Of pods without a controller those with the same labels and the same spec replace each other.
    """
    if pod.namespace != moved.namespace:
        return False
    if pod.name == moved.name:
        return True
    if pod.controller is not None or moved.controller is not None:
        return pod.controller == moved.controller
    return pod.labels == moved.labels and pod.spec == moved.spec


def assume_reservation(cluster: Cluster, reservation: Reservation) -> None:
    """Have the nominated pods on their node, until that is undone."""
    for pod in reservation.pods:
        cluster.put_pod(replace(pod, node_name=reservation.node_name))
