"""VolumeBinding: a node must have access to bound volumes, and volumes for unbound claims."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import Failure
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.volumes.matching import VolumeMatches
from service.engine.state.volumes.pod_volumes import ClaimUse
from service.engine.state.volumes.volume_table import PodVolumes, VolumeTable
from service.model.volumes.volume import PersistentVolumeClaim
from service.model.volumes.volume_kinds import (
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
)

NAME = "VolumeBinding"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
LOST_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

MISSING = 'persistentvolumeclaim "{}" not found'
AWAITED = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
DELETED = 'persistentvolumeclaim "{}" is being deleted'
NOT_OWNED = "PVC {} was not created for pod {} (pod is not owner)"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(VolumePlugin):
    name: ClassVar[str] = NAME
    kinds: ClassVar[frozenset[str]] = frozenset(
        {
            PERSISTENT_VOLUME.kind,
            STORAGE_CLASS.kind,
            CSI_DRIVER.kind,
            CSI_STORAGE_CAPACITY.kind,
        }
    )
    gives_volumes: ClassVar[bool] = True
    binds_claims: ClassVar[bool] = True
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_DESCRIBED, Change.OBJECT_CHANGED})

    @override
    def rejection(self, volumes: PodVolumes) -> str | None:
        table = volumes.table
        for use in volumes.claims:
            reason = _unusable(use, table.claims.get(use.key), volumes)
            if reason is not None:
                return reason
        for claim in volumes.unbound_claims():
            if not _waits_for_consumer(table, claim):
                return IMMEDIATE
        return None

    @override
    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        vetoes: list[Vetoes] = []
        for claim in volumes.known_claims():
            if not claim.is_bound:
                continue
            volume = volumes.table.volumes.get(claim.volume_name)
            if volume is None:
                return [Vetoes(nodes.itself, only=())]
            usable = volumes.table.nodes_of(volume)
            if usable is not None:
                vetoes.append(usable.vetoes)
        unbound = volumes.unbound_claims()
        if unbound:
            failing = VolumeMatches(volumes.table, unbound).failing
            if failing.any():
                vetoes.append(Vetoes(nodes.itself, nodes=np.where(failing, VETO, 0)))
        return vetoes

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        """Return the reasons in Kubernetes' order; a node may have several."""
        unusable, lost = _failing_bound(nodes, volumes)
        matches = VolumeMatches(volumes.table, volumes.unbound_claims())
        return [
            Failure(AFFINITY, unusable & nodes.alive, unresolvable=True),
            Failure(NO_VOLUME, matches.without_volume & nodes.alive, unresolvable=True),
            Failure(NO_ROOM, matches.without_room & nodes.alive, unresolvable=True),
            Failure(LOST_VOLUME, lost & nodes.alive, unresolvable=True),
        ]


def _unusable(
    use: ClaimUse, claim: PersistentVolumeClaim | None, volumes: PodVolumes
) -> str | None:
    """Return why a claim excludes the pod from every node, or None."""
    name = use.key[1]
    if claim is None:
        return (AWAITED if use.is_ephemeral else MISSING).format(name)
    if claim.is_lost:
        return LOST.format(name, claim.volume_name)
    if claim.terminating:
        return DELETED.format(name)
    if use.is_ephemeral and (not claim.controller_uid or claim.controller_uid != volumes.pod_uid):
        return NOT_OWNED.format("/".join(use.key), volumes.pod_name)
    return None


def _waits_for_consumer(table: VolumeTable, claim: PersistentVolumeClaim) -> bool:
    """Return whether an unbound claim waits to be bound until its first pod is placed."""
    storage_class = table.classes.get(claim.class_name)
    return storage_class is not None and storage_class.waits_for_consumer and not claim.volume_name


def _failing_bound(nodes: NodeTable, volumes: PodVolumes) -> tuple[Mask, Mask]:
    """Return masks of the nodes that cannot use a bound volume, and that fail for a missing one.

    Both masks have the shape (nodes,). If a volume is missing, all nodes that can use the preceding
    volumes fail for it.
    """
    unusable = np.zeros(nodes.size, dtype=np.bool_)
    for claim in volumes.known_claims():
        if not claim.is_bound:
            continue
        volume = volumes.table.volumes.get(claim.volume_name)
        if volume is None:
            return unusable, ~unusable
        usable = volumes.table.nodes_of(volume)
        if usable is not None:
            unusable |= ~usable.mask
    return unusable, np.zeros(nodes.size, dtype=np.bool_)
