"""The current allowances of stored disruption budgets, given the existing pods.

A pod is healthy if it is placed and neither terminating nor finished, unless it reports that it is
not ready. The desired number of pods is
the sum of the replicas of the replica sets, stateful sets, and replication controllers that manage
selected pods, and one for each selected pod that none of them manages.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from service.engine import Cluster
from service.engine.state.pods.classes import PodClass
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import ObjectName, OwnerReference
from service.model.core.selectors import matches
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import (
    POD_DISRUPTION_BUDGET,
    DisruptionBudget,
    PodDisruptionBudgetBody,
    PodDisruptionBudgetStatus,
    need_of,
    protects_from_eviction,
)
from service.model.workloads.owners import (
    ReplicaSetBody,
    ReplicationControllerBody,
    StatefulSetBody,
)

StoredBudget = DeclaredObject[PodDisruptionBudgetBody]


def budgets_of(cluster: Cluster, *, as_given: bool) -> list[DisruptionBudget]:
    """Return all budgets with what they allow: given the existing pods, or as their `status` says."""
    budgets = list(cluster.objects.having(PodDisruptionBudgetBody).values())
    if as_given:
        return [_budget(budget, budget.body.status) for budget in budgets]
    return [_budget(budget, status_of_budget(cluster, budget)) for budget in budgets]


class BudgetCache:
    """Caches the budgets of a cluster until anything changes."""

    def __init__(self) -> None:
        self._seen: tuple[Cluster, int, bool] | None = None
        self._budgets: list[DisruptionBudget] = []

    def of(self, cluster: Cluster, *, as_given: bool) -> list[DisruptionBudget]:
        """Return all budgets with their allowances, like `budgets_of`, but once per state."""
        state = (cluster, cluster.version, as_given)
        if self._seen != state:
            self._budgets = budgets_of(cluster, as_given=as_given)
            self._seen = state
        return self._budgets


class BudgetsByNamespace:
    """The budgets of a cluster, with lazily computed allowances."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_namespace: defaultdict[str, list[StoredBudget]] = defaultdict(list)
        for _, budget in sorted(cluster.objects.having(PodDisruptionBudgetBody).items()):
            self._by_namespace[budget.namespace].append(budget)

    def blocking(self, pod: Pod) -> str | None:
        """Return the name of the first budget that does not allow an eviction, or None.

        As in Kubernetes' eviction API, a budget with an empty selector applies to all pods.
        """
        for budget in self.selecting(pod):
            if _exhausted_status(self._cluster, budget, pod) is not None:
                return budget.name
        return None

    def selecting(self, pod: Pod) -> Iterator[StoredBudget]:
        """Yield the budgets that select a pod, except those that count it as evicted already."""
        return _selecting(self._by_namespace.get(pod.namespace, ()), pod)


def exhausted_budgets(
    cluster: Cluster, pod: Pod
) -> Iterator[tuple[str, PodDisruptionBudgetStatus]]:
    """Yield the name and status of each budget that does not allow the eviction of a pod."""
    within = cluster.objects.within(POD_DISRUPTION_BUDGET.kind, pod.namespace)
    budgets = [cast("StoredBudget", budget) for _, budget in sorted(within.items())]
    for budget in _selecting(budgets, pod):
        status = _exhausted_status(cluster, budget, pod)
        if status is not None:
            yield budget.name, status


def _exhausted_status(
    cluster: Cluster, budget: StoredBudget, pod: Pod
) -> PodDisruptionBudgetStatus | None:
    """Return the status of a budget that selects a pod and forbids its eviction, or None."""
    status = status_of_budget(cluster, budget)
    if status.disruptions_allowed > 0:
        return None
    protected = protects_from_eviction(
        budget.body.spec, pod, healthy=status.current_healthy, desired=status.desired_healthy
    )
    return status if protected else None


def _selecting(budgets: Iterable[StoredBudget], pod: Pod) -> Iterator[StoredBudget]:
    for budget in budgets:
        if not matches(budget.body.spec.selector, pod.labels):
            continue
        if pod.name not in budget.body.status.disrupted_pods:
            yield budget


