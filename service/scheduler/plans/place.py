"""Places a plan's pods on its fork, along the same path as placements."""

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine.placing.signature import pod_signature
from service.model.pods.pod import Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.placing.placement_request import place_one_by_one
from service.scheduler.decide.placing.pod_placement import (
    Candidate,
    candidates_of,
    explanation_of,
    place_pod,
)
from service.scheduler.plans.changes import DisplacedPod
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.selection import field_error
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.placements import Explain, PlacementResult
from service.scheduler.protocol.plans import Place, PlanStep, Unplaced
from service.scheduler.replica.pod_groups import GroupRef, group_of

_STEP_PODS = 100
_ASKED = "the plan was asked for it"
_GONE = "its node is removed"


class GoalPod(NamedTuple):
    """A pod that the goal wants placed."""

    candidate: Candidate
    node_name: str | None
    """The node that the pod lost, or None."""
    group: GroupRef | None
    """The group whose members are placed together with the pod."""


def goal_pods_of(
    fork: Fork, goal: Place, displaced: Sequence[DisplacedPod]
) -> Steps[list[GoalPod]]:
    """Return a goal's pods in the order in which to place them.

    Displaced pods come in the order of the pending queue: by priority, then oldest first.

    Raises:
        InvalidManifest, NotFound, PodDiffers, Forbidden: for the same reasons as placements.
    """
    if not goal.displaced:
        nodes = {pod.name: pod.node_name for pod in displaced}
        candidates = candidates_of(fork.context, as_intent(goal))
        return [
            GoalPod(candidate, nodes.get(candidate.key), group_of(candidate.manifest))
            for candidate in candidates
        ]
    runs = []
    for start in range(0, len(displaced), _STEP_PODS):
        portion = (_lost(fork, pod) for pod in displaced[start : start + _STEP_PODS])
        runs.append(
            sorted((goal_pod for goal_pod in portion if goal_pod is not None), key=itemgetter(0))
        )
        yield
    # Sorting ten thousand pods at once would block all other tasks.
    ordered: list[GoalPod] = []
    for _, goal_pod in merge(*runs, key=itemgetter(0)):
        ordered.append(goal_pod)
        if not len(ordered) % _STEP_PODS:
            yield
    return ordered


_Order = tuple[int, str, str, str]


def _lost(fork: Fork, displaced: DisplacedPod) -> tuple[_Order, GoalPod] | None:
    """Return a displaced pod with its sort key, or None if it was later removed or replaced."""
    stored = fork.replica.pod(*displaced.name)
    if stored is None or stored.pod.node_name is not None:
        return None
    goal_pod = GoalPod(Candidate(stored, stored), displaced.node_name, group_of(stored))
    return order_of(stored.pod), goal_pod


def order_of(pod: Pod) -> _Order:
    """Return a pod's sort key in the order of the pending queue."""
    return -pod.priority, pod.created, pod.namespace, pod.name


def as_intent(goal: Place) -> PlacePods:
    """Return the request that places a goal's pods."""
    return PlacePods(pods=goal.pods, pod_refs=goal.pod_refs, path=goal.path, dry_run=True)


