"""Preemption dry runs on one node that may also evict pods on other nodes.

Rules about other pods may refuse a node because of pods elsewhere in its domains. Only pods on the
node itself and pods blamed by such a rule are removed. First, all of them are removed and then
reprieved by importance, as on a single node. This fails if a removed pod is needed by the pod's
affinity, or by a spread constraint that compares with the emptiest domain. In that case the search
is reversed: pods that a rule currently blames are removed one at a time, and a pod whose removal
did not help stays. This finds a solution if there is one, unless the work budget shared by all
nodes is spent first.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Blame
from service.engine.preemption.budgets import violating_pods
from service.engine.preemption.node_check import NodeCheck
from service.engine.preemption.victims import Cost, Removability, Victims, cost_of, victims_of
from service.engine.state.nodes.topology import NO_DOMAIN
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.importance import importance
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget

SPARE_MAX: Final = 64
"""The number of candidates removed per rule beyond the number that must leave."""
WORK_MAX: Final = 400_000
"""The work budget of the search over all nodes; each listed pod costs one unit."""
REMOVAL: Final = 20
"""The work of removing a pod or trying to reprieve it."""
STEP: Final = 60
"""The work of one step of the reversed search, in addition to listing pods."""
DEPTH_MAX: Final = 100
"""The maximum depth of the reversed search."""
NOTHING: Final = Cost(0, -(2**62), 0, 0, -(2**62))
"""A cost lower than that of any victims."""


class Bound(NamedTuple):
    """A lower bound on the evictions required by rules about other pods."""

    cost: Cost
    slots: frozenset[int]
    """The nodes of the blamed pods that may leave."""


NO_BOUND: Final = Bound(NOTHING, frozenset())


class CrossNodeSearch:
    """Finds the pods to evict, on a node and elsewhere, so that a pod fits there."""

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
        self._wants_others = bool(cluster.class_of(pod).template.affinity)
        self._classes = cluster.placed_classes()
        self._of_rules: dict[Hashable, dict[PodClass, None]] = {}
        """The classes with pods that each rule blames."""
        self._known: dict[tuple[Hashable, int | None], list[Pod]] = {}
        """The pods that each rule blames in a domain before any pod is removed."""
        self._bounds: dict[tuple[Hashable, int | None, int | None], Bound | None] = {}
        self._gone: dict[ObjectName, Pod] = {}
        self._work = WORK_MAX
        """The remaining work budget."""
        self.is_cut_short = False
        """Whether the search was cut short, so that solutions may have been missed."""

    def bound(self, slot: int) -> Bound | None:
        """Return a lower bound on the cost of making room on a node, or None.

        None means that there is no solution, or none that evicts pods elsewhere.
        """
        cost, slots = NO_BOUND
        for blame in self._check.blames(slot):
            bound = NO_BOUND if blame is None else self._bound_of(blame)
            if bound is None:
                return None
            cost = max(cost, bound.cost)
            slots |= bound.slots
        helps = self._wants_others or self._check.is_reserved(slot) or not slots <= {slot}
        return Bound(cost, slots) if helps else None

    def is_leaving(self, slot: int, priority: int) -> bool:
        """Return whether a blamed pod of a lower priority is already being preempted."""
        return any(
            pod.priority < priority and pod.terminating and pod.preempted
            for blame in self._check.blames(slot)
            if blame is not None
            for pod in self._pods_of(blame)
        )

    def victims_for(self, slot: int) -> Victims | None:
        """Return the victims on a node and elsewhere, or None if none were found in time."""
        if self._work <= 0:
            self.is_cut_short = True
            return None
        mark = self._cluster.mark()
        self._gone = {}
        try:
            blames = self._clear(slot)
            if None in blames:
                return None
            if blames:
                self._cluster.undo(mark)
                self._gone = {}
            return self._reprieve(slot) if not blames or self._search(slot, {}, 0) else None
        finally:
            self._cluster.undo(mark)
            self._gone = {}

    def _bound_of(self, blame: Blame) -> Bound | None:
        """Return a rule's bound, shared by a domain's nodes, or None if too few pods may leave."""
        key = blame.rule, blame.domain, blame.may_stay
        if key not in self._bounds:
            self._bounds[key] = self._bound(blame)
        return self._bounds[key]

    def _bound(self, blame: Blame) -> Bound | None:
        pods = self._pods_of(blame)
        removable = sorted(self._free(pods), key=importance)
        needed = max(_leaving_min(blame, len(pods)), 1)
        if needed > len(removable):
            return None
        cheapest = tuple(removable[len(removable) - needed :])
        violations = (
            sum(violating_pods(removable, self._budgets)) if needed == len(removable) else 0
        )
        slots = frozenset(self._cluster.nodes.slots[pod.node_name or ""] for pod in removable)
        return Bound(cost_of(Victims(cheapest, violations)), slots)

    # Removal of all blamed pods at once

    def _clear(self, slot: int) -> list[Blame | None]:
        """Remove all pods that may be in the way, and return the remaining blames."""
        self._remove(self._free(self._pods_on(slot)))
        blames, before = self._check.blames(slot), -1
        while blames and len(self._gone) != before:
            before = len(self._gone)
            for blame in blames:
                if blame is not None:
                    self._remove(self._candidates(blame))
            blames = self._check.blames(slot)
        return blames

    def _candidates(self, blame: Blame) -> list[Pod]:
        """Return the least important removable pods that a rule blames."""
        pods = self._pods_of(blame)
        self._charge_listing(pods)
        removable = self._by_rank(self._free(pods))
        needed = max(_leaving_min(blame, len(pods)), 1)
        return removable if blame.may_stay is None else removable[-needed - SPARE_MAX :]

    def _reprieve(self, slot: int) -> Victims | None:
        """Reprieve as many pods as possible, in rounds, because one reprieve may enable another."""
        gone = sorted(self._gone.values(), key=importance)
        pairs = list(zip(gone, violating_pods(gone, self._budgets), strict=True))
        pairs.sort(key=lambda pair: not pair[1])
        count = -1
        while count != len(pairs):
            count = len(pairs)
            pairs = [pair for pair in pairs if not self._takes_back(pair[0], slot)]
        if not pairs:
            return None
        return victims_of((pod for pod, _ in pairs), sum(violating for _, violating in pairs))

    def _takes_back(self, pod: Pod, slot: int) -> bool:
        self._work -= REMOVAL
        mark = self._cluster.mark()
        self._cluster.put_pod(pod)
        if self._check.still_fits(slot, self._check.open_filters(slot)):
            return True
        self._cluster.undo(mark)
        return False

    # Removal of one pod after another

    def _search(self, slot: int, staying: dict[ObjectName, None], depth: int) -> bool:
        """Remove pods until the pod fits, skipping `staying` pods, which were tried before.

        Invariant: every solution that contains the pods removed so far also contains one more pod
        blamed by each refusing rule.
        """
        self._work -= STEP
        if self._work < 0 or depth > DEPTH_MAX:
            self.is_cut_short = True
            return False
        fewest: list[Pod] | None = None
        for blame in self._check.blames(slot):
            pods = self._pods_on(slot) if blame is None else self._pods_of(blame)
            self._charge_listing(pods)
            removable = [pod for pod in self._free(pods) if _key(pod) not in staying]
            needed = max(_leaving_min(blame, len(pods)), 1) if blame is not None else 1
            if needed > len(removable):
                return False
            if needed == len(removable):
                return self._search_without(slot, removable, staying, depth)
            if fewest is None or len(removable) < len(fewest):
                fewest = removable
        return fewest is None or self._search_among(slot, fewest, staying, depth)

    def _search_among(
        self, slot: int, removable: list[Pod], staying: dict[ObjectName, None], depth: int
    ) -> bool:
        """Try each pod in turn, least important first, and only one of several equivalent pods."""
        failed: set[Hashable] = set()
        stays = dict(staying)
        for pod in reversed(self._by_rank(removable)):
            kind = self._equivalence_key(pod)
            if kind not in failed and self._search_without(slot, [pod], stays, depth):
                return True
            failed.add(kind)
            stays[_key(pod)] = None
        return False

    def _search_without(
        self, slot: int, leaving: Iterable[Pod], staying: dict[ObjectName, None], depth: int
    ) -> bool:
        mark, gone = self._cluster.mark(), dict(self._gone)
        self._remove(leaving)
        if self._search(slot, staying, depth + 1):
            return True
        self._cluster.undo(mark)
        self._gone = gone
        return False

    def _equivalence_key(self, pod: Pod) -> Hashable:
        """Return a key that is equal for pods that filters treat alike; resized pods are unique."""
        return (_key(pod), "") if pod.resize else (self._cluster.class_of(pod), pod.node_name)

    # Blamed pods

    def _remove(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if _key(pod) not in self._gone:
                self._work -= REMOVAL
                self._gone[_key(pod)] = pod
                self._cluster.delete_pod(pod.namespace, pod.name)

    def _charge_listing(self, pods: Sequence[Pod]) -> None:
        """Charge the work of listing the pods that a rule blames, including removed ones."""
        self._work -= len(pods) + len(self._gone)

    def _free(self, pods: Iterable[Pod]) -> list[Pod]:
        return [pod for pod in pods if self._removability.has(pod)]

    def _pods_on(self, slot: int) -> list[Pod]:
        return [pod for pod, _ in self._cluster.placed_on(slot)]

    def _pods_of(self, blame: Blame) -> list[Pod]:
        """Return the pods that a rule blames, excluding removed ones."""
        key = blame.rule, blame.domain
        known = self._known.get(key)
        if known is None:
            known = self._scan(blame)
            if not self._gone:
                self._known[key] = known
        return [pod for pod in known if _key(pod) not in self._gone]

    def _scan(self, blame: Blame) -> list[Pod]:
        classes, counted = self._classes_of(blame), blame.counted
        key = blame.key
        slots: set[int] = set()
        if blame.domain is not None:
            slots.update(key.members[blame.domain])
        else:
            for pod_class in classes:
                slots.update(slot for slot in pod_class.nodes if key.cells[slot] != NO_DOMAIN)
        return [
            pod
            for slot in sorted(slots)
            if counted is None or counted[slot]
            for pod, pod_class in self._cluster.placed_on(slot)
            if pod_class in classes
        ]

    def _classes_of(self, blame: Blame) -> dict[PodClass, None]:
        classes = self._of_rules.get(blame.rule)
        if classes is None:
            classes = {pod_class: None for pod_class in self._classes if blame.taken(pod_class)}
            self._of_rules[blame.rule] = classes
        return classes

    # Order of importance

    def _by_rank(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return pods in the order of reprieving them."""
        ranked = sorted(pods, key=importance)
        violating = violating_pods(ranked, self._budgets)
        pairs = sorted(zip(ranked, violating, strict=True), key=lambda pair: not pair[1])
        return [pod for pod, _ in pairs]


def _key(pod: Pod) -> ObjectName:
    return pod.namespace, pod.name


def _leaving_min(blame: Blame, count: int) -> int:
    """Return the minimum number of the present pods that must leave."""
    return 1 if blame.may_stay is None else count - blame.may_stay
