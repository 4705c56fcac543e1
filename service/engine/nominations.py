"""Room that is kept for pending pods on the nodes that are nominated for them.

As in Kubernetes, a pod passes the filters of a node only if it passes them twice: as the node is,
and with the pods of equal or higher priority there that are nominated for it. Most clusters have no
nominated pods, so callers ask `Cluster.nominated` first, which costs them nothing.
"""

from typing import NamedTuple

from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.model.objects import Pod


class Reservation(NamedTuple):
    """One node, and the pods for which room is kept on it."""

    slot: int
    node_name: str
    pods: list[Pod]


def reservations(cluster: Cluster, pod: Pod) -> list[Reservation]:
    """The nodes on which a pod finds room only beside pods that are nominated for them."""
    key, found = (pod.namespace, pod.name), []
    for name, nominated in cluster.nominated.items():
        slot = cluster.nodes.slots.get(name)
        pods = [p for k, p in nominated.items() if p.priority >= pod.priority and k != key]
        if slot is not None and pods:
            found.append(Reservation(slot, name, pods))
    return found


def assume(cluster: Cluster, reservation: Reservation) -> None:
    """Have the nominated pods on their node, until that is undone."""
    for pod in reservation.pods:
        cluster.put_pod(replace(pod, node_name=reservation.node_name))
