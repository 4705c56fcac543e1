"""NodeResourcesFit: requests must fit the allocatable amounts, and the score rates the fit."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change, ClusterEvent
from service.engine.framework.plugin import (
    DEFAULT_RESOURCES,
    MAX_NODE_SCORE,
    Failure,
    Headroom,
    Headrooms,
    NodePlugin,
    Resources,
    resources_of,
)
from service.engine.framework.utilization import Shape, scores_by_percent, shape_of
from service.engine.state.nodes.columns import Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.importance import PODS
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import NodeResourcesFitArgs, ScoringStrategy
from service.model.cluster.plugin_rules import Arguments
from service.model.pods.pod import Pod

NAME = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient "
NATIVE_ORDER = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


@dataclass(frozen=True, kw_only=True)
class FitArguments:
    """The configuration of NodeResourcesFit's score."""

    strategy: str = "LeastAllocated"
    resources: Resources = DEFAULT_RESOURCES
    shape: Shape = ()

    @cached_property
    def plain(self) -> bool:
        return self.strategy == "LeastAllocated" and self.resources == DEFAULT_RESOURCES

    @cached_property
    def line(self) -> Ints:
        """The score at each whole percentage of utilization, shape (101,), int64."""
        return scores_by_percent(self.shape)


class NodeResourcesFit(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 1
    reads_usage: ClassVar[bool] = True
    judges_room: ClassVar[bool] = True
    arguments: ClassVar[type[Arguments] | None] = NodeResourcesFitArgs
    events: ClassVar[frozenset[Change]] = frozenset(
        {Change.NODE_ADDED, Change.NODE_RESIZED, Change.POD_LEFT, Change.POD_RESIZED}
    )

    def __init__(self, arguments: FitArguments) -> None:
        self._arguments = arguments
        self._plain = arguments.plain

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        arguments = profile.arguments_of(cls.name, NodeResourcesFitArgs)
        return cls(_arguments(arguments.scoring_strategy or config.scoring))

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask: Mask = at(nodes.pods, rows) < at(nodes.allowed_pods, rows)
        for resource, amount in rules.needs.amounts:
            wanted = at(nodes.requested(resource), rows) + amount
            mask &= wanted <= at(nodes.allocatable(resource), rows)
        return mask

    @override
    def admits_one(self, nodes: NodeTable, rules: NodeRules, slot: int) -> bool:
        """Return whether one node passes, using plain integers."""
        if not nodes.has_room_for_pod(slot):
            return False
        for resource, amount in rules.needs.amounts:
            wanted = nodes.requested_at(resource, slot) + amount
            if wanted > nodes.allocatable_at(resource, slot):
                return False
        return True

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Return a failure for each insufficient resource.

        A node is unresolvable if any request exceeds its allocatable amount.
        """
        amounts = sorted(
            rules.needs.amounts, key=lambda request: (NATIVE_ORDER.get(request[0], 3), request[0])
        )
        never = np.zeros(nodes.size, dtype=np.bool_)
        for resource, amount in amounts:
            never |= amount > nodes.allocatable(resource)
        failures = [Failure(TOO_MANY_PODS, nodes.pods >= nodes.allowed_pods, never)]
        for resource, amount in amounts:
            short = nodes.requested(resource) + amount > nodes.allocatable(resource)
            failures.append(Failure(INSUFFICIENT + resource, short, never))
        return failures

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms:
        left = nodes.allowed_pods - nodes.pods - 1
        rooms = [Headroom(TOO_MANY_PODS, left, PODS)]
        for resource, amount in pod_class.template.rules.needs.amounts:
            left = nodes.allocatable(resource) - nodes.requested(resource) - amount
            rooms.append(Headroom(INSUFFICIENT + resource, left, resource))
        return Headrooms(tuple(rooms))

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Return whether a pod that left, or shrank, used an insufficient resource."""
        freed = event.freed
        return freed is None or any(
            event.change is Change.POD_LEFT
            if reason == TOO_MANY_PODS
            else reason.removeprefix(INSUFFICIENT) in freed
            for reason in reasons
        )

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        if self._plain and nodes.divides_evenly:
            cpu, memory = rules.needs.scored
            return (
                _least_allocated_evenly(nodes, "cpu", cpu, rows)
                + _least_allocated_evenly(nodes, "memory", memory, rows)
            ) >> 1
        match self._arguments.strategy:
            case "LeastAllocated":
                return self._weighted_average(nodes, rules, rows, _least_allocated)
            case "MostAllocated":
                return self._weighted_average(nodes, rules, rows, _most_allocated)
            case _:
                return self._ratio(nodes, rules, rows)

    @override
    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        if not self._plain:
            return int(self.scores(nodes, rules, np.array([slot]))[0])
        cpu, memory = rules.needs.scored
        of_cpu, of_memory = nodes.allocatable_at("cpu", slot), nodes.allocatable_at("memory", slot)
        cpu += nodes.scored_at("cpu", slot)
        memory += nodes.scored_at("memory", slot)
        one, other = _least_allocated_at(of_cpu, cpu), _least_allocated_at(of_memory, memory)
        if one is None or other is None:
            return one or other or 0
        return (one + other) // 2

    def _weighted_average(self, nodes, rules, rows, one) -> Ints:  # type: ignore[no-untyped-def]  # noqa: ANN001
        total = np.zeros(len(at(nodes.alive, rows)), dtype=np.int64)
        weights = np.zeros_like(total)
        for capacity, wanted, weight in self._resources(nodes, rules, rows):
            present = capacity > 0
            total += weight * np.where(present, one(np.maximum(capacity, 1), wanted), 0)
            weights += weight * present
        return total // np.maximum(weights, 1)

    def _ratio(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        """Score by RequestedToCapacityRatio: interpolate utilization, and ignore scores of 0."""
        total = np.zeros(len(at(nodes.alive, rows)), dtype=np.int64)
        weights = np.zeros_like(total)
        for capacity, wanted, weight in self._resources(nodes, rules, rows):
            used = np.minimum(wanted * 100 // np.maximum(capacity, 1), 100)
            scores = self._arguments.line[np.where(wanted > capacity, 100, used)]
            counted = (capacity > 0) & (scores > 0)
            total += weight * scores * counted
            weights += weight * counted
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)

    def _resources(
        self, nodes: NodeTable, rules: NodeRules, rows: Rows
    ) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield (allocatable, requested with this pod, weight) for each scored resource.

        An extended resource that the pod does not request is omitted, as in Kubernetes.
        """
        asked = dict(rules.needs.scored_amounts)
        scored = dict(zip(("cpu", "memory"), rules.needs.scored, strict=True))
        for resource, weight in self._arguments.resources:
            if resource in scored:
                wanted = at(nodes.scored(resource), rows) + scored[resource]
            elif resource in NATIVE_ORDER or resource in asked:
                wanted = at(nodes.requested(resource), rows) + asked.get(resource, 0)
            else:
                continue
            yield at(nodes.allocatable(resource), rows), wanted, weight


def _arguments(scoring: ScoringStrategy) -> FitArguments:
    ratio = scoring.requested_to_capacity_ratio
    points = () if ratio is None else ratio.shape
    return FitArguments(
        strategy=scoring.type,
        resources=resources_of(scoring.resources),
        shape=shape_of(points),
    )


def _least_allocated_evenly(nodes: NodeTable, resource: str, amount: int, rows: Rows) -> Ints:
    """Return the LeastAllocated score of cpu or memory if nodes divide evenly, shape (rows,)."""
    unused = at(nodes.allocatable(resource), rows) - at(nodes.scored(resource), rows)
    unused -= amount
    np.maximum(unused, 0, out=unused)
    shares = unused * float(MAX_NODE_SCORE)
    shares /= at(nodes.divisor(resource), rows)
    return shares.astype(np.int64)


def _least_allocated_at(capacity: int, wanted: int) -> int | None:
    """Return the LeastAllocated score of one node, or None if it lacks the resource."""
    if capacity == 0:
        return None
    return (capacity - wanted) * MAX_NODE_SCORE // capacity if wanted < capacity else 0


def _least_allocated(capacity: Ints, wanted: Ints) -> Ints:
    return np.where(wanted <= capacity, (capacity - wanted) * MAX_NODE_SCORE // capacity, 0)


def _most_allocated(capacity: Ints, wanted: Ints) -> Ints:
    return np.minimum(wanted, capacity) * MAX_NODE_SCORE // capacity
