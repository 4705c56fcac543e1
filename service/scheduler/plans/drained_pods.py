"""Which pods leave a drained node, and which leave together."""

from collections.abc import Iterable
from typing import cast

import msgspec

from service.engine import Cluster
from service.model.core.primitives import ObjectName
from service.model.pods.spec_families import names_node
from service.model.registry.manifests import PodManifest
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Replica

DAEMON_KIND = "DaemonSet"
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod, which represents a static pod that its node runs on its own."""
_MIRROR = MIRROR.encode()


class DrainUnit(msgspec.Struct, frozen=True, eq=False):
    """Pods that leave their nodes together: a single pod or the members of a group."""

    pods: tuple[PodManifest, ...]
    group: GroupRef | None = None

    @property
    def keys(self) -> list[ObjectName]:
        """The pods' namespaces and names."""
        return [(pod.namespace, pod.name) for pod in self.pods]


def stays(manifest: PodManifest) -> bool:
    """Return whether a pod belongs to its node, as in `kubectl drain`: a daemon or a static pod.

    A pod that can only run on this node counts as a daemon, too, even without an owner.
    """
    pod = manifest.pod
    if pod.controller is not None and pod.controller.kind == DAEMON_KIND:
        return True
    return names_node(pod.spec) or _is_mirror(manifest)


def _is_mirror(manifest: PodManifest) -> bool:
    if _MIRROR not in manifest.metadata:
        return False
    members = msgspec.json.decode(b"{" + manifest.metadata.removeprefix(b",") + b"}")
    return MIRROR in cast("dict[str, object]", members).get("annotations", {})  # type: ignore[operator]


def pods_on(replica: Replica, nodes: Iterable[str]) -> list[PodManifest]:
    """Return the unfinished pods on some nodes."""
    names = [pod for name in nodes for pod in _placed_on(replica.cluster, name)]
    manifests = [replica.pod(*key) for key in names]
    return [manifest for manifest in manifests if manifest is not None]


def _placed_on(cluster: Cluster, name: str) -> list[ObjectName]:
    slot = cluster.nodes.slots.get(name)
    if slot is None:
        return []
    return [(pod.namespace, pod.name) for pod, _ in cluster.placed_on(slot)]


def units_of(pods: Iterable[PodManifest]) -> list[DrainUnit]:
    """Return the units that leave, the most important first, without daemons."""
    leaving = [pod for pod in pods if not pod.pod.terminating and not stays(pod)]
    leaving.sort(key=_order)
    groups: dict[GroupRef, list[PodManifest]] = {}
    alone: list[list[PodManifest]] = []
    for pod in leaving:
        group = group_of(pod)
        if group is None:
            alone.append([pod])
        elif group in groups:
            groups[group].append(pod)
        else:
            alone.append(groups.setdefault(group, [pod]))
    return [DrainUnit(tuple(members), group_of(members[0])) for members in alone]


def _order(manifest: PodManifest) -> tuple[int, str, str, str]:
    pod = manifest.pod
    return -pod.priority, pod.created, pod.namespace, pod.name
