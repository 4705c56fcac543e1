"""Preemption dry runs on one node, by removing pods and calling all filters.

This is slow, but unlike `service.engine.preemption.all_nodes` it does not depend on headrooms.
"""

from service.engine.cluster import Cluster
from service.engine.preemption.budgets import Budgets, violating_pods
from service.engine.preemption.node_check import NodeCheck
from service.engine.preemption.victims import Removability, Victims, victims_of
from service.engine.state.pods.importance import importance
from service.model.pods.pod import Pod


class NodeByNodeSearch:
    """Tries nodes one by one for one pod, leaving the cluster unchanged."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        removability: Removability,
        budgets: Budgets,
        *,
        follows_code: bool = False,
    ) -> None:
        """Create a search; with `follows_code`, evictions count as in kube-scheduler's code."""
        self._cluster = cluster
        self._pod = pod
        template = cluster.class_of(pod).template
        self._spread = template.hard_spread if follows_code else ()
        self._removability = removability
        self._budgets = budgets
        self._check = NodeCheck(cluster, pod)

    def victims_on(self, slot: int) -> Victims | list[str]:
        """Return the victims on a node, or why removing all removable pods is not enough."""
        cluster = self._cluster
        mark = cluster.mark()
        removed = sorted(
            (pod for pod, _ in cluster.placed_on(slot) if self._removability.has(pod)),
            key=importance,
        )
        for pod in removed:
            cluster.delete_pod(pod.namespace, pod.name)
            self._discount(pod, slot, 1)
        try:
            return self._check.reasons(slot) or self._reprieve(slot, removed)
        finally:
            cluster.undo(mark)

    def _reprieve(self, slot: int, removed: list[Pod]) -> Victims:
        """Reprieve as many pods as possible, those protected by budgets first; return the rest."""
        cluster = self._cluster
        pairs = list(zip(removed, violating_pods(removed, self._budgets), strict=True))
        open_filters = self._check.open_filters(slot)
        violations, victims = 0, []
        for pod, violating in sorted(pairs, key=lambda pair: not pair[1]):
            mark = cluster.mark()
            cluster.put_pod(pod)
            self._discount(pod, slot, -1)
            if self._check.still_fits(slot, open_filters):
                continue
            cluster.undo(mark)
            victims.append(pod)
            violations += violating
        return victims_of(victims, violations)

    def _discount(self, pod: Pod, slot: int, pods: int) -> None:
        """Subtract a terminating pod that leaves from counts that never had it."""
        if not pod.terminating or not self._spread or pod.namespace != self._pod.namespace:
            return
        counters = {rule.counter: None for rule in self._spread if rule.uncounts(pod.labels)}
        for counter in counters:
            if counter is not None:
                self._cluster.discount(counter, slot, pods)