class Allowances:
    """What budgets still allow while several pods are evicted before replacements exist."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._budgets = BudgetsByNamespace(cluster)
        self._first: dict[ObjectName, PodDisruptionBudgetStatus] = {}
        """The statuses of the budgets when they were first read."""
        self._taken: Counter[ObjectName] = Counter()

    def renew(self) -> None:
        """Discard the allowances, to be recomputed from the existing pods on the next read."""
        self._first.clear()
        self._taken.clear()

    def observe(self, pods: Iterable[Pod]) -> None:
        """Record the current allowances of the budgets that cover some pods."""
        for pod in pods:
            for budget in self._budgets.selecting(pod):
                self._status_of(budget)

    def give_back(self) -> None:
        """Discard the evictions counted so far."""
        self._taken.clear()

    def blocking(self, pods: Sequence[Pod]) -> str | None:
        """Return the name of the first budget that does not allow all these evictions, or None."""
        for key, (budget, count) in self._needed(pods).items():
            if self._status_of(budget).disruptions_allowed - self._taken[key] < count:
                return budget.name
        return None

    def take(self, pods: Sequence[Pod]) -> None:
        """Count pods as evicted."""
        for key, (_, count) in self._needed(pods).items():
            self._taken[key] += count

    def _needed(self, pods: Iterable[Pod]) -> dict[ObjectName, tuple[StoredBudget, int]]:
        needed: dict[ObjectName, tuple[StoredBudget, int]] = {}
        for pod in pods:
            for budget in self._budgets.selecting(pod):
                key, status = (budget.namespace, budget.name), self._status_of(budget)
                healthy = status.current_healthy - self._taken[key]
                if not protects_from_eviction(
                    budget.body.spec, pod, healthy=healthy, desired=status.desired_healthy
                ):
                    continue
                needed[key] = budget, needed.get(key, (budget, 0))[1] + 1
        return needed

    def _status_of(self, budget: StoredBudget) -> PodDisruptionBudgetStatus:
        key = budget.namespace, budget.name
        if key not in self._first:
            self._first[key] = status_of_budget(self._cluster, budget)
        return self._first[key]


def status_of_budget(cluster: Cluster, budget: StoredBudget) -> PodDisruptionBudgetStatus:
    """Compute the status of one stored budget."""
    spec, disrupted = budget.body.spec, budget.body.status.disrupted_pods
    selected = cluster.selected_classes(budget.namespace, spec.selector)
    healthy = sum(
        sum(pod_class.nodes.values()) - pod_class.unready
        for pod_class in selected
        if not pod_class.terminating
    )
    healthy -= sum(_is_healthy(cluster, budget, name) for name in disrupted)
    need = need_of(
        spec,
        matching=sum(pod_class.pods for pod_class in selected),
        wanted=_desired_pods(cluster, budget.namespace, selected),
    )
    allowed = max(healthy - need.desired, 0) if need.expected else 0
    return PodDisruptionBudgetStatus(
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=need.desired,
        expected_pods=need.expected,
        disrupted_pods=disrupted,
    )


def _budget(budget: StoredBudget, status: PodDisruptionBudgetStatus) -> DisruptionBudget:
    return DisruptionBudget(
        namespace=budget.namespace,
        name=budget.name,
        selector=budget.body.spec.selector,
        disruptions_allowed=status.disruptions_allowed,
        disrupted_pods=frozenset(status.disrupted_pods),
    )


def _is_healthy(cluster: Cluster, budget: StoredBudget, name: str) -> bool:
    pod = cluster.pod(budget.namespace, name)
    return (
        pod is not None
        and matches(budget.body.spec.selector, pod.labels)
        and pod.node_name is not None
        and cluster.node(pod.node_name) is not None
        and not (pod.terminating or pod.finished or pod.unready)
    )


def _desired_pods(cluster: Cluster, namespace: str, selected: list[PodClass]) -> int:
    managed: defaultdict[OwnerReference, int] = defaultdict(int)
    for pod_class in selected:
        for owner, pods in pod_class.owners.items():
            managed[owner] += pods
    unmanaged = sum(pod_class.pods for pod_class in selected) - sum(managed.values())
    for owner, pods in managed.items():
        replicas = _replicas(cluster, namespace, owner)
        unmanaged += pods if replicas is None else replicas
    return unmanaged


def _replicas(cluster: Cluster, namespace: str, owner: OwnerReference) -> int | None:
    """Return the number of pods that an owner wants, or None if unknown."""
    for api_version, manager in _managers(cluster, namespace, owner.name):
        if (owner.api_version, owner.kind) == (api_version, manager.kind):
            same = not owner.uid or not manager.uid or owner.uid == manager.uid
            return manager.body.spec.replicas if same else None
    return None


Manager = (
    DeclaredObject[ReplicaSetBody]
    | DeclaredObject[StatefulSetBody]
    | DeclaredObject[ReplicationControllerBody]
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
