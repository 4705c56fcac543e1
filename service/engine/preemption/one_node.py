"""Trying out on one node whether a pod fits if others leave, by removing them and asking all filters.

This is slow, but asks nothing special of the filters, as
`service.engine.preemption.all_nodes` does.
"""

from collections.abc import Sequence

from service.engine.cluster import Cluster
from service.engine.preemption.budgets import violating_pods
from service.engine.preemption.node_check import NodeCheck
from service.engine.preemption.victims import Removability, Victims, victims_of
from service.engine.state.pods.importance import importance
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget


class NodeByNodeSearch:
    """Tries out one node after the other for one pod."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        removability: Removability,
        budgets: Sequence[DisruptionBudget],
    ) -> None:
        self._cluster = cluster
        self._removability = removability
        self._budgets = budgets
        self._check = NodeCheck(cluster, pod)

    def on(self, slot: int) -> Victims | list[str]:
        """The victims on a node, or the reasons why it does not help if all removable pods leave.

        The cluster is as before when this returns.
        """
        cluster = self._cluster
        mark = cluster.mark()
        removed = sorted(
            (each for each, _ in cluster.placed_on(slot) if self._removability.has(each)),
            key=importance,
        )
        for each in removed:
            cluster.delete_pod(each.namespace, each.name)
        try:
            return self._check.reasons(slot) or self._reprieve(slot, removed)
        finally:
            cluster.undo(mark)

    def _reprieve(self, slot: int, removed: list[Pod]) -> Victims:
        """Take back whom the pod can do with, those first whom budgets protect."""
        cluster = self._cluster
        pairs = list(zip(removed, violating_pods(removed, self._budgets), strict=True))
        open_filters = self._check.open_filters(slot)
        violations, victims = 0, []
        for each, violating in sorted(pairs, key=lambda pair: not pair[1]):
            mark = cluster.mark()
            cluster.put_pod(each)
            if self._check.still_fits(slot, open_filters):
                continue
            cluster.undo(mark)
            victims.append(each)
            violations += violating
        return victims_of(victims, violations)
