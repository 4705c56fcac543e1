"""What stored disruption budgets allow at this revision, by the pods that are there.

A pod is healthy if it is placed and is neither leaving nor over. Wanted are as many pods as the
replica sets, stateful sets and replication controllers say that manage the selected pods, and one
for each selected pod that none of them manages.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from service.engine import Cluster
from service.engine.state.pods.classes import PodClass
from service.model.core.primitives import ObjectName, OwnerReference
from service.model.kinds_kept_for_rules.disruption_budgets import (
    POD_DISRUPTION_BUDGET,
    DisruptionBudget,
    PodDisruptionBudgetBody,
    PodDisruptionBudgetStatus,
    need_of,
)
from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptObject
from service.model.kinds_kept_for_rules.services_and_pod_owners import (
    ReplicaSetBody,
    ReplicationControllerBody,
    StatefulSetBody,
)
from service.model.objects.pods_and_nodes import Pod
from service.model.objects.selectors import matches

Kept = KeptObject[PodDisruptionBudgetBody]


def budgets_of(cluster: Cluster, *, as_given: bool) -> list[DisruptionBudget]:
    """All budgets, with what they allow now: by the pods that are there, or as their `status` says."""
    kept = list(cluster.objects.having(PodDisruptionBudgetBody).values())
    if as_given:
        return [_budget(each, each.body.status) for each in kept]
    return [_budget(each, status_of_budget(cluster, each)) for each in kept]


class BudgetCache:
    """The budgets of a cluster, which are worked out again only after something has changed."""

    def __init__(self) -> None:
        self._seen: tuple[Cluster, int, bool] | None = None
        self._budgets: list[DisruptionBudget] = []

    def of(self, cluster: Cluster, *, as_given: bool) -> list[DisruptionBudget]:
        """Do what `budgets_of` does."""
        asked = (cluster, cluster.version, as_given)
        if self._seen != asked:
            self._budgets = budgets_of(cluster, as_given=as_given)
            self._seen = asked
        return self._budgets


class BudgetsByNamespace:
    """The budgets of a cluster, of which each is asked what it allows at that moment."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_namespace: defaultdict[str, list[Kept]] = defaultdict(list)
        for _, kept in sorted(cluster.objects.having(PodDisruptionBudgetBody).items()):
            self._by_namespace[kept.namespace].append(kept)

    def blocking(self, pod: Pod) -> str | None:
        """Return the name of the first budget that does not allow an eviction; None: all allow it.

        As in Kubernetes' eviction API, a budget with an empty selector is for all pods.
        """
        for kept in self.guarding(pod):
            if status_of_budget(self._cluster, kept).disruptions_allowed <= 0:
                return kept.name
        return None

    def guarding(self, pod: Pod) -> Iterator[Kept]:
        """Yield the budgets of which an eviction of a pod takes one of those that are allowed."""
        return _guarding(self._by_namespace.get(pod.namespace, ()), pod)


def exhausted_budgets(
    cluster: Cluster, pod: Pod
) -> Iterator[tuple[str, PodDisruptionBudgetStatus]]:
    """Yield the name and status of each budget that does not allow the eviction of a pod."""
    within = cluster.objects.within(POD_DISRUPTION_BUDGET.kind, pod.namespace)
    kept = [cast("Kept", each) for _, each in sorted(within.items())]
    for each in _guarding(kept, pod):
        status = status_of_budget(cluster, each)
        if status.disruptions_allowed <= 0:
            yield each.name, status


def _guarding(budgets: Iterable[Kept], pod: Pod) -> Iterator[Kept]:
    for kept in budgets:
        if not matches(kept.body.spec.selector, pod.labels):
            continue
        if pod.name not in kept.body.status.disrupted_pods:
            yield kept


