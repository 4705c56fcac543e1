"""Rollouts: which pods are old and new, and what a wave may do on the current state.

Dry-run plans and stored plans share this logic. First, the leaving pods are chosen by disruption
budgets, the required number of available pods, and the required rules of other pods; then new pods
are placed within the bounds. Evicted pods keep their room until they are gone.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from service.engine.rules.violations import Violation, key_of
from service.model.core.errors import InvalidManifest
from service.model.core.primitives import ObjectName
from service.model.plans.plan import ProtectedPods
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.admission.pod_admission import as_created, as_updated
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.placing.placement_request import place_one_by_one
from service.scheduler.decide.placing.pod_placement import Candidate
from service.scheduler.plans.bounds import is_protected
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.remove.order import is_ready, removal_order_of
from service.scheduler.plans.waves import (
    PROTECTED,
    Blocked,
    blocked_by_budget,
    blocked_by_rule,
)
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.plans import Replace
from service.scheduler.replica.pod_groups import group_of
from service.scheduler.replica.replica import Replica

_STEP_OBJECTS = 200


class Rollout(NamedTuple):
    """The pods of a rollout at one moment."""

    old: Sequence[PodManifest]
    """The pods still to be evicted, in the order in which they leave."""
    leaving: Sequence[PodManifest]
    """The pods that were evicted or lost their node, but still exist."""
    new: Sequence[PodManifest]
    """The template's pods that stay, by name."""
    taken: frozenset[str]
    """The pod names that are unavailable to new pods."""
    differing: PodManifest | None = None
    """A different pod with the name of a new pod, or None."""


class PodReadiness:
    """Tracks which pods are available: those reported as ready, and those assumed to be."""

    def __init__(self) -> None:
        self._assumed: set[ObjectName] = set()

    def assume(self, pods: Sequence[PodManifest]) -> None:
        """Assume that pods are ready from now on."""
        self._assumed.update((pod.namespace, pod.name) for pod in pods)

    def of(self, manifest: PodManifest) -> bool:
        """Return whether a pod is available."""
        if manifest.pod.node_name is None:
            return False
        return (manifest.namespace, manifest.name) in self._assumed or is_ready(manifest)


def observe(context: DecisionContext, goal: Replace) -> Steps[Rollout]:
    """Find the pods of a rollout.

    Old pods leave as in a ReplicaSet: those without a node or not ready first, then by
    `removal_order_of`. Finished pods are ignored.
    """
    old, leaving, new = list[PodManifest](), list[PodManifest](), list[PodManifest]()
    taken: set[str] = set()
    differing = None
    same = _Same(context, goal)
    for index, pod in enumerate(_pods(context.replica, goal.namespace)):
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
        lost = _is_lost(context.replica, pod)
        active = not (pod.pod.terminating or pod.pod.finished or lost)
        if _has_name_of(goal.template, pod):
            taken.add(pod.name)
            if active and not same(pod):
                differing = differing or pod
            elif active:
                new.append(pod)
        elif goal.is_about(pod) and not pod.pod.finished:
            (old if active else leaving).append(pod)
    beside = Counter(pod.pod.node_name for pod in (*old, *new))
    old.sort(key=lambda pod: removal_order_of(pod, beside[pod.pod.node_name]))
    new.sort(key=lambda pod: pod.name)
    return Rollout(old, leaving, new, frozenset(taken), differing)


class Departure(NamedTuple):
    """The pods that leave in a wave, and why others stay."""

    leaving: Sequence[PodManifest]
    blocked: Sequence[tuple[PodManifest, Blocked]]


