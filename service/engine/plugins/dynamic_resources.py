"""DynamicResources: a pod's claims must be allocatable from devices available to the node.

Nodes that can satisfy preferred alternatives of requests (`firstAvailable`) score higher.

Source: `pkg/scheduler/framework/plugins/dynamicresources`, v1.35 to v1.37, with the features that
are enabled by default. Where Kubernetes ends the attempt with an error, such as an undecidable
selector, the node is refused with the text of the error. One error is not followed: v1.35 cannot
score a pod if only some of its claims have devices. Such a pod is scored as in v1.36.
"""

from collections.abc import Collection, Sequence
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change, ClusterEvent
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    DomainScores,
    Failure,
    Headrooms,
    PreFilterResult,
    RelationPlugin,
    RelativeScore,
    Vacant,
    bounds_of,
    permanent_headrooms,
)
from service.engine.state.devices.device_table import NodeVerdicts, with_names
from service.engine.state.devices.pod_devices import PodDevices, uses_of
from service.engine.state.nodes.columns import Ints, Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.devices.device_fields import ResourceClaimBody
from service.model.devices.device_kinds import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from service.model.pods.pod import Pod

NAME = "DynamicResources"
UNAVAILABLE = "resourceclaim not available on the node"
FEW_NODES = 32
"""The maximum number of remaining nodes that are stored as a list instead of an array."""


class AlternativesScore(RelativeScore):
    """A node's score for the alternatives that it can satisfy, relative to the best node."""

    def __init__(self, preference: Ints) -> None:
        """Take how preferred the alternatives of each node are, shape (nodes,), int64."""
        self._preference = preference

    @override
    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        return None

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        bounds = bounds_of(self._preference, ranks)
        if bounds is None or not bounds.greatest:
            return None
        scores: Ints = MAX_NODE_SCORE * bounds.capped(self._preference) // bounds.greatest
        return weight * scores


class DynamicResources(RelationPlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    is_unnamed_if_skipped: ClassVar[bool] = True
    prefilters: ClassVar[bool] = True
    allocates_devices: ClassVar[bool] = True
    events: ClassVar[frozenset[Change]] = frozenset(
        {Change.NODE_DESCRIBED, Change.NODE_RESIZED, Change.OBJECT_CHANGED}
    )

    def __init__(self, *, allocates: bool = True) -> None:
        """Take whether the profile filters with this plugin; only then, claims get devices."""
        self._allocates = allocates

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        return cls(allocates=cls.name in profile.filters)

    @override
    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        devices = pod_class.devices
        reason = None if devices is None else devices.rejection()
        return None if reason is None else PreFilterResult(reason=reason)

    @override
    def applies(self, pod_class: PodClass) -> bool:
        return pod_class.devices is not None

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        return self.applies(pod_class)

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        devices = pod_class.devices
        if devices is None:
            return []
        if devices.rejection() is not None:
            return [Vetoes(nodes.itself, only=())]
        vetoes = [
            devices.table.nodes_of(claim.node_selector).vetoes
            for claim in devices.allocated_claims()
            if claim.node_selector is not None
        ]
        wanted = devices.wanted()
        if wanted:
            vetoes.append(_verdict_vetoes(nodes, devices.verdicts(wanted)))
        return vetoes

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """Return one reason per node; a failed allocation precedes devices allocated elsewhere."""
        devices = pod_class.devices
        if devices is None:
            return []
        reason = devices.rejection()
        if reason is not None:
            return [Failure(reason, nodes.alive.copy(), unresolvable=True)]
        failures = _allocation_failures(nodes, devices)
        unavailable = ~_available(nodes, devices) & nodes.alive
        for failure in failures:
            unavailable &= ~failure.nodes
        return [*failures, Failure(UNAVAILABLE, unavailable, unresolvable=True)]

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms | None:
        """Return permanent headrooms, because preemption does not deallocate claims."""
        if pod_class.devices is None:
            return Headrooms()
        return permanent_headrooms(self.failures(nodes, pod_class))

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return self.applies(pod_class)

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        """Return the score, or None if it is 0 on every node, as without alternatives."""
        devices = pod_class.devices
        if devices is None or not self._allocates or devices.rejection() is not None:
            return None
        preference = devices.preference(devices.wanted())
        return None if preference is None else AlternativesScore(preference)

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        if not event.objects:
            return True
        kind = event.objects[0].kind
        names = {manifest.name for manifest in event.objects if manifest.namespace == pod.namespace}
        if kind == RESOURCE_CLAIM_TEMPLATE.kind:
            return any(use.template in names for use in uses_of(pod))
        if kind == RESOURCE_CLAIM.kind:
            return _gives_devices(event) or any(use.claim in names for use in uses_of(pod))
        return kind in (DEVICE_CLASS.kind, RESOURCE_SLICE.kind)


def _gives_devices(event: ClusterEvent) -> bool:
    """Return whether an event concerns a claim that previously had devices."""
    body = event.objects[0].body
    return isinstance(body, ResourceClaimBody) and body.status.allocation is not None


def _verdict_vetoes(nodes: NodeTable, verdicts: NodeVerdicts) -> Vetoes:
    passing = nodes.alive & ~verdicts.failing
    if np.count_nonzero(passing) <= FEW_NODES:
        return Vetoes(nodes.itself, only=tuple(np.flatnonzero(passing).tolist()))
    return Vetoes(nodes.itself, nodes=np.where(verdicts.failing, VETO, 0))


def _allocation_failures(nodes: NodeTable, devices: PodDevices) -> list[Failure]:
    """Return one failure per reason, with the nodes where claims cannot be allocated."""
    wanted = devices.wanted()
    if not wanted:
        return []
    by_reason: dict[str, list[int]] = {}
    for slot, reason in sorted(devices.verdicts(wanted).reasons.items()):
        by_reason.setdefault(with_names(reason, wanted), []).append(slot)
    failures = []
    for reason, slots in by_reason.items():
        mask = np.zeros(nodes.size, dtype=np.bool_)
        mask[slots] = True
        failures.append(Failure(reason, mask & nodes.alive, unresolvable=True))
    return failures


def _available(nodes: NodeTable, devices: PodDevices) -> Mask:
    """Return the nodes where all allocated claims can be used, shape (nodes,)."""
    mask = np.ones(nodes.size, dtype=np.bool_)
    for claim in devices.allocated_claims():
        if claim.node_selector is not None:
            mask &= devices.table.nodes_of(claim.node_selector).mask
    return mask
