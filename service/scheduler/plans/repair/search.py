"""Searches for the smallest changes that make an unschedulable pod fit.

First, all obstacles between the pod and nodes are computed, over all nodes at once (`obstacles`).
Nodes with equal obstacles are equivalent, which leaves few kinds of nodes; each kind yields sets of
changes that remove its obstacles. Where placed pods are obstacles, victims are found as in
preemption, but regardless of priority. Another change is adding an empty copy of an existing node.

These sets are only guesses. Each is tried: the changes are made, the pod is placed as usual, and
everything is undone. A guess becomes a repair if the pod fits, but no longer fits without any one
of the changes or evictions.

A change may add obstacles: without its node affinity, a pod may have to be spread over more
domains. So when a seemingly sufficient guess fails, the obstacles are computed again for further
guesses.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from itertools import combinations, groupby, product
from operator import itemgetter
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine import Placement, Refusal, place
from service.engine.preemption.cross_node import CrossNodeSearch
from service.engine.preemption.victims import Removability
from service.engine.rules.node_templates import node_addition, shape_of, template_name
from service.engine.rules.obstacles import (
    Key,
    NodeKind,
    ObstacleMap,
    PromisingNode,
    Remedy,
    promising_nodes,
)
from service.model.core.primitives import ObjectName
from service.model.nodes.node import Node
from service.model.plans.plan import ProtectedPods
from service.model.plans.repair_changes import AnyRepairChange, RemovePods
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.admission.pod_admission import knows_scheduler, unknown_scheduler
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.groups.group_membership import waits_for_members
from service.scheduler.decide.groups.shared_domain import shares_domain
from service.scheduler.decide.object_writes import not_found
from service.scheduler.decide.placing.pod_placement import Candidate, held_back_by
from service.scheduler.plans.bounds import is_protected
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.plans import PlanBounds
from service.scheduler.protocol.repairs import Repair, RepairMove, RepairsAnswer

_KINDS_MAX = 300
"""How many kinds of nodes are examined, those with the fewest obstacles first."""
_GUESSES_MAX = 5_000
_LOOSE_MAX = 10
"""Eviction guesses ignore nodes that more rules about placed pods exclude."""
_VICTIMS_MAX = 8
"""Repairs that evict more pods are not reported, since they would not be worthwhile."""
_ANY_PRIORITY = 2**31
_ORDER = (
    "LowerRequest",
    "DropRule",
    "AddToleration",
    "UncordonNodes",
    "SetLabels",
    "SetTaints",
    "AddNodes",
)
"""The preference among equally small repairs: changes of the pod, then of nodes."""
_SHAPES_MAX = 20
"""How many shapes of new nodes are tried, the smallest first."""
_ADDED_MAX = 3
"""How many added nodes are reported."""
_LOOKS_MAX = 20
"""How many insufficient guesses are extended for the obstacles that they add."""
_STEP_NODES = 200
_SECONDS_OVER = "The time for the search was over."
_TRIALS_OVER = "As many changes were tried out as one search may."
_LOOKS_OVER = "Too many changes bring new obstacles to look at all of these."
_KINDS_OVER = "The nodes differ in too many ways to look at all of them."


class Guess:
    """Changes that may be a repair, with the pods to evict."""

    def __init__(
        self,
        remedies: Iterable[Remedy],
        victims: Sequence[Pod] = (),
        seen: ObstacleMap | None = None,
    ) -> None:
        by_key = {remedy.key: remedy for remedy in remedies}
        self.remedies = sorted(
            by_key.values(), key=lambda remedy: (_ORDER.index(remedy.key[0]), remedy.key)
        )
        self.victims = tuple(victims)
        self.keys = frozenset(by_key)
        self.seen = seen
        """All obstacles known when the last change was chosen, or None."""

    def __lt__(self, other: "Guess") -> bool:
        return self.rank < other.rank

    @property
    def size(self) -> int:
        """The number of changes, counting each eviction as one."""
        return len(self.remedies) + len(self.victims)

    @property
    def identity(self) -> tuple[frozenset[Key], frozenset[ObjectName]]:
        """A value that is equal for equal changes."""
        return self.keys, frozenset((victim.namespace, victim.name) for victim in self.victims)

    @property
    def rank(self) -> tuple[object, ...]:
        """The sort key of this guess; better guesses have smaller keys."""
        kinds = [_ORDER.index(remedy.key[0]) for remedy in self.remedies]
        return self.size, len(self.victims), kinds, [remedy.key for remedy in self.remedies]

    def subsets(self) -> Iterator["Guess"]:
        """Yield each guess that leaves out some of the changes or one of the evictions."""
        for size in range(len(self.remedies)):
            for subset in combinations(self.remedies, size):
                yield Guess(subset, self.victims)
        if len(self.victims) == 1:
            yield Guess(self.remedies)
        elif len(self.victims) > 1:
            for index in range(len(self.victims)):
                yield Guess(self.remedies, (*self.victims[:index], *self.victims[index + 1 :]))


class Look(NamedTuple):
    """The obstacles between the pod and nodes after some changes."""

    after: Guess
    obstacles: ObstacleMap
    kinds: Sequence[NodeKind]

    def guess(self, remedies: Iterable[Remedy]) -> Guess:
        """Return a guess that adds the given changes."""
        return Guess((*self.after.remedies, *remedies), seen=self.obstacles)


class RepairBounds(NamedTuple):
    """The limits on the changes of a repair, on its evictions, and on the number of repairs."""

    changes_max: int
    repairs_max: int
    removable: frozenset[str] | None
    """The namespaces whose pods may be evicted, or None for all."""
    plan: PlanBounds = PlanBounds()
    """The protected pods, and the limit on evictions."""

    @property
    def victims_max(self) -> int:
        """How many pods may be evicted."""
        most = self.plan.evictions_max
        return _VICTIMS_MAX if most is None else min(most, _VICTIMS_MAX)


class RepairResult(NamedTuple):
    """Whether a pod fits, and if not, the repairs found."""

    fits: bool
    message: str | None
    """Why the pod does not fit."""
    repairs: list[Repair]
    unfinished: str | None
    """What ended the search early, or None."""


def find_repairs(context: DecisionContext, intent: FindRepairs) -> Decision[RepairsAnswer]:
    """Find the repairs of a stored pod, as if the pod were absent.

    Raises:
        NotFound: the pod does not exist.
        Denied: its `schedulerName` names no profile, so no change makes it fit.
    """
    manifest = context.replica.pod(intent.namespace, intent.name)
    if manifest is None:
        raise not_found("Pod", intent.namespace, intent.name)
    if not knows_scheduler(context.replica.cluster, manifest.pod):
        raise unknown_scheduler(context.replica.cluster, manifest.pod)
    bounds = RepairBounds(intent.changes_max, intent.repairs_max, intent.removable)
    result = yield from repairs_of(context, manifest, bounds)
    return RepairsAnswer(
        revision=context.replica.revision,
        namespace=manifest.namespace,
        name=manifest.name,
        kubernetes=context.replica.config.kubernetes,
        fits=result.fits,
        message=result.message,
        repairs=result.repairs,
        complete=result.unfinished is None,
        unfinished=result.unfinished,
    )


def repairs_of(
    context: DecisionContext, manifest: PodManifest, bounds: RepairBounds
) -> Steps[RepairResult]:
    """Find the repairs of a pod with a known scheduler, as if the pod were absent."""
    held_back = _held_back(context, manifest)
    if held_back is not None:
        return RepairResult(fits=False, message=held_back, repairs=[], unfinished=None)
    search = _Search(context, bounds, manifest.pod)
    yield
    placement = search.tried(Guess(()))
    if isinstance(placement, Placement):
        return RepairResult(fits=True, message=None, repairs=[], unfinished=None)
    message = placement.message
    repairs = yield from search.repairs()
    return RepairResult(fits=False, message=message, repairs=repairs, unfinished=search.unfinished)


def _held_back(context: DecisionContext, manifest: PodManifest) -> str | None:
    """Return why a waiting pod would not be placed even on a fitting node, or None."""
    if manifest.pod.node_name is not None:
        return None
    message = held_back_by(context, Candidate(manifest, manifest))
    message = message or waits_for_members(context.replica, manifest)
    return message or shares_domain(context.replica, manifest)


class _Search:
    """One search for the repairs of one pod."""

    def __init__(self, context: DecisionContext, bounds: RepairBounds, pod: Pod) -> None:
        self._context = context
        self._bounds = bounds
        self._cluster = context.replica.cluster
        self._stored: ObjectName = (pod.namespace, pod.name)
        self._pod = replace(pod, node_name=None, nominated_node_name=None)
        self._known: dict[tuple[frozenset[Key], frozenset[ObjectName]], bool] = {}
        """Whether the pod fits after each set of changes that was tried."""
        self._guessed: set[tuple[frozenset[Key], frozenset[ObjectName]]] = set()
        self._looks_left = _LOOKS_MAX
        self._trials_left = context.limits.repair_trials_max
        self._budgets = context.budgets(as_given=False)
        self._allowances = Allowances(context.replica.cluster)
        self.unfinished: str | None = None
        """What ended the search early, or None."""

    def repairs(self) -> Steps[list[Repair]]:
        """Return the repairs, the smallest first."""
        first = self._look(Guess(()))
        yield
        waiting = yield from self._guesses_by(first)
        waiting += yield from self._with_node(first.obstacles)
        heapify(waiting)
        found_repairs: list[Repair] = []
        while waiting and len(found_repairs) < self._bounds.repairs_max and not self._is_over():
            guess = heappop(waiting)
            repair = yield from self._proved(guess)
            if repair is not None:
                found_repairs.append(repair)
            elif self._may_be_continued(guess):
                for next_guess in (yield from self._continued(guess)):
                    heappush(waiting, next_guess)
        return found_repairs

    def _may_be_continued(self, guess: Guess) -> bool:
        """Return whether the pod does not fit after a guess and more changes are allowed."""
        if guess.victims or any(remedy.added is not None for remedy in guess.remedies):
            return False
        return guess.size < self._bounds.changes_max and not self._fits_after(guess)

    def _continued(self, guess: Guess) -> Steps[list[Guess]]:
        """Return the guess extended by changes that remove the obstacles it added."""
        if self._looks_left == 0:
            self.unfinished = _LOOKS_OVER
            return []
        self._looks_left -= 1
        look = self._look(guess)
        yield
        return (yield from self._guesses_by(look))

    def _look(self, guess: Guess) -> Look:
        with self._after(guess) as pod:
            obstacles = ObstacleMap(self._cluster, pod)
            look = Look(guess, obstacles, obstacles.kinds(_KINDS_MAX))
        if not obstacles.is_complete:
            self.unfinished = _KINDS_OVER
        return look

    def _guesses_by(self, look: Look) -> Steps[list[Guess]]:
        """Return guesses that remove these obstacles and were not made before."""
        guesses = self._guesses(look)
        yield
        if self._bounds.victims_max > 0:
            guesses += yield from self._with_victims(look)
        new = {guess.identity: guess for guess in guesses if guess.identity not in self._guessed}
        self._guessed |= new.keys()
        return list(new.values())

    def _is_over(self) -> bool:
        if self._trials_left <= 0:
            self.unfinished = _TRIALS_OVER
        elif self._context.is_late():
            self.unfinished = _SECONDS_OVER
        return self.unfinished in (_TRIALS_OVER, _SECONDS_OVER)

    # Guesses

    def _guesses(self, look: Look) -> list[Guess]:
        """Return the sets of changes that each remove all obstacles of some node."""
        guesses: dict[frozenset[Key], Guess] = {}
        with self._after(look.after):
            for kind in look.kinds:
                options = [
                    look.obstacles.options(obstacle, kind.slot) for obstacle in kind.obstacles
                ]
                if not all(options) or len(options) > 2 * self._bounds.changes_max:
                    continue
                for remedies in product(*options):
                    guess = look.guess(remedies)
                    if guess.size <= self._bounds.changes_max and len(guesses) < _GUESSES_MAX:
                        guesses.setdefault(guess.keys, guess)
            if len(guesses) == _GUESSES_MAX:
                self.unfinished = _KINDS_OVER
            return [guess for guess in guesses.values() if not self._has_smaller(guess, look)]

    def _has_smaller(self, guess: Guess, look: Look) -> bool:
        """Return whether a subset of the changes seems sufficient, which postpones this guess."""
        more = [remedy for remedy in guess.remedies if remedy.key not in look.after.keys]
        return any(
            look.obstacles.may_suffice(subset, look.kinds)
            for size in range(1, len(more))
            for subset in combinations(more, size)
        )

    def _with_node(self, obstacles: ObstacleMap) -> Steps[list[Guess]]:
        """Return guesses that add a node, of the smallest existing shapes that help."""
        name, guesses = template_name(self._cluster), list[Guess]()
        for node in (yield from self._shapes(obstacles))[:_SHAPES_MAX]:
            if len(guesses) >= _ADDED_MAX or self._is_over():
                break
            guess = Guess([node_addition(node, name)])
            if self._fits_after(guess):
                guesses.append(guess)
            yield
        return guesses

    def _shapes(self, obstacles: ObstacleMap) -> Steps[list[Node]]:
        """Return a node of each shape that may help, the smallest first."""
        smallest: dict[Hashable, tuple[int, int, str, Node]] = {}
        nodes = self._cluster.nodes
        cpu, memory = nodes.allocatable("cpu"), nodes.allocatable("memory")
        for index, slot in enumerate(obstacles.blocked_by_others()):
            node = nodes.nodes[slot]
            assert node is not None
            size = int(cpu[slot]), int(memory[slot]), node.name
            known = smallest.setdefault(shape_of(node), (*size, node))
            if size < known[:3]:
                smallest[shape_of(node)] = (*size, node)
            if index % _STEP_NODES == _STEP_NODES - 1:
                yield
        return [node for *_, node in sorted(smallest.values(), key=itemgetter(0, 1, 2))]

    # Pods in the way

    def _with_victims(self, look: Look) -> Steps[list[Guess]]:
        """Return guesses that evict pods after as few other changes as possible."""
        guesses: list[Guess] = []
        for base in self._before_victims(look)[: self._context.limits.repair_removals_max]:
            if self._is_over():
                break
            if not look.obstacles.may_suffice(base.remedies, look.kinds):
                guess = yield from self._victims_after(base)
                guesses += [] if guess is None else [guess]
            yield
        return guesses

    def _before_victims(self, look: Look) -> list[Guess]:
        guesses: dict[frozenset[Key], Guess] = {}
        with self._after(look.after):
            for kind in look.kinds:
                options = [
                    (obstacle, look.obstacles.options(obstacle, kind.slot))
                    for obstacle in kind.obstacles
                ]
                fixed = [remedies for obstacle, remedies in options if not obstacle.removable]
                loose = [[None, *remedies] for obstacle, remedies in options if obstacle.removable]
                if len(fixed) >= 2 * self._bounds.changes_max or not 0 < len(loose) <= _LOOSE_MAX:
                    continue
                for remedies in product(*fixed, *loose):
                    guess = look.guess(remedy for remedy in remedies if remedy is not None)
                    if len(guess.remedies) < self._bounds.changes_max:
                        guesses.setdefault(guess.keys, guess)
        return sorted(guesses.values())

    def _victims_after(self, base: Guess) -> Steps[Guess | None]:
        """Return the guess that evicts the fewest pods after some changes, or None.

        Nodes are tried in the order of their minimum number of evictions, until no other node can
        be better.
        """
        best: tuple[Pod, ...] | None = None
        for fewest, slot in self._promising(base):
            if best is not None and fewest >= len(best):
                break
            pods = self._in_the_way(base, slot)
            if (
                pods
                and len(pods) <= self._bounds.victims_max
                and (best is None or len(pods) < len(best))
            ):
                best = pods
            yield
            if self._is_over():
                break
        return None if best is None else Guess(base.remedies, best)

    def _promising(self, base: Guess) -> list[PromisingNode]:
        """Return the nodes that need few evictions, with the minimum number for each."""
        most, victims_max = self._context.limits.repair_nodes_max, self._bounds.victims_max
        with self._after(base) as pod:
            return promising_nodes(self._cluster, pod, victims_max, most)

    def _in_the_way(self, base: Guess, slot: int) -> tuple[Pod, ...]:
        """Return the pods to evict so that a node takes the pod; none if that is impossible."""
        bounds = self._bounds
        stays = None if bounds.plan.protect in (None, ProtectedPods()) else self._stays
        removability = Removability(_ANY_PRIORITY, bounds.removable, stays)
        with self._after(base) as pod:
            victims = CrossNodeSearch(self._cluster, pod, removability, self._budgets).victims_for(
                slot
            )
        self._trials_left -= 1
        if victims is None or (
            bounds.plan.respect_budgets and self._allowances.blocking(victims.pods) is not None
        ):
            return ()
        return victims.pods

    def _stays(self, pod: Pod) -> bool:
        return is_protected(pod, self._bounds.plan.protect)

    # Trials

    @contextmanager
    def _after(self, guess: Guess) -> Iterator[Pod]:
        """Apply the changes without the pod, yield the changed pod, and undo everything."""
        mark = self._cluster.mark()
        try:
            if self._cluster.pod(*self._stored) is not None:
                self._cluster.delete_pod(*self._stored)
            pod = self._changed(guess)
            for victim in guess.victims:
                self._cluster.delete_pod(victim.namespace, victim.name)
            yield pod
        finally:
            self._cluster.undo(mark)

    def _changed(self, guess: Guess) -> Pod:
        """Apply the node changes, and return the pod with its own changes."""
        spec = self._pod.spec
        for remedy in guess.remedies:
            if remedy.of_pod is not None:
                spec = remedy.of_pod(spec)
            elif remedy.added is not None:
                self._cluster.put_node(remedy.added)
            elif remedy.of_node is not None:
                node = self._cluster.node(remedy.node_name)
                assert node is not None
                self._cluster.put_node(remedy.of_node(node))
        return self._pod if spec is self._pod.spec else replace(self._pod, spec=spec)

    def tried(self, guess: Guess, *, with_reasons: bool = True) -> Placement | Refusal:
        """Return the placement or refusal of the pod with the changes applied, then undo them."""
        self._trials_left -= 1
        with self._after(guess) as pod:
            placement = place(self._cluster, pod, with_reasons=with_reasons)
        self._known[guess.identity] = isinstance(placement, Placement)
        return placement

    def _fits_after(self, guess: Guess) -> bool:
        known = self._known.get(guess.identity)
        if known is None:
            self.tried(guess, with_reasons=False)
            known = self._known[guess.identity]
        return known

    def _proved(self, guess: Guess) -> Steps[Repair | None]:
        """Return a guess as a repair if the pod fits, and would not with any change left out."""
        placed = self.tried(guess, with_reasons=False)
        yield
        if not isinstance(placed, Placement):
            return None
        for less in guess.subsets():
            if self._is_over() or self._fits_after(less):
                return None
            yield
        return Repair(
            changes=list(self._changes_of(guess)),
            places=placed.node_name,
            why=self._why(guess),
            moves=self._moves(guess, placed.node_name) if guess.victims else UNSET,
        )

    def _moves(self, guess: Guess, node_name: str) -> list[RepairMove]:
        """Return where each evicted pod would go once the pod is placed."""
        self._trials_left -= len(guess.victims)
        with self._after(guess) as pod:
            self._cluster.put_pod(replace(pod, node_name=node_name))
            return [self._moved(victim) for victim in guess.victims]

    def _moved(self, victim: Pod) -> RepairMove:
        unbound_pod = replace(victim, node_name=None, nominated_node_name=None)
        placement = place(self._cluster, unbound_pod, with_reasons=False)
        to = placement.node_name if isinstance(placement, Placement) else None
        if to is not None:
            self._cluster.put_pod(replace(unbound_pod, node_name=to))
        return RepairMove(namespace=victim.namespace, name=victim.name, to=to)

    # Reporting

    def _changes_of(self, guess: Guess) -> Iterator[AnyRepairChange]:
        for remedy in guess.remedies:
            assert remedy.change is not None
            yield remedy.change
        names = sorted((victim.namespace, victim.name) for victim in guess.victims)
        for namespace, group in groupby(names, key=lambda name: name[0]):
            yield RemovePods(namespace=namespace, names=tuple(name for _, name in group))

    def _why(self, guess: Guess) -> str:
        """Return a message with the number of nodes that only these obstacles exclude."""
        if guess.victims:
            count = len(guess.victims)
            pods = "a pod is" if count == 1 else f"{count} pods are"
            return f"{pods} in the way" + (" then" if guess.remedies else "")
        names = {remedy.node_name for remedy in guess.remedies if remedy.node_name}
        if any(remedy.added is not None for remedy in guess.remedies):
            return f"nothing keeps the pod from an empty node like {', '.join(sorted(names))}"
        if names:
            return f"nothing else keeps the pod from {', '.join(sorted(names))}"
        assert guess.seen is not None
        count = guess.seen.count_without(guess.remedies)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"nothing else keeps the pod from {nodes} of {self._cluster.nodes.count}"
