"""VolumeRestrictions: claims must exist, and pods must not share disks that one of them writes."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import Failure
from service.engine.framework.volume_plugin import VolumePlugin, mask_of
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.volumes.volume_table import PodVolumes
from service.model.volumes.volume import ONE_POD, PersistentVolumeClaim

NAME = "VolumeRestrictions"
DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
NOT_FOUND = 'persistentvolumeclaim "{}" not found'


class VolumeRestrictions(VolumePlugin):
    name: ClassVar[str] = NAME
    events: ClassVar[frozenset[Change]] = frozenset(
        {
            Change.NODE_ADDED,
            Change.NODE_REMOVED,
            Change.POD_LEFT,
            Change.POD_VOLUMES_CHANGED,
            Change.OBJECT_CHANGED,
        }
    )
    """The events that may change a rejection. They include removed nodes, because the pods on them
    no longer use an exclusive claim, which refuses all nodes."""

    @override
    def rejection(self, volumes: PodVolumes) -> str | None:
        for use in volumes.claims:
            if not use.is_ephemeral and use.key not in volumes.table.claims:
                return NOT_FOUND.format(use.key[1])
        return None

    @override
    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        if _in_exclusive_use(volumes):
            return [Vetoes(nodes.itself, only=())]
        conflicts = _conflicts(nodes, volumes)
        if conflicts is None:
            return []
        return [Vetoes(nodes.itself, nodes=np.where(conflicts, VETO, 0))]

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        """Return one reason per node, disks before claims."""
        conflicts = _conflicts(nodes, volumes)
        if conflicts is None:
            conflicts = np.zeros(nodes.size, dtype=np.bool_)
        failures = [Failure(DISK, conflicts, unresolvable=False)]
        if _in_exclusive_use(volumes):
            failures.append(Failure(IN_USE, nodes.alive & ~conflicts, unresolvable=False))
        return failures

    @override
    def open_to_removal(self, nodes: NodeTable, volumes: PodVolumes) -> Mask | None:
        """Return the nodes whose pods use one of the disks, or an exclusive claim."""
        slots = {slot for claim in _exclusive(volumes) for slot in volumes.table.used_on(claim.key)}
        slots |= volumes.table.disks.conflicts(volumes.disks)
        return mask_of(nodes, slots)


def _exclusive(volumes: PodVolumes) -> list[PersistentVolumeClaim]:
    """Return the claims with access mode ReadWriteOncePod."""
    return [claim for claim in volumes.non_ephemeral_claims() if ONE_POD in claim.access_modes]


def _in_exclusive_use(volumes: PodVolumes) -> bool:
    """Return whether a placed pod uses one of the exclusive claims."""
    return any(volumes.table.is_in_use(claim.key) for claim in _exclusive(volumes))


def _conflicts(nodes: NodeTable, volumes: PodVolumes) -> Mask | None:
    """Return the nodes whose pods use one of the disks, shape (nodes,), or None."""
    return mask_of(nodes, volumes.table.disks.conflicts(volumes.disks))