class OldPodSelection:
    """Chooses the pods that leave in a wave, on a fork that is restored afterwards."""

    def __init__(
        self,
        fork: Fork,
        goal: Replace,
        readiness: PodReadiness,
        protect: ProtectedPods | None = None,
    ) -> None:
        self._protect = protect
        self._fork = fork
        self._goal = goal
        self._readiness = readiness
        self._rules = BrokenRules(fork.replica.cluster)
        self._allowances = Allowances(fork.replica.cluster)
        self._stay_reasons: list[tuple[PodManifest, Blocked]] = []
        self._own: Collection[ObjectName] = ()
        """The pods whose own topology spread constraints are ignored."""

    def choose(self, rollout: Rollout, most: int) -> Steps[Departure]:
        """Return up to `most` pods that leave, and why the others stay.

        If a spread constraint counts old and new pods together and would block the rollout, because
        the new pods would be too unevenly spread, old pods are evicted anyway: such constraints
        only bind placement.
        """
        chosen = self._allowed(rollout, most)
        start = self._fork.try_out()
        if (yield from self._broken_without(chosen)):
            yield from self._fork.take_back(start)
            yield from self._rules.observe()
            chosen = yield from self._one_by_one(rollout, most)
            if not chosen and not new_pods(rollout, self._goal, 0, most):
                self._own = {(pod.namespace, pod.name) for pod in (*rollout.old, *rollout.new)}
                chosen = yield from self._one_by_one(rollout, most)
        yield from self._fork.take_back(start)
        return Departure(chosen, self._stay_reasons)

    def _allowed(self, rollout: Rollout, most: int) -> list[PodManifest]:
        """Return the pods that leave when other pods' rules are ignored."""
        spare = _Spare(self._goal, rollout, self._readiness, most)
        chosen: list[PodManifest] = []
        for pod in rollout.old:
            if spare.has_none:
                break
            if spare.is_enough_for(pod) and self._takes(pod):
                spare.take(pod)
                chosen.append(pod)
        return chosen

    def _one_by_one(self, rollout: Rollout, most: int) -> Steps[list[PodManifest]]:
        """Return the pods that leave when none may leave that another pod needs."""
        self._stay_reasons.clear()
        self._allowances.give_back()
        spare = _Spare(self._goal, rollout, self._readiness, most)
        chosen: list[PodManifest] = []
        for pod in rollout.old:
            if spare.has_none:
                break
            if not spare.is_enough_for(pod) or self._blocked(pod):
                continue
            start = self._fork.try_out()
            broken = yield from self._broken_without([pod])
            if broken:
                yield from self._fork.take_back(start)
                self._stay_reasons.append((pod, blocked_by_rule(broken[0], {pod.namespace})))
                continue
            spare.take(pod)
            self._take(pod)
            chosen.append(pod)
        return chosen

    def _takes(self, pod: PodManifest) -> bool:
        if self._blocked(pod):
            return False
        self._take(pod)
        return True

    def _blocked(self, pod: PodManifest) -> bool:
        """Return whether a bound or a budget keeps a pod, after recording the reason."""
        if pod.pod.node_name is None:
            return False
        if is_protected(pod.pod, self._protect):
            self._stay_reasons.append((pod, PROTECTED))
            return True
        budget = self._allowances.blocking([pod.pod])
        if budget is not None:
            self._stay_reasons.append((pod, blocked_by_budget(budget)))
        return budget is not None

    def _take(self, pod: PodManifest) -> None:
        if pod.pod.node_name is not None:
            self._allowances.take([pod.pod])

    def _broken_without(self, pods: Sequence[PodManifest]) -> Steps[list[Violation]]:
        """Remove pods, and return the rules that their removal breaks or may break."""
        placed = [pod for pod in pods if pod.pod.node_name is not None]
        if not placed:
            return []
        cluster = self._fork.replica.cluster
        classes = {cluster.class_of(pod.pod) for pod in placed}
        for pod in placed:
            self._fork.replica.delete(pod.kind, pod.namespace, pod.name)
            yield from self._fork.step()
        broken = yield from self._rules.newly_broken(classes)
        return [violation for violation in broken if not self._is_own_spread(violation)]

    def _is_own_spread(self, violation: Violation) -> bool:
        return violation.breach.rule.is_about_spread and key_of(violation.pod) in self._own


