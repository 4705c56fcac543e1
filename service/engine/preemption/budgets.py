"""The pods whose eviction would violate a PodDisruptionBudget.

The removable pods of a node are processed in order of importance. Each uses up one disruption of
every budget that protects it; once a budget has none left, the pod violates it. From Kubernetes
1.37 on, such a pod uses up nothing of the budgets that follow. There, kube-scheduler's order of
budgets is that of a cache; here it is that of their names.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from service.engine.state.nodes.columns import Mask, Slots
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.importance import ImportanceTable
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.selectors import matches
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget

Pair = tuple[str, str]


class Budgets(NamedTuple):
    """The budgets that protect any pods, in the order in which they are used up."""

    items: tuple[DisruptionBudget, ...]
    stops_at_exceeded: bool
    """Whether a pod that violates a budget uses up nothing of the budgets that follow."""

    @classmethod
    def of(cls, budgets: Iterable[DisruptionBudget], version: SchedulerVersion) -> Self:
        """Return the budgets as kube-scheduler of a version charges victims to them."""
        stops_at_exceeded = version.stops_at_exceeded_budget
        protecting = [budget for budget in budgets if budget.protects_any]
        if stops_at_exceeded:
            protecting.sort(key=lambda budget: (budget.namespace, budget.name))
        return cls(tuple(protecting), stops_at_exceeded)


def violating_pods(pods: Iterable[Pod], budgets: Budgets) -> list[bool]:
    """Return whether each pod's eviction violates a budget; `pods` are most important first."""
    left = [budget.disruptions_allowed for budget in budgets.items]
    return [_take(pod, budgets, left) for pod in pods]


def _take(pod: Pod, budgets: Budgets, left: list[int]) -> bool:
    exceeds = False
    for index, budget in enumerate(budgets.items):
        if budget.protects(pod):
            left[index] -= 1
            exceeds |= left[index] < 0
            if exceeds and budgets.stops_at_exceeded:
                return True
    return exceeds


def violating_on(
    slots: Slots, removable: Mask, table: ImportanceTable, budgets: Budgets
) -> Mask | None:
    """Return which removable pods violate a budget, as a mask like `removable`, or None.

    Args:
        slots: the nodes.
        removable: the pods that may be evicted from them, shape (depth, slots).
        table: the pods of all nodes by importance.
        budgets: all budgets.
    """
    protected = _Protection(budgets.items).by_budget(table.classes)
    if not protected:
        return None
    exhausted = np.zeros(len(table.classes), dtype=np.bool_)
    column_of = np.full(len(table.crowded), -1, dtype=np.intp)
    column_of[slots] = np.arange(len(slots))
    scarce: list[tuple[DisruptionBudget, list[int], Slots]] = []
    for index, ids in protected.items():
        budget = budgets.items[index]
        if budget.disruptions_allowed <= 0 and not budget.disrupted_pods:
            exhausted[ids] = True
            continue
        columns = _columns(budget, [table.classes[class_id] for class_id in ids], column_of)
        if len(columns):
            scarce.append((budget, ids, columns))
    violating: Mask = exhausted.take(table.class_ids[: table.used].take(slots, axis=1))
    violating &= removable
    if scarce:
        _mark_beyond(violating, slots, removable, table, scarce)
    if budgets.stops_at_exceeded and len(protected) > 1:
        _mark_in_turn(violating, slots, removable, table, protected, budgets)
    return violating


def _mark_in_turn(
    violating: Mask,
    slots: Slots,
    removable: Mask,
    table: ImportanceTable,
    protected: Mapping[int, Sequence[int]],
    budgets: Budgets,
) -> None:
    """Mark anew the pods of nodes with any pod that several budgets protect, one pod after another.

    Otherwise, no pod of a budget depends on what another budget has left.
    """
    users = Counter(class_id for ids in protected.values() for class_id in ids)
    shared = np.zeros(len(table.classes), dtype=np.bool_)
    shared[[class_id for class_id, count in users.items() if count > 1]] = True
    affected = shared.take(table.class_ids[: table.used].take(slots, axis=1)) & removable
    for column in np.flatnonzero(affected.any(axis=0)).tolist():
        pods = table.pods_on(int(slots[column]))
        ranks = np.flatnonzero(removable[:, column])
        violating[:, column] = False
        violating[ranks, column] = violating_pods([pods[rank] for rank in ranks], budgets)


def _columns(budget: DisruptionBudget, classes: Sequence[PodClass], column_of: Slots) -> Slots:
    """Return the nodes with more protected pods than the number of disruptions a budget allows."""
    if sum(max(pod_class.nodes.values()) for pod_class in classes) <= budget.disruptions_allowed:
        return np.array([], dtype=np.intp)
    pods: Counter[int] = Counter()
    for pod_class in classes:
        pods.update(pod_class.nodes)
    slots = [slot for slot, count in pods.items() if count > budget.disruptions_allowed]
    columns = column_of[slots]
    present: Slots = columns[columns >= 0]
    return present


def _mark_beyond(
    violating: Mask,
    slots: Slots,
    removable: Mask,
    table: ImportanceTable,
    scarce: Sequence[tuple[DisruptionBudget, list[int], Slots]],
) -> None:
    """Mark the pods beyond the allowed disruptions, for all budgets and their nodes at once."""
    members = np.zeros((len(scarce), len(table.classes)), dtype=np.bool_)
    for row, (_, ids, _) in enumerate(scarce):
        members[row, ids] = True
    rows = np.repeat(
        np.arange(len(scarce)), [len(columns_of_budget) for _, _, columns_of_budget in scarce]
    )
    columns = np.concatenate([columns_of_budget for _, _, columns_of_budget in scarce])
    class_ids = table.class_ids[: table.used].take(slots[columns], axis=1)
    counted = members[rows, class_ids] & removable[:, columns]
    for at, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        disrupted = scarce[row][0].disrupted_pods
        for rank, pod in enumerate(table.pods_on(int(slots[column])) if disrupted else ()):
            counted[rank, at] &= pod.name not in disrupted
    allowed = np.array([budget.disruptions_allowed for budget, _, _ in scarce])[rows]
    ranks, at_columns = np.nonzero(counted & (counted.cumsum(axis=0) > allowed))
    violating[ranks, columns[at_columns]] = True


class _Protection:
    """The budgets, indexed by a required label so that each class is checked against few."""

    def __init__(self, budgets: Sequence[DisruptionBudget]) -> None:
        self._budgets = budgets
        self._by_pair: defaultdict[tuple[str, Pair], list[int]] = defaultdict(list)
        self._others: defaultdict[str, list[int]] = defaultdict(list)
        for index, budget in enumerate(budgets):
            labels = budget.selector.match_labels if budget.selector is not None else None
            if labels:
                self._by_pair[budget.namespace, next(iter(labels.items()))].append(index)
            elif budget.protects_any:
                self._others[budget.namespace].append(index)

    def by_budget(self, classes: Sequence[PodClass]) -> dict[int, list[int]]:
        """Return the indexes of the protected classes by the index of each budget that has any."""
        protected: defaultdict[int, list[int]] = defaultdict(list)
        for number, pod_class in enumerate(classes):
            if pod_class.nodes and pod_class.is_labeled:
                for index in self._budgets_of(pod_class):
                    protected[index].append(number)
        return protected

    def _budgets_of(self, pod_class: PodClass) -> Iterator[int]:
        namespace, labels = pod_class.namespace, pod_class.labels
        known = list(self._others.get(namespace, ()))
        for pair in labels.items():
            known += self._by_pair.get((namespace, pair), ())
        return (index for index in known if matches(self._budgets[index].selector, labels))
