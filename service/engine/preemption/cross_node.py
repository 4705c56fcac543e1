"""Trying out whether a pod fits on a node if pods leave that are on other nodes, too.

Rules about other pods may refuse a node because of pods elsewhere in its domains. Only pods of the
node itself, and pods that such a rule blames, are removed. First all of them are, and taken back by
importance, as on a node alone. What leaves may also be missed: by the pod's affinity, or by a spread
constraint that compares with the least filled domain. Where that goes wrong the search is turned
around: one after the other leaves, of those alone that a rule blames at that moment, and a pod that
was no help stays. So a solution is found if there is any, unless the work that all nodes together
may take is spent before.
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
"""So many pods more than have to leave for one rule are removed to choose from."""
WORK_MAX: Final = 400_000
"""When so much work is done, on all nodes together, the search ends; a pod that is listed counts as one."""
REMOVAL: Final = 20
"""The work to remove a pod, or to try whether it may come back."""
STEP: Final = 60
"""The work of a step one after the other, beside the pods that it lists."""
DEPTH_MAX: Final = 100
"""It does not go on either after so many steps that each have had more pods leave."""
NOTHING: Final = Cost(0, -(2**62), 0, 0, -(2**62))
"""Less than any pods cost that leave."""


class Bound(NamedTuple):
    """What has to leave at least because of rules about other pods."""

    cost: Cost
    slots: frozenset[int]
    """Where the pods are that are blamed and may leave."""


NO_BOUND: Final = Bound(NOTHING, frozenset())


class CrossNodeSearch:
    """Tries out one node after the other for one pod, and leaves the cluster as it was."""

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
        """The classes whose pods each rule blames."""
        self._known: dict[tuple[Hashable, int | None], list[Pod]] = {}
        """The pods that each rule blames in a domain while nobody has left."""
        self._bounds: dict[tuple[Hashable, int | None, int | None], Bound | None] = {}
        self._gone: dict[ObjectName, Pod] = {}
        self._work = WORK_MAX
        """What is left of it."""
        self.is_cut_short = False
        """Whether there may be a way that was not looked at."""

    def bound(self, slot: int) -> Bound | None:
        """What room on a node takes at least; None: there is no way, or none for which pods elsewhere leave."""
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
        """Return whether pods of a lower priority that are blamed are on their way already."""
        return any(
            each.priority < priority and each.terminating and each.preempted
            for blame in self._check.blames(slot)
            if blame is not None
            for each in self._pods_of(blame)
        )

    def on(self, slot: int) -> Victims | None:
        """The victims on this node and elsewhere; None: there is no way, or none was found in time."""
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
        """What one rule takes, which is the same on all nodes of a domain; None: too few may leave."""
        key = blame.rule, blame.domain, blame.may_stay
        if key not in self._bounds:
            self._bounds[key] = self._bound(blame)
        return self._bounds[key]

    def _bound(self, blame: Blame) -> Bound | None:
        pods = self._pods_of(blame)
        free = sorted(self._free(pods), key=importance)
        needed = max(_needed(blame, len(pods)), 1)
        if needed > len(free):
            return None
        cheapest = tuple(free[len(free) - needed :])
        violations = sum(violating_pods(free, self._budgets)) if needed == len(free) else 0
        slots = frozenset(self._cluster.nodes.slots[each.node_name or ""] for each in free)
        return Bound(cost_of(Victims(cheapest, violations)), slots)

    # All that are blamed at once

    def _clear(self, slot: int) -> list[Blame | None]:
        """Have all leave who may be in the way; what is still to blame when nobody of these is left."""
        self._remove(self._free(self._on(slot)))
        blames, before = self._check.blames(slot), -1
        while blames and len(self._gone) != before:
            before = len(self._gone)
            for blame in blames:
                if blame is not None:
                    self._remove(self._to_choose_from(blame))
            blames = self._check.blames(slot)
        return blames

    def _to_choose_from(self, blame: Blame) -> list[Pod]:
        """Return the pods that may leave, or of many those that matter least."""
        pods = self._pods_of(blame)
        self._charge_listing(pods)
        free = self._by_rank(self._free(pods))
        needed = max(_needed(blame, len(pods)), 1)
        return free if blame.may_stay is None else free[-needed - SPARE_MAX :]

    def _reprieve(self, slot: int) -> Victims | None:
        """Take back whom the pod can do with, again and again, as one may make up for another."""
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

    # One after the other

    def _search(self, slot: int, staying: dict[ObjectName, None], depth: int) -> bool:
        """Have pods leave until the pod fits; those that stay were tried already.

        Whatever the solution is that comprises all who have left: it has another one of those who
        are blamed, of every rule.
        """
        self._work -= STEP
        if self._work < 0 or depth > DEPTH_MAX:
            self.is_cut_short = True
            return False
        fewest: list[Pod] | None = None
        for blame in self._check.blames(slot):
            pods = self._on(slot) if blame is None else self._pods_of(blame)
            self._charge_listing(pods)
            free = [each for each in self._free(pods) if _key(each) not in staying]
            needed = max(_needed(blame, len(pods)), 1) if blame is not None else 1
            if needed > len(free):
                return False
            if needed == len(free):
                return self._search_without(slot, free, staying, depth)
            if fewest is None or len(free) < len(fewest):
                fewest = free
        return fewest is None or self._search_among(slot, fewest, staying, depth)

    def _search_among(
        self, slot: int, free: list[Pod], staying: dict[ObjectName, None], depth: int
    ) -> bool:
        """Try each in turn, the least important one first; of two that are alike one is enough."""
        failed: set[Hashable] = set()
        stays = dict(staying)
        for each in reversed(self._by_rank(free)):
            kind = self._kind(each)
            if kind not in failed and self._search_without(slot, [each], stays, depth):
                return True
            failed.add(kind)
            stays[_key(each)] = None
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

    def _kind(self, pod: Pod) -> Hashable:
        """Equal for pods that no filter can tell apart; those that are resized are unlike all others."""
        return (_key(pod), "") if pod.resize else (self._cluster.class_of(pod), pod.node_name)

    # Who is there

    def _remove(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if _key(pod) not in self._gone:
                self._work -= REMOVAL
                self._gone[_key(pod)] = pod
                self._cluster.delete_pod(pod.namespace, pod.name)

    def _charge_listing(self, pods: Sequence[Pod]) -> None:
        """Count the pods that a rule blames as work, with those that had to be left out."""
        self._work -= len(pods) + len(self._gone)

    def _free(self, pods: Iterable[Pod]) -> list[Pod]:
        return [pod for pod in pods if self._removability.has(pod)]

    def _on(self, slot: int) -> list[Pod]:
        return [each for each, _ in self._cluster.placed_on(slot)]

    def _pods_of(self, blame: Blame) -> list[Pod]:
        """Return the pods that a rule blames and that are there now."""
        key = blame.rule, blame.domain
        known = self._known.get(key)
        if known is None:
            known = self._scan(blame)
            if not self._gone:
                self._known[key] = known
        return [each for each in known if _key(each) not in self._gone]

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
        found = self._of_rules.get(blame.rule)
        if found is None:
            found = {pod_class: None for pod_class in self._classes if blame.taken(pod_class)}
            self._of_rules[blame.rule] = found
        return found

    # Who matters how much

    def _by_rank(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return pods in the order in which they are taken back."""
        ranked = sorted(pods, key=importance)
        violating = violating_pods(ranked, self._budgets)
        pairs = sorted(zip(ranked, violating, strict=True), key=lambda pair: not pair[1])
        return [pod for pod, _ in pairs]


def _key(pod: Pod) -> ObjectName:
    return pod.namespace, pod.name


def _needed(blame: Blame, count: int) -> int:
    """Return how many of the pods that are there have to leave at least."""
    return 1 if blame.may_stay is None else count - blame.may_stay
