"""The goal that pods of a template are there in place of others: its steps, wave by wave.

It is taken for granted that the new pods of a wave are ready, and that the old ones are gone,
before the next wave begins.
"""

from collections.abc import Sequence

from msgspec import UNSET

from service.model.manifests.manifest import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import Explaining
from service.scheduler.plans.replace.rollout import (
    Departing,
    PodReadiness,
    Release,
    incoming,
    look,
    place_new,
)
from service.scheduler.plans.replace.wave_size import arrival, group_too_large
from service.scheduler.plans.selection import refused
from service.scheduler.plans.waves import EVICTIONS_OVER, Kept, told_of
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.plans import PlanStep, Replace, Unplaced

_COMES = "it is of the new template"
_GOES = "pods of the new template come in its place"
_ASKED = PlacePods(dry_run=True)
_NOT_TRIED = Kept("SecondsOver", "It was not tried: the plan's time was over.")
_TOO_FEW = Kept("MaxUnavailable", "Too few pods would be available without it.")
_TOO_MANY = Kept("MaxSurge", "Too many pods would be there with it.")


class Replacing:
    """Replaces pods on a fork, and gathers the steps, and who gets no node or has to stay."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Replace) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._most = fork.context.limits.plan_evictions_max
        self._readiness = PodReadiness()
        self._kept: Sequence[tuple[PodManifest, Kept]] = ()
        self._refused: Sequence[tuple[PodManifest, Kept]] = ()
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []
        self.complete = False
        """Whether all new pods are there, and no old one is."""

    def replace(self) -> Steps[None]:
        """Take as many waves as it takes.

        Raises:
            Forbidden: the caller may not place pods in the namespace.
            InvalidManifest: there are more pods than one plan may be about, or a pod has the name of a
                new one and is another one.
        """
        goal = self._goal
        release = yield from look(self._fork.context, goal)
        self._refuse(release)
        self._readiness.assume(release.new)
        too_large = group_too_large(self._fork.context, release, goal)
        if too_large is not None:
            self._refused = [too_large]
            self._tell(release)
            return
        wave = 1
        while not self._fork.context.is_late():
            before = len(self.steps)
            release = yield from self._taken(release, wave)
            if len(self.steps) > before:
                wave += 1
            elif not release.leaving:
                break
            release = yield from self._without_leaving(release)
        self.complete = not release.old and len(release.new) >= goal.replicas
        if not self.complete:
            self._tell(release)

    def _refuse(self, release: Release) -> None:
        most = self._fork.context.limits.plan_pods_max
        if len(release.old) > most:
            raise refused("selector", f"selects {len(release.old)} pods, over the limit of {most}")
        if self._goal.replicas > most:
            raise refused("replicas", f"is over the limit of {most} pods in one plan")
        differing = release.differing
        if differing is not None:
            told = f"{differing.namespace}/{differing.name}"
            message = f"would name a pod that is there, and is another one: {told}"
            raise refused("template.metadata.name", message, self._goal.template.name)

    def _taken(self, release: Release, wave: int) -> Steps[Release]:
        """Take one wave, and return the pods after it; those that go are leaving."""
        protect = self._intent.bounds.protect
        departing = Departing(self._fork, self._goal, self._readiness, protect)
        gone, self._kept = yield from departing.choose(release, self._evictions_left)
        for each in gone:
            self._fork.replica.put(each.with_deletion(self._fork.context.now))
            self.steps.append(_goes(each, wave))
            yield from self._fork.pause()
        pods, held = arrival(self._fork.context, release, self._goal, len(gone), self._most)
        placed, refused = yield from place_new(self._fork.context, _ASKED, pods)
        self._refused = [*held, *refused]
        self.steps += [_comes(each, wave) for each in placed]
        self._readiness.assume(placed)
        left = {each.name for each in gone}
        return release._replace(
            old=[each for each in release.old if each.name not in left],
            leaving=[*release.leaving, *gone],
            new=[*release.new, *placed],
            taken=release.taken.union(each.name for each in placed),
        )

    @property
    def _evictions_left(self) -> int:
        """How many pods may go in the next wave."""
        most = self._intent.bounds.evictions_max
        if most is None:
            return self._most
        return min(self._most, most - sum(each.action == "Evict" for each in self.steps))

    def _without_leaving(self, release: Release) -> Steps[Release]:
        for each in release.leaving:
            self._fork.replica.delete(each.kind, each.namespace, each.name)
            yield from self._fork.pause()
        return release._replace(leaving=[])

    def _tell(self, release: Release) -> None:
        """Say which new pods are missing and which old ones are left, and why."""
        explaining = Explaining(self._fork, self._intent.explain)
        missing = incoming(release._replace(old=[]), self._goal, 0, self._goal.replicas)
        why = {each.name: kept for each, kept in self._refused}
        late = self._fork.context.is_late()
        last = self._refused[-1][1] if self._refused else _NOT_TRIED if late else _TOO_MANY
        for each in missing:
            told = told_of(each, why.get(each.name, last))
            if each.name in why and told.reason == "Unschedulable":
                told = explaining.of(self._refused[0][0].pod, told)
            self.unplaced.append(told)
        self.unplaced += self._staying(release.old)

    def _staying(self, old: Sequence[PodManifest]) -> list[Unplaced]:
        kept = {each.name: why for each, why in self._kept}
        otherwise = _NOT_TRIED if self._fork.context.is_late() else _TOO_FEW
        if self._evictions_left <= 0:
            otherwise = EVICTIONS_OVER
        return [told_of(each, kept.get(each.name, otherwise)) for each in old]


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
