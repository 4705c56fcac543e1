"""Which pods leave a node that is drained, and which of them leave together."""

from collections.abc import Iterable
from typing import cast

import msgspec

from service.engine import Cluster
from service.model.core.primitives import ObjectName
from service.model.manifests.manifest import PodManifest
from service.model.pod_templates.spec_bytes_around_names import names_node
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Replica

DAEMON_KIND = "DaemonSet"
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a pod that stands for a static one, which its node runs by itself."""
_MIRROR = MIRROR.encode()


class DrainUnit(msgspec.Struct, frozen=True, eq=False):
    """Pods that leave their nodes together: a single one, or the members of a group."""

    pods: tuple[PodManifest, ...]
    group: GroupRef | None = None

    @property
    def keys(self) -> list[ObjectName]:
        """Namespaces and names of the pods."""
        return [(each.namespace, each.name) for each in self.pods]


def stays(manifest: PodManifest) -> bool:
    """Whether a pod belongs to its node, as `kubectl drain` sees it: a daemon, or a static pod.

    A pod that can be on this node alone is a daemon, too, even if nobody says who manages it.
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
    """Return the pods on some nodes, without those that have ended."""
    found = [pod for name in nodes for pod in _placed_on(replica.cluster, name)]
    manifests = [replica.pod(*key) for key in found]
    return [each for each in manifests if each is not None]


def _placed_on(cluster: Cluster, name: str) -> list[ObjectName]:
    slot = cluster.nodes.slots.get(name)
    if slot is None:
        return []
    return [(pod.namespace, pod.name) for pod, _ in cluster.placed_on(slot)]


def units_of(pods: Iterable[PodManifest]) -> list[DrainUnit]:
    """Return who leaves together, the most important pods first; daemons stay, others leave already."""
    leaving = [each for each in pods if not each.pod.terminating and not stays(each)]
    leaving.sort(key=_order)
    groups: dict[GroupRef, list[PodManifest]] = {}
    alone: list[list[PodManifest]] = []
    for each in leaving:
        group = group_of(each)
        if group is None:
            alone.append([each])
        elif group in groups:
            groups[group].append(each)
        else:
            alone.append(groups.setdefault(group, [each]))
    return [DrainUnit(tuple(members), group_of(members[0])) for members in alone]


def _order(manifest: PodManifest) -> tuple[int, str, str, str]:
    pod = manifest.pod
    return -pod.priority, pod.created, pod.namespace, pod.name