class PlacePlan:
    """Places one plan's pods, and collects the steps and the pods without a node."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Place) -> None:
        self._fork = fork
        self._asked = as_intent(goal)
        self._moves_left = intent.bounds.moves_max
        self._refused: dict[object, Unplaced] = {}
        """The results of pods refused since the last placement, by signature."""
        self._explaining = Explainer(fork, intent.explain)
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether all pods got nodes."""
        return not self.unplaced

    def place(self, goal_pods: Sequence[GoalPod]) -> Steps[None]:
        """Place the pods one by one, but the members of a group together."""
        context = self._fork.context
        for members in by_group(goal_pods):
            if context.is_late():
                self._leave(members, "SecondsOver", "It was not tried: the plan's time was over.")
            elif self._exceeds(members):
                self._leave(members, "MovesMax", "It was not tried: `movesMax` was reached.")
            elif members[0].group is None:
                yield from self._place_one(members[0])
            else:
                yield from self._place_members(members)

    def _exceeds(self, members: Sequence[GoalPod]) -> bool:
        moves = sum(goal_pod.node_name is not None for goal_pod in members)
        return self._moves_left is not None and moves > self._moves_left

    def _leave(self, members: Sequence[GoalPod], reason: str, message: str) -> None:
        self.unplaced += [unplaced_goal_pod(goal_pod, reason, message) for goal_pod in members]

    def _place_one(self, goal_pod: GoalPod) -> Steps[None]:
        context, candidate = self._fork.context, goal_pod.candidate
        key = pod_signature(context.replica.cluster, candidate.pod) if self._refused else None
        known = self._refused.get(key)
        if known is not None and candidate.stored is not None:
            self.unplaced.append(unplaced_goal_pod(goal_pod, known.reason, known.message))
            return
        result = place_pod(context, self._asked, candidate)
        self._note(goal_pod, result)
        if result.node_name is None:
            yield
        yield from self._fork.pause()

    def _place_members(self, members: Sequence[GoalPod]) -> Steps[None]:
        candidates = [goal_pod.candidate for goal_pod in members]
        answer = yield from place_one_by_one(self._fork.context, self._asked, candidates)
        for goal_pod, result in zip(members, answer.results, strict=True):
            self._note(goal_pod, result)
        yield from self._fork.pause()

    def _note(self, goal_pod: GoalPod, result: PlacementResult) -> None:
        if result.outcome == "AlreadyPlaced":
            return
        if result.node_name is None:
            self._note_refused(goal_pod, result)
            return
        self._refused.clear()
        if goal_pod.node_name is not None and self._moves_left is not None:
            self._moves_left -= 1
        self.steps.append(
            PlanStep(
                action="Place",
                namespace=result.namespace,
                name=result.name,
                from_node=goal_pod.node_name or UNSET,
                to=result.node_name,
                wave=0,
                reason=_ASKED if goal_pod.node_name is None else _GONE,
            )
        )

    def _note_refused(self, goal_pod: GoalPod, result: PlacementResult) -> None:
        context, pod = self._fork.context, goal_pod.candidate.pod
        result_of_pod = unplaced_goal_pod(
            goal_pod, result.reason or result.outcome, result.message or ""
        )
        if result.outcome == "Unschedulable" and goal_pod.group is None:
            self._refused[pod_signature(context.replica.cluster, pod)] = result_of_pod
        self.unplaced.append(self._explaining.of(pod, result_of_pod))


class Explainer:
    """Explains why pods get no node, within a plan's limits."""

    def __init__(self, fork: Fork, explain: Explain) -> None:
        self._fork = fork
        self._explain = explain
        self._pairs_left = fork.context.limits.plan_explained_pairs_max

    def of(self, pod: Pod, result: Unplaced) -> Unplaced:
        """Add the requested explanation to the result of a pod without a node."""
        context = self._fork.context
        pairs = max(context.replica.cluster.nodes.count, 1)
        if self._explain == "None" or pairs > self._pairs_left:
            return result
        self._pairs_left -= pairs
        explanation = explanation_of(context, PlacePods(explain=self._explain), pod)
        return result if explanation is None else replace(result, explanation=explanation)


def unplaced_goal_pod(goal_pod: GoalPod, reason: str, message: str) -> Unplaced:
    """Return the result of a pod without a node."""
    pod = goal_pod.candidate.pod
    return Unplaced(
        namespace=pod.namespace,
        name=pod.name,
        from_node=goal_pod.node_name or UNSET,
        reason=reason,
        message=message,
    )


def by_group(goal_pods: Sequence[GoalPod]) -> Iterator[list[GoalPod]]:
    """Yield single pods, and each group's members at the first member's position."""
    groups: dict[GroupRef, list[GoalPod]] = {}
    for goal_pod in goal_pods:
        if goal_pod.group is not None:
            groups.setdefault(goal_pod.group, []).append(goal_pod)
    for goal_pod in goal_pods:
        if goal_pod.group is None:
            yield [goal_pod]
        elif goal_pod.group in groups:
            yield groups.pop(goal_pod.group)


def refuse_too_many(context: DecisionContext, goal_pods: Sequence[GoalPod], path: str) -> None:
    """Refuse a plan that would place more pods than allowed.

    Raises:
        InvalidManifest: there are too many pods.
    """
    most = context.limits.plan_pods_max
    if len(goal_pods) > most:
        raise field_error(
            path, f"asks for {len(goal_pods)} pods, over the limit of {most} in one plan"
        )