class _Spare:
    """Counts how many old pods may still leave in a wave.

    As in Kubernetes' deployment controller, unready pods may leave beyond the number of available
    ones to spare, as long as enough pods will exist once the new ones are ready.
    """

    def __init__(self, goal: Replace, rollout: Rollout, readiness: PodReadiness, most: int) -> None:
        least = goal.bounds.available_min
        new_ready = sum(map(readiness.of, rollout.new))
        old_ready = sum(map(readiness.of, rollout.old))
        self._readiness = readiness
        self._pods = min(len(rollout.old) + new_ready - least, most)
        self._available = old_ready + new_ready - least

    @property
    def has_none(self) -> bool:
        """Return whether no more pods may leave."""
        return self._pods <= 0

    def is_enough_for(self, pod: PodManifest) -> bool:
        """Return whether this pod may leave."""
        return not self.has_none and (self._available > 0 or not self._readiness.of(pod))

    def take(self, pod: PodManifest) -> None:
        """Count a pod as gone."""
        self._pods -= 1
        self._available -= self._readiness.of(pod)


def new_pods(rollout: Rollout, goal: Replace, leaving_count: int, most: int) -> list[PodManifest]:
    """Return up to `most` new pods to create now that `leaving_count` pods leave."""
    there = len(rollout.old) - leaving_count + len(rollout.new)
    room = min(goal.bounds.pods_max - there, goal.replicas - len(rollout.new), most)
    names = _free_names(goal.template.name, rollout.taken)
    return [goal.template.named(next(names)) for _ in range(max(room, 0))]


def place_new(
    context: DecisionContext, intent: PlacePods, pods: Sequence[PodManifest]
) -> Steps[tuple[list[PodManifest], list[tuple[PodManifest, Blocked]]]]:
    """Place new pods; return the placed ones, and the others with reasons.

    The pods are identical, so none is tried after the first refusal. Members of a group are placed
    together.
    """
    placed: list[PodManifest] = []
    for batch in [list(pods)] if pods and group_of(pods[0]) is not None else [[p] for p in pods]:
        try:
            created = [as_created(context, pod, was_admitted=False) for pod in batch]
        except InvalidManifest as error:
            return placed, [(batch[0], Blocked("InvalidManifest", str(error)))]
        candidates = [Candidate(pod, None) for pod in created]
        answer = yield from place_one_by_one(context, intent, candidates)
        refused = [
            (pod, Blocked(result.reason or result.outcome, result.message or ""))
            for pod, result in zip(created, answer.results, strict=True)
            if result.node_name is None
        ]
        stored = [context.replica.pod(result.namespace, result.name) for result in answer.results]
        placed += [pod for pod in stored if pod is not None and pod.pod.node_name is not None]
        if refused:
            return placed, refused
        yield
    return placed, []


class _Same:
    """Tests whether a stored pod matches the template, apart from additional labels."""

    def __init__(self, context: DecisionContext, goal: Replace) -> None:
        self._context = context
        self._template = goal.template
        self._labels = goal.template.pod.labels.items()

    def __call__(self, stored: PodManifest) -> bool:
        if not self._labels <= stored.pod.labels.items():
            return False
        pod = replace(self._template.pod, name=stored.name, labels=stored.pod.labels)
        sent = replace(self._template, pod=pod)
        try:
            updated = as_updated(self._context, sent, stored, was_admitted=False)
        except InvalidManifest:  # The namespace's defaults contradict it now: not the same pod.
            return False
        return updated.same_pod(stored)


def _pods(replica: Replica, namespace: str) -> Iterator[PodManifest]:
    for stored in replica.objects(PodManifest.kind):
        assert isinstance(stored.manifest, PodManifest)
        if stored.manifest.namespace == namespace:
            yield stored.manifest


def _is_lost(replica: Replica, pod: PodManifest) -> bool:
    """Return whether a pod is on a deleted node."""
    node_name = pod.pod.node_name
    return node_name is not None and replica.cluster.node(node_name) is None


def _has_name_of(template: PodManifest, pod: PodManifest) -> bool:
    number = pod.name.removeprefix(f"{template.name}-")
    return number != pod.name and number.isascii() and number.isdigit()


def _free_names(name: str, taken: Container[str]) -> Iterator[str]:
    number = 0
    while True:
        if f"{name}-{number}" not in taken:
            yield f"{name}-{number}"
        number += 1
