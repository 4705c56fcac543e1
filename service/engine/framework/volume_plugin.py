"""The base class of plugins that filter by a pod's volumes."""

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import ClusterEvent
from service.engine.framework.plugin import (
    Failure,
    Headrooms,
    PreFilterResult,
    RelationPlugin,
    RelativeScore,
    permanent_headrooms,
)
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.engine.state.volumes.pod_volumes import claims_of
from service.engine.state.volumes.volume_table import PodVolumes
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.volumes.volume_kinds import (
    PERSISTENT_VOLUME_CLAIM,
    PersistentVolumeClaimBody,
)


def changed_claims(event: ClusterEvent) -> frozenset[ObjectName] | None:
    """Return the PersistentVolumeClaims that an event concerns, or None if there are none."""
    kept = event.objects
    if not kept or kept[0].kind != PERSISTENT_VOLUME_CLAIM.kind:
        return None
    return frozenset((claim.namespace, claim.name) for claim in kept)


def _was_bound(event: ClusterEvent) -> bool:
    """Return whether an event concerns a claim that was bound to a volume before."""
    body = event.objects[0].body if event.objects else None
    return isinstance(body, PersistentVolumeClaimBody) and bool(body.spec.volume_name)


def mask_of(nodes: NodeTable, slots: Collection[int]) -> Mask | None:
    """Convert slots to a mask of shape (nodes,), or return None if there are none."""
    if not slots:
        return None
    mask = np.zeros(nodes.size, dtype=np.bool_)
    mask[list(slots)] = True
    return mask


class VolumePlugin(RelationPlugin):
    """A filter by a pod's volumes, and perhaps a score; both skip pods without volumes."""

    filters: ClassVar[bool] = True
    prefilters: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = frozenset()
    """The kinds of objects, besides the pod's claims, that affect the verdict."""

    gives_volumes: ClassVar[bool] = False
    """Whether a volume may become available for other claims when the claim bound to it is
    removed."""

    def rejection(self, volumes: PodVolumes) -> str | None:  # noqa: ARG002 - for subclasses that reject
        """Return the reason for rejecting pods with these volumes on every node, or None."""
        return None

    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        """Return the vetoes for pods with these volumes; `rejection` must have returned None."""
        raise NotImplementedError

    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        """Return all failures for pods with these volumes; masks have the shape (nodes,)."""
        raise NotImplementedError

    def open_to_removal(self, nodes: NodeTable, volumes: PodVolumes) -> Mask | None:  # noqa: ARG002
        """Return the nodes where removing pods may change the verdict, shape (nodes,), or None."""
        return None

    @override
    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        volumes = pod_class.volumes
        reason = None if volumes is None else self.rejection(volumes)
        return None if reason is None else PreFilterResult(reason=reason)

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        return pod_class.volumes is not None

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        volumes = pod_class.volumes
        if volumes is None:
            return []
        if self.rejection(volumes) is not None:
            return [Vetoes(nodes.itself, only=())]
        return self.vetoes_of(nodes, volumes)

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        volumes = pod_class.volumes
        if volumes is None:
            return []
        reason = self.rejection(volumes)
        if reason is not None:
            return [Failure(reason, nodes.alive.copy(), unresolvable=True)]
        return self.failures_of(nodes, volumes)

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms | None:
        volumes = pod_class.volumes
        if volumes is None:
            return Headrooms()
        headrooms = permanent_headrooms(self.failures(nodes, pod_class))
        return headrooms._replace(unsure=self.open_to_removal(nodes, volumes))

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        claims = changed_claims(event)
        if cls.gives_volumes and _was_bound(event):
            return bool(claims_of(pod))
        if claims is not None:
            return any(use.key in claims for use in claims_of(pod))
        if event.objects:
            return event.objects[0].kind in cls.kinds
        return not event.pods or any(changed.spec.volumes for changed in event.pods)

    @override
    def applies(self, pod_class: PodClass) -> bool:
        return pod_class.volumes is not None

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return False

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        return None
