"""Placing the pods of a plan on its fork, by the same path as placements."""

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine.placing.signature import pod_signature
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.placing.placement_request import place_one_by_one
from service.scheduler.decide.placing.pod_placement import (
    Candidate,
    candidates_of,
    explanation_of,
    place_pod,
)
from service.scheduler.plans.changes import Displaced
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.selection import refused
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.placements import Explain, PlacementResult
from service.scheduler.protocol.plans import Place, PlanStep, Unplaced
from service.scheduler.replica.pod_groups import GroupRef, group_of

_STEP_PODS = 100
_ASKED = "the plan was asked for it"
_GONE = "its node is removed"


class Wanted(NamedTuple):
    """A pod that the goal wants placed."""

    candidate: Candidate
    node_name: str | None
    """The node that it has lost, if it has lost one."""
    group: GroupRef | None
    """The group whose members are placed together with it."""


def wanted_by(fork: Fork, goal: Place, displaced: Sequence[Displaced]) -> Steps[list[Wanted]]:
    """Return the pods of a goal in the order in which they are placed.

    Displaced pods come as the pending queue would try them: by priority, the oldest first.

    Raises:
        InvalidManifest, NotFound, PodDiffers, Forbidden: for the same reasons as placements.
    """
    if not goal.displaced:
        nodes = {each.name: each.node_name for each in displaced}
        asked = candidates_of(fork.context, as_intent(goal))
        return [Wanted(each, nodes.get(each.key), group_of(each.manifest)) for each in asked]
    runs = []
    for start in range(0, len(displaced), _STEP_PODS):
        some = (_lost(fork, each) for each in displaced[start : start + _STEP_PODS])
        runs.append(sorted((each for each in some if each is not None), key=itemgetter(0)))
        yield
    # Sorting some ten thousand pods at once would keep everybody else waiting.
    ordered: list[Wanted] = []
    for _, wanted in merge(*runs, key=itemgetter(0)):
        ordered.append(wanted)
        if not len(ordered) % _STEP_PODS:
            yield
    return ordered


_Order = tuple[int, str, str, str]


def _lost(fork: Fork, displaced: Displaced) -> tuple[_Order, Wanted] | None:
    """Return a pod that has no node any more; None if later changes removed or replaced it."""
    stored = fork.replica.pod(*displaced.name)
    if stored is None or stored.pod.node_name is not None:
        return None
    wanted = Wanted(Candidate(stored, stored), displaced.node_name, group_of(stored))
    return order_of(stored.pod), wanted


def order_of(pod: Pod) -> _Order:
    """Return what pods are sorted by, as the pending queue would try them."""
    return -pod.priority, pod.created, pod.namespace, pod.name


def as_intent(goal: Place) -> PlacePods:
    """Return the request that places the pods of a goal."""
    return PlacePods(pods=goal.pods, pod_refs=goal.pod_refs, path=goal.path, dry_run=True)