class Allowances:
    """What budgets still allow while pods leave at once, before any that takes their place is there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._budgets = BudgetsByNamespace(cluster)
        self._allowed: dict[ObjectName, int] = {}
        """What budgets allowed when they were first asked for."""
        self._taken: Counter[ObjectName] = Counter()

    def renew(self) -> None:
        """Go by the pods that are there when budgets are asked for next: whoever left has been followed."""
        self._allowed.clear()
        self._taken.clear()

    def look(self, pods: Iterable[Pod]) -> None:
        """Note what the budgets of some pods allow now."""
        for pod in pods:
            for kept in self._budgets.guarding(pod):
                self._allowed_by(kept)

    def give_back(self) -> None:
        """Count nobody as evicted."""
        self._taken.clear()

    def blocking(self, pods: Sequence[Pod]) -> str | None:
        """Return the name of the first budget that does not allow all these evictions; None: all do."""
        for key, (kept, count) in self._needed(pods).items():
            if self._allowed_by(kept) - self._taken[key] < count:
                return kept.name
        return None

    def take(self, pods: Sequence[Pod]) -> None:
        """Count pods as evicted."""
        for key, (kept, count) in self._needed(pods).items():
            self._allowed_by(kept)
            self._taken[key] += count

    def _needed(self, pods: Iterable[Pod]) -> dict[ObjectName, tuple[Kept, int]]:
        needed: dict[ObjectName, tuple[Kept, int]] = {}
        for pod in pods:
            for kept in self._budgets.guarding(pod):
                key = kept.namespace, kept.name
                needed[key] = kept, needed.get(key, (kept, 0))[1] + 1
        return needed

    def _allowed_by(self, kept: Kept) -> int:
        key = kept.namespace, kept.name
        if key not in self._allowed:
            self._allowed[key] = status_of_budget(self._cluster, kept).disruptions_allowed
        return self._allowed[key]


def status_of_budget(cluster: Cluster, kept: Kept) -> PodDisruptionBudgetStatus:
    """What one stored budget allows now."""
    spec, disrupted = kept.body.spec, kept.body.status.disrupted_pods
    selected = cluster.selected_classes(kept.namespace, spec.selector)
    healthy = sum(sum(each.nodes.values()) for each in selected if not each.terminating)
    healthy -= sum(_is_healthy(cluster, kept, name) for name in disrupted)
    need = need_of(
        spec,
        matching=sum(each.pods for each in selected),
        wanted=_wanted(cluster, kept.namespace, selected),
    )
    allowed = max(healthy - need.desired, 0) if need.expected else 0
    return PodDisruptionBudgetStatus(
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=need.desired,
        expected_pods=need.expected,
        disrupted_pods=disrupted,
    )


def _budget(kept: Kept, status: PodDisruptionBudgetStatus) -> DisruptionBudget:
    return DisruptionBudget(
        namespace=kept.namespace,
        selector=kept.body.spec.selector,
        disruptions_allowed=status.disruptions_allowed,
        disrupted_pods=frozenset(status.disrupted_pods),
    )


def _is_healthy(cluster: Cluster, kept: Kept, name: str) -> bool:
    pod = cluster.pod(kept.namespace, name)
    return (
        pod is not None
        and matches(kept.body.spec.selector, pod.labels)
        and pod.node_name is not None
        and cluster.node(pod.node_name) is not None
        and not (pod.terminating or pod.finished)
    )


def _wanted(cluster: Cluster, namespace: str, selected: list[PodClass]) -> int:
    managed: defaultdict[OwnerReference, int] = defaultdict(int)
    for each in selected:
        for owner, pods in each.owners.items():
            managed[owner] += pods
    unmanaged = sum(each.pods for each in selected) - sum(managed.values())
    for owner, pods in managed.items():
        replicas = _replicas(cluster, namespace, owner)
        unmanaged += pods if replicas is None else replicas
    return unmanaged


def _replicas(cluster: Cluster, namespace: str, owner: OwnerReference) -> int | None:
    """How many pods an owner wants; None if it is not known."""
    for api_version, kept in _managers(cluster, namespace, owner.name):
        if (owner.api_version, owner.kind) == (api_version, kept.kind):
            same = not owner.uid or not kept.uid or owner.uid == kept.uid
            return kept.body.spec.replicas if same else None
    return None


Manager = (
    KeptObject[ReplicaSetBody] | KeptObject[StatefulSetBody] | KeptObject[ReplicationControllerBody]
)


def _managers(cluster: Cluster, namespace: str, name: str) -> Iterator[tuple[str, Manager]]:
    key, objects = (namespace, name), cluster.objects
    replica_set = objects.having(ReplicaSetBody).get(key)
    if replica_set is not None:
        yield "apps/v1", replica_set
    stateful_set = objects.having(StatefulSetBody).get(key)
    if stateful_set is not None:
        yield "apps/v1", stateful_set
    controller = objects.having(ReplicationControllerBody).get(key)
    if controller is not None:
        yield "v1", controller
