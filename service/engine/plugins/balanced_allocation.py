"""NodeResourcesBalancedAllocation: nodes whose resource utilizations are closer score higher."""

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from service.engine.framework.plugin import (
    DEFAULT_RESOURCES,
    MAX_NODE_SCORE,
    NodePlugin,
    Resources,
    resources_of,
)
from service.engine.state.nodes.columns import Ints, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import BalancedAllocationArgs
from service.model.cluster.plugin_rules import Arguments
from service.model.core.resources import NATIVE_RESOURCES

NAME = "NodeResourcesBalancedAllocation"
HALF_NODE_SCORE = MAX_NODE_SCORE // 2
Floats = npt.NDArray[np.float64]


class BalancedAllocation(NodePlugin):
    """Scores the balance that results on a node, as kube-scheduler does up to version 1.35."""

    name: ClassVar[str] = NAME
    weight: ClassVar[int] = 1
    reads_usage: ClassVar[bool] = True
    arguments: ClassVar[type[Arguments] | None] = BalancedAllocationArgs

    def __init__(self, resources: Resources = DEFAULT_RESOURCES) -> None:
        self._resources = tuple(name for name, _ in resources)
        self._plain = self._resources == ("cpu", "memory")

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> "BalancedAllocation":
        arguments = profile.arguments_of(cls.name, BalancedAllocationArgs)
        by_gain = config.scheduler_version.scores_balance_gain
        plugin = BalanceGain if by_gain else BalancedAllocation
        return plugin(resources_of(arguments.resources))

    @override
    def scores_for(self, rules: NodeRules) -> bool:
        """Return whether the pod requests any of the resources; if not, the score is skipped."""
        if self._plain:
            return rules.needs.requests_cpu_or_memory
        asked = dict(rules.needs.amounts)
        return any(asked.get(name) for name in self._resources)

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        if self._plain and nodes.divides_evenly:
            return _plain_balance(nodes, rules.needs.cpu, rules.needs.memory, rows)
        return _balance(nodes, self._amounts(rules), rows)

    @override
    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        if not self._plain:
            return int(self.scores(nodes, rules, np.array([slot]))[0])
        return _balance_at(nodes, rules.needs.cpu, rules.needs.memory, slot)

    def _amounts(self, rules: NodeRules) -> dict[str, int]:
        """Return what the pod requests of each scored resource.

        An extended resource that the pod does not request is omitted, as in Kubernetes.
        """
        asked = dict(rules.needs.amounts)
        return {
            name: asked.get(name, 0)
            for name in self._resources
            if name in NATIVE_RESOURCES or asked.get(name)
        }


class BalanceGain(BalancedAllocation):
    """Scores how much the pod improves a node's balance, as kube-scheduler does from version 1.36.

    The score is 75 if the balance stays as it is, and between 50 and 100 (kubernetes#135573).
    """

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        if self._plain and nodes.divides_evenly:
            scores = _plain_balance(nodes, rules.needs.cpu, rules.needs.memory, rows)
            scores -= _plain_balance(nodes, 0, 0, rows)
        else:
            amounts = self._amounts(rules)
            scores = _balance(nodes, amounts, rows) - _balance(
                nodes, dict.fromkeys(amounts, 0), rows
            )
        scores += HALF_NODE_SCORE
        scores >>= 1
        scores += HALF_NODE_SCORE
        return scores

    @override
    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        if not self._plain:
            return int(self.scores(nodes, rules, np.array([slot]))[0])
        before = _balance_at(nodes, 0, 0, slot)
        after = _balance_at(nodes, rules.needs.cpu, rules.needs.memory, slot)
        return HALF_NODE_SCORE + (HALF_NODE_SCORE + after - before) // 2


def _balance(nodes: NodeTable, amounts: Mapping[str, int], rows: Rows) -> Ints:
    """Return 100 less the deviation of the requested fractions with `amounts`, shape (rows,)."""
    fractions = []
    for name, amount in amounts.items():
        capacity = at(nodes.allocatable(name), rows)
        wanted = at(nodes.requested(name), rows) + amount
        fraction = np.minimum(wanted / np.maximum(capacity, 1), 1.0)
        fractions.append(np.where(capacity > 0, fraction, np.nan))
    return ((1 - _deviation(np.array(fractions))) * MAX_NODE_SCORE).astype(np.int64)


def _plain_balance(nodes: NodeTable, cpu: int, memory: int, rows: Rows) -> Ints:
    """Return the balance if only cpu and memory count and every node has both, shape (rows,)."""
    scores = _fraction(nodes, "cpu", cpu, rows)
    scores -= _fraction(nodes, "memory", memory, rows)
    scores /= 2
    np.abs(scores, out=scores)
    np.subtract(1, scores, out=scores)
    scores *= MAX_NODE_SCORE
    return scores.astype(np.int64)


def _balance_at(nodes: NodeTable, cpu: int, memory: int, slot: int) -> int:
    """Return the balance of cpu and memory on one node, from 50 to 100."""
    of_cpu, of_memory = nodes.allocatable_at("cpu", slot), nodes.allocatable_at("memory", slot)
    if of_cpu == 0 or of_memory == 0:
        return MAX_NODE_SCORE
    one = min((nodes.requested_at("cpu", slot) + cpu) / of_cpu, 1.0)
    other = min((nodes.requested_at("memory", slot) + memory) / of_memory, 1.0)
    return int((1 - abs((one - other) / 2)) * MAX_NODE_SCORE)


def _fraction(nodes: NodeTable, resource: str, amount: int, rows: Rows) -> Floats:
    """Return the requested fraction of cpu or memory with `amount`, shape (rows,), at most 1."""
    wanted = at(nodes.requested(resource), rows) + amount
    fraction: Floats = wanted / at(nodes.divisor(resource), rows)
    return np.minimum(fraction, 1.0, out=fraction)


def _deviation(fractions: Floats) -> Floats:
    """Return the standard deviation across resources, shape (rows,), ignoring NaN values.

    `fractions` has the shape (resources, rows); NaN stands for a resource that a node lacks.
    """
    known = ~np.isnan(fractions)
    count = known.sum(axis=0)
    filled = np.where(known, fractions, 0.0)
    if len(fractions) == 2:  # noqa: PLR2004 - Kubernetes' special case
        return np.where(count == 2, np.abs((filled[0] - filled[1]) / 2), 0.0)  # noqa: PLR2004
    deviation = np.zeros(fractions.shape[1])
    for row in range(fractions.shape[1]):
        deviation[row] = _deviation_of(
            [f for f, k in zip(filled[:, row], known[:, row], strict=True) if k]
        )
    return deviation


def _deviation_of(fractions: list[float]) -> float:
    """Return the standard deviation, computed in Kubernetes' order to be equal bit for bit."""
    if len(fractions) < 2:  # noqa: PLR2004
        return 0.0
    if len(fractions) == 2:  # noqa: PLR2004
        return abs((fractions[0] - fractions[1]) / 2)
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
