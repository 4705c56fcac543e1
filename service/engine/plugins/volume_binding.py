"""VolumeBinding: a node must have access to bound volumes, and volumes for unbound claims.

From Kubernetes 1.37 on, nodes also score by how much of their storage the unbound claims take.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import Failure, RelativeScore, Vacant
from service.engine.framework.utilization import scores_by_percent, shape_of
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.state.nodes.columns import Ints, Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.engine.state.volumes.matching import StorageUse, VolumeMatches
from service.engine.state.volumes.pod_volumes import ClaimUse
from service.engine.state.volumes.volume_table import PodVolumes, VolumeTable
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import VolumeBindingArgs
from service.model.cluster.plugin_rules import Arguments
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
FULL = 100
"""The utilization of storage without free capacity, in percent."""
LOST_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

MISSING = 'persistentvolumeclaim "{}" not found'
AWAITED = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
DELETED = 'persistentvolumeclaim "{}" is being deleted'
NOT_OWNED = "PVC {} was not created for pod {} (pod is not owner)"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(VolumePlugin):
    """The filter without a score: kube-scheduler up to version 1.36 skips it for every pod."""

    name: ClassVar[str] = NAME
    weight: ClassVar[int] = 1
    is_unnamed_if_skipped: ClassVar[bool] = True
    arguments: ClassVar[type[Arguments] | None] = VolumeBindingArgs
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

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> "VolumeBinding":
        if not config.scheduler_version.scores_storage_capacity:
            return VolumeBinding()
        arguments = profile.arguments_of(cls.name, VolumeBindingArgs)
        return ScoredVolumeBinding(scores_by_percent(shape_of(arguments.shape)))

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

    def matches(self, volumes: PodVolumes) -> VolumeMatches:
        """Return the volumes to bind to the unbound claims, on every node."""
        return VolumeMatches(volumes.table, volumes.unbound_claims())

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
        if volumes.unbound_claims():
            failing = self.matches(volumes).failing
            if failing.any():
                vetoes.append(Vetoes(nodes.itself, nodes=np.where(failing, VETO, 0)))
        return vetoes

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        """Return the reasons in Kubernetes' order; a node may have several."""
        unusable, lost = _failing_bound(nodes, volumes)
        matches = self.matches(volumes)
        return [
            Failure(AFFINITY, unusable & nodes.alive, unresolvable=True),
            Failure(NO_VOLUME, matches.without_volume & nodes.alive, unresolvable=True),
            Failure(NO_ROOM, matches.without_room & nodes.alive, unresolvable=True),
            Failure(LOST_VOLUME, lost & nodes.alive, unresolvable=True),
        ]


class ScoredVolumeBinding(VolumeBinding):
    """The filter with the score of kube-scheduler from version 1.37 on.

    It is the average over storage classes of a function of utilization. Nodes where the pod's
    claims take no storage of known capacity get 0 (KEP-4049).
    """

    def __init__(self, by_percent: Ints) -> None:
        self._by_percent = by_percent
        self._matched: tuple[PodVolumes, int, int, VolumeMatches] | None = None
        """The volumes that were matched last, with the versions of the volume objects and nodes."""

    @override
    def applies(self, pod_class: PodClass) -> bool:
        volumes = pod_class.volumes
        return volumes is not None and bool(volumes.claims)

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return self.applies(pod_class)

    @override
    def matches(self, volumes: PodVolumes) -> VolumeMatches:
        """Match the claims, or return the last result, because the filter needs it before."""
        versions = volumes.table.version, volumes.table.nodes.version
        last = self._matched
        if last is not None and last[0] is volumes and last[1:3] == versions:
            return last[3]
        matches = super().matches(volumes)
        self._matched = volumes, *versions, matches
        return matches

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        volumes = pod_class.volumes
        if volumes is None or not volumes.unbound_claims():
            return None
        uses = self.matches(volumes).storage_uses()
        return StorageScore(uses, self._by_percent) if uses else None

    @override
    def normalized_scores(
        self, nodes: NodeTable, pod_class: PodClass, infeasible: Ints
    ) -> Ints | None:
        """Return the scores, or None also if no feasible node gets any: that decides nothing."""
        scores = super().normalized_scores(nodes, pod_class, infeasible)
        return None if scores is None or not scores[infeasible == 0].any() else scores


class StorageScore(RelativeScore):
    """The score of a pod's claims by the storage that they take, which is of each node."""

    def __init__(self, uses: Sequence[StorageUse], by_percent: Ints) -> None:
        self._uses = uses
        self._by_percent = by_percent

    @override
    def by_domain(self, vacant: Vacant) -> None:
        return None

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints:
        total, classes = np.zeros_like(ranks), np.zeros_like(ranks)
        for use in self._uses:
            total += np.where(use.counted, self._by_percent[_percent(use)], 0)
            classes += use.counted
        classes = np.maximum(classes, 1)
        # Round half up, as Go does to numbers that are not negative.
        return weight * ((2 * total + classes) // (2 * classes))


def _percent(use: StorageUse) -> Ints:
    """Return the utilization of storage, shape (nodes,), int64, from 0 to 100."""
    percent = use.requested * FULL // np.maximum(use.capacity, 1)
    percent = np.where((use.capacity == 0) | (use.requested > use.capacity), FULL, percent)
    # Products that overflow are negative in Go too, and score like 0.
    return np.clip(percent, 0, FULL)


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