class Placing:
    """Places the pods of one plan, and gathers its steps and the pods that get no node."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Place) -> None:
        self._fork = fork
        self._asked = as_intent(goal)
        self._moves_left = intent.bounds.moves_max
        self._refused: dict[object, Unplaced] = {}
        """What was said of refused pods since a pod was last placed, by verdict."""
        self._explaining = Explaining(fork, intent.explain)
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether all pods have got nodes."""
        return not self.unplaced

    def place(self, wanted: Sequence[Wanted]) -> Steps[None]:
        """Place the pods one after the other, but the members of a group together."""
        context = self._fork.context
        for members in together(wanted):
            if context.is_late():
                self._leave(members, "SecondsOver", "It was not tried: the plan's time was over.")
            elif self._exceeds(members):
                self._leave(members, "MovesMax", "It was not tried: `movesMax` was reached.")
            elif members[0].group is None:
                yield from self._place_one(members[0])
            else:
                yield from self._place_members(members)

    def _exceeds(self, members: Sequence[Wanted]) -> bool:
        moves = sum(each.node_name is not None for each in members)
        return self._moves_left is not None and moves > self._moves_left

    def _leave(self, members: Sequence[Wanted], reason: str, message: str) -> None:
        self.unplaced += [unplaced(each, reason, message) for each in members]

    def _place_one(self, wanted: Wanted) -> Steps[None]:
        context, candidate = self._fork.context, wanted.candidate
        key = pod_signature(context.replica.cluster, candidate.pod) if self._refused else None
        known = self._refused.get(key)
        if known is not None and candidate.stored is not None:
            self.unplaced.append(unplaced(wanted, known.reason, known.message))
            return
        result = place_pod(context, self._asked, candidate)
        self._note(wanted, result)
        if result.node_name is None:
            yield
        yield from self._fork.pause()

    def _place_members(self, members: Sequence[Wanted]) -> Steps[None]:
        candidates = [each.candidate for each in members]
        answer = yield from place_one_by_one(self._fork.context, self._asked, candidates)
        for wanted, result in zip(members, answer.results, strict=True):
            self._note(wanted, result)
        yield from self._fork.pause()

    def _note(self, wanted: Wanted, result: PlacementResult) -> None:
        if result.outcome == "AlreadyPlaced":
            return
        if result.node_name is None:
            self._note_refused(wanted, result)
            return
        self._refused.clear()
        if wanted.node_name is not None and self._moves_left is not None:
            self._moves_left -= 1
        self.steps.append(
            PlanStep(
                action="Place",
                namespace=result.namespace,
                name=result.name,
                from_node=wanted.node_name or UNSET,
                to=result.node_name,
                wave=0,
                reason=_ASKED if wanted.node_name is None else _GONE,
            )
        )

    def _note_refused(self, wanted: Wanted, result: PlacementResult) -> None:
        context, pod = self._fork.context, wanted.candidate.pod
        told = unplaced(wanted, result.reason or result.outcome, result.message or "")
        if result.outcome == "Unschedulable" and wanted.group is None:
            self._refused[pod_signature(context.replica.cluster, pod)] = told
        self.unplaced.append(self._explaining.of(pod, told))


class Explaining:
    """Explains why pods get no node, as far as a plan may do that."""

    def __init__(self, fork: Fork, explain: Explain) -> None:
        self._fork = fork
        self._explain = explain
        self._pairs_left = fork.context.limits.plan_explained_pairs_max

    def of(self, pod: Pod, told: Unplaced) -> Unplaced:
        """Add the explanation of a pod without a node to what is told of it, if it is wanted."""
        context = self._fork.context
        pairs = max(context.replica.cluster.nodes.count, 1)
        if self._explain == "None" or pairs > self._pairs_left:
            return told
        self._pairs_left -= pairs
        found = explanation_of(context, PlacePods(explain=self._explain), pod)
        return told if found is None else replace(told, explanation=found)


def unplaced(wanted: Wanted, reason: str, message: str) -> Unplaced:
    """Say of a pod that it gets no node, and why."""
    pod = wanted.candidate.pod
    return Unplaced(
        namespace=pod.namespace,
        name=pod.name,
        from_node=wanted.node_name or UNSET,
        reason=reason,
        message=message,
    )


def together(wanted: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Yield single pods, and the members of each group in the place of the first of them."""
    groups: dict[GroupRef, list[Wanted]] = {}
    for each in wanted:
        if each.group is not None:
            groups.setdefault(each.group, []).append(each)
    for each in wanted:
        if each.group is None:
            yield [each]
        elif each.group in groups:
            yield groups.pop(each.group)


def refuse_too_many(context: DecisionContext, wanted: Sequence[Wanted], path: str) -> None:
    """Refuse a plan that would place more pods than one plan may.

    Raises:
        InvalidManifest: there are too many.
    """
    most = context.limits.plan_pods_max
    if len(wanted) > most:
        raise refused(path, f"asks for {len(wanted)} pods, over the limit of {most} in one plan")
