"""The plan of a rollout, wave by wave.

The plan assumes that a wave's new pods are ready, and its old pods deleted, before the next wave
begins.
"""

from collections.abc import Sequence

from msgspec import UNSET

from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import Explainer
from service.scheduler.plans.replace.rollout import (
    OldPodSelection,
    PodReadiness,
    Rollout,
    new_pods,
    observe,
    place_new,
)
from service.scheduler.plans.replace.wave_size import group_too_large, new_pods_of_wave
from service.scheduler.plans.selection import field_error
from service.scheduler.plans.waves import EVICTIONS_OVER, Blocked, unplaced_pod
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.plans import PlanStep, Replace, Unplaced

_COMES = "it is of the new template"
_GOES = "pods of the new template come in its place"
_ASKED = PlacePods(dry_run=True)
_NOT_TRIED = Blocked("SecondsOver", "It was not tried: the plan's time was over.")
_TOO_FEW = Blocked("MaxUnavailable", "Too few pods would be available without it.")
_TOO_MANY = Blocked("MaxSurge", "Too many pods would be there with it.")


class ReplacePlan:
    """Replaces pods on a fork, and collects the steps and the pods that fail."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Replace) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._most = fork.context.limits.plan_evictions_max
        self._readiness = PodReadiness()
        self._blocked: Sequence[tuple[PodManifest, Blocked]] = ()
        self._refused: Sequence[tuple[PodManifest, Blocked]] = ()
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []
        self.complete = False
        """Whether all new pods are placed and no old pod is left."""

    def replace(self) -> Steps[None]:
        """Take waves until the rollout is complete or cannot continue.

        Raises:
            Forbidden: the caller may not place pods in the namespace.
            InvalidManifest: there are too many pods, or a different pod has a new pod's name.
        """
        goal = self._goal
        rollout = yield from observe(self._fork.context, goal)
        self._refuse(rollout)
        self._readiness.assume(rollout.new)
        too_large = group_too_large(self._fork.context, rollout, goal)
        if too_large is not None:
            self._refused = [too_large]
            self._report_unplaced(rollout)
            return
        wave = 1
        while not self._fork.context.is_late():
            before = len(self.steps)
            rollout = yield from self._taken(rollout, wave)
            if len(self.steps) > before:
                wave += 1
            elif not rollout.leaving:
                break
            rollout = yield from self._without_leaving(rollout)
        self.complete = not rollout.old and len(rollout.new) >= goal.replicas
        if not self.complete:
            self._report_unplaced(rollout)

    def _refuse(self, rollout: Rollout) -> None:
        most = self._fork.context.limits.plan_pods_max
        if len(rollout.old) > most:
            raise field_error(
                "selector", f"selects {len(rollout.old)} pods, over the limit of {most}"
            )
        if self._goal.replicas > most:
            raise field_error("replicas", f"is over the limit of {most} pods in one plan")
        differing = rollout.differing
        if differing is not None:
            name = f"{differing.namespace}/{differing.name}"
            message = f"would name a pod that is there, and is another one: {name}"
            raise field_error("template.metadata.name", message, self._goal.template.name)

    def _taken(self, rollout: Rollout, wave: int) -> Steps[Rollout]:
        """Take one wave, and return the rollout after it, with the evicted pods as leaving."""
        protect = self._intent.bounds.protect
        selection = OldPodSelection(self._fork, self._goal, self._readiness, protect)
        leaving, self._blocked = yield from selection.choose(rollout, self._evictions_left)
        for pod in leaving:
            self._fork.replica.put(pod.with_deletion(self._fork.context.now))
            self.steps.append(_goes(pod, wave))
            yield from self._fork.pause()
        pods, held = new_pods_of_wave(
            self._fork.context, rollout, self._goal, len(leaving), self._most
        )
        placed, refused = yield from place_new(self._fork.context, _ASKED, pods)
        self._refused = [*held, *refused]
        self.steps += [_comes(pod, wave) for pod in placed]
        self._readiness.assume(placed)
        leaving_names = {pod.name for pod in leaving}
        return rollout._replace(
            old=[pod for pod in rollout.old if pod.name not in leaving_names],
            leaving=[*rollout.leaving, *leaving],
            new=[*rollout.new, *placed],
            taken=rollout.taken.union(pod.name for pod in placed),
        )

    @property
    def _evictions_left(self) -> int:
        """Return how many pods the next wave may evict."""
        most = self._intent.bounds.evictions_max
        if most is None:
            return self._most
        return min(self._most, most - sum(step.action == "Evict" for step in self.steps))

    def _without_leaving(self, rollout: Rollout) -> Steps[Rollout]:
        for pod in rollout.leaving:
            self._fork.replica.delete(pod.kind, pod.namespace, pod.name)
            yield from self._fork.pause()
        return rollout._replace(leaving=[])

    def _report_unplaced(self, rollout: Rollout) -> None:
        """Report which new pods are missing and which old pods remain, with reasons."""
        explaining = Explainer(self._fork, self._intent.explain)
        missing = new_pods(rollout._replace(old=[]), self._goal, 0, self._goal.replicas)
        why = {pod.name: reason for pod, reason in self._refused}
        late = self._fork.context.is_late()
        last = self._refused[-1][1] if self._refused else _NOT_TRIED if late else _TOO_MANY
        for pod in missing:
            result = unplaced_pod(pod, why.get(pod.name, last))
            if pod.name in why and result.reason == "Unschedulable":
                result = explaining.of(self._refused[0][0].pod, result)
            self.unplaced.append(result)
        self.unplaced += self._staying(rollout.old)

    def _staying(self, old: Sequence[PodManifest]) -> list[Unplaced]:
        reasons = {pod.name: why for pod, why in self._blocked}
        otherwise = _NOT_TRIED if self._fork.context.is_late() else _TOO_FEW
        if self._evictions_left <= 0:
            otherwise = EVICTIONS_OVER
        return [unplaced_pod(pod, reasons.get(pod.name, otherwise)) for pod in old]


def _goes(pod: PodManifest, wave: int) -> PlanStep:
    node = pod.pod.node_name
    return PlanStep(
        action="Delete" if node is None else "Evict",
        namespace=pod.namespace,
        name=pod.name,
        from_node=node or UNSET,
        wave=wave,
        reason=_GOES,
    )


def _comes(pod: PodManifest, wave: int) -> PlanStep:
    return PlanStep(
        action="Place",
        namespace=pod.namespace,
        name=pod.name,
        to=pod.pod.node_name or UNSET,
        wave=wave,
        reason=_COMES,
    )
