"""NodeVolumeLimits: a CSI driver attaches only a limited number of volumes to a node.

From Kubernetes 1.37 on, drivers can also ask that pods with their volumes are placed only where
they run.
"""

from collections.abc import Collection
from operator import itemgetter
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change, ClusterEvent
from service.engine.framework.plugin import Failure
from service.engine.framework.volume_plugin import VolumePlugin, mask_of
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.volumes.volume_table import PodVolumes
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.pods.pod import Pod
from service.model.volumes.volume_kinds import (
    CSI_DRIVER,
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)

NAME = "NodeVolumeLimits"
TOO_MANY = "node(s) exceed max volume count"
_NOT_THERE = " CSI driver is not installed on the node"
NOT_INSTALLED = "{}" + _NOT_THERE


class NodeVolumeLimits(VolumePlugin):
    """The limits of nodes, which are all that kube-scheduler checks up to version 1.36."""

    name: ClassVar[str] = NAME
    prefilters: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = frozenset(
        {
            PERSISTENT_VOLUME_CLAIM.kind,
            PERSISTENT_VOLUME.kind,
            STORAGE_CLASS.kind,
            CSI_NODE.kind,
            CSI_DRIVER.kind,
            VOLUME_ATTACHMENT.kind,
        }
    )
    """The kinds that affect the verdict. They include claims, because the volumes bound to placed
    pods' claims count towards limits."""
    events: ClassVar[frozenset[Change]] = frozenset(
        {
            Change.NODE_ADDED,
            Change.POD_LEFT,
            Change.POD_CAME,
            Change.POD_VOLUMES_CHANGED,
            Change.OBJECT_CHANGED,
        }
    )
    """The events that may change a rejection. They include new pods, because a volume that one
    attaches counts only once."""

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> "NodeVolumeLimits":
        checks_drivers = config.scheduler_version.requires_csi_driver
        return DriversAndLimits() if checks_drivers else NodeVolumeLimits()

    @override
    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        exceeded = volumes.table.limits.exceeded(volumes.attached())
        if exceeded is None:
            return []
        return [Vetoes(nodes.itself, nodes=np.where(exceeded, VETO, 0))]

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        exceeded = volumes.table.limits.exceeded(volumes.attached())
        if exceeded is None:
            return []
        return [Failure(TOO_MANY, exceeded, unresolvable=False)]

    @override
    def open_to_removal(self, nodes: NodeTable, volumes: PodVolumes) -> Mask | None:
        """Return the nodes that exceed the limit, or whose pods share a volume with this pod.

        On other nodes, removing pods only frees attachments.
        """
        disks = volumes.attached()
        exceeded = volumes.table.limits.exceeded(disks)
        shared = mask_of(nodes, volumes.table.limits.users(disks))
        if exceeded is None or shared is None:
            return shared if exceeded is None else exceeded
        return exceeded | shared

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        if event.objects and event.objects[0].kind == CSI_DRIVER.kind:
            return any(reason.endswith(_NOT_THERE) for reason in reasons)
        if event.objects:
            return event.objects[0].kind in cls.kinds
        return not event.pods or any(changed.spec.volumes for changed in event.pods)


class DriversAndLimits(NodeVolumeLimits):
    """The limits of nodes, and the drivers that must run there, as from version 1.37 on.

    Only drivers with `preventPodSchedulingIfMissing` must (KEP-5030).
    """

    @override
    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        vetoes = super().vetoes_of(nodes, volumes)
        for _, missing in _without_drivers(volumes):
            vetoes.append(Vetoes(nodes.itself, nodes=np.where(missing, VETO, 0)))
        return vetoes

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        """Return one reason for each node: a missing driver, the first by name, or the limit."""
        failures: list[Failure] = []
        refused: Mask = ~nodes.alive
        for driver, missing in _without_drivers(volumes):
            reason = NOT_INSTALLED.format(driver)
            failures.append(Failure(reason, missing & ~refused, unresolvable=False))
            refused = refused | missing
        exceeded = super().failures_of(nodes, volumes)
        return failures + [failure._replace(nodes=failure.nodes & ~refused) for failure in exceeded]


def _without_drivers(volumes: PodVolumes) -> list[tuple[str, Mask]]:
    """Return the drivers that a pod needs, by name, each with the nodes where it does not run.

    Masks have the shape (nodes,). In-tree disks need the driver only on nodes with a CSINode,
    because only these attach them by the driver.
    """
    own, replacing = volumes.needed_drivers()
    installed = volumes.table.installed
    missing = {driver: ~installed.nodes_with(driver) for driver in own}
    for driver in replacing:
        if driver not in missing:
            missing[driver] = installed.reporting() & ~installed.nodes_with(driver)
    return sorted(missing.items(), key=itemgetter(0))
