"""NodeVolumeLimits: a CSI driver attaches only a limited number of volumes to a node."""

from collections.abc import Collection
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
from service.model.pods.pod import Pod
from service.model.volumes.volume_kinds import (
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)

NAME = "NodeVolumeLimits"
TOO_MANY = "node(s) exceed max volume count"


class NodeVolumeLimits(VolumePlugin):
    name: ClassVar[str] = NAME
    prefilters: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = frozenset(
        {
            PERSISTENT_VOLUME_CLAIM.kind,
            PERSISTENT_VOLUME.kind,
            STORAGE_CLASS.kind,
            CSI_NODE.kind,
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
        if event.objects:
            return event.objects[0].kind in cls.kinds
        return not event.pods or any(changed.spec.volumes for changed in event.pods)
