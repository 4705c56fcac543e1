"""Finding the least changes after which a pod fits that no node takes.

First, all that keeps the pod from nodes is told apart, over all nodes at once (`obstacles`). Nodes with
the same obstacles are alike, so few kinds of nodes remain, and of each kind the sets of changes follow
that do away with its obstacles. Where placed pods are in the way, those are found that would have to
leave as preemption finds them, but whatever their priority. A node may also be added that is like one
of those that are there, but empty.

That yields guesses only. Each of them is then tried out: the changes are made, the pod is placed as
every pod is, and everything is undone. A guess is told if the pod fits then, and if it does not fit
any more as soon as one of the changes, or of the pods that leave, is left out.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations, groupby, product
from operator import attrgetter, itemgetter
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine import Placement, Refusal, place
from service.engine.analysis.new_nodes import adding_like, shape_of, template_name
from service.engine.analysis.obstacles import (
    Key,
    Kind,
    ObstacleMap,
    Promising,
    Remedy,
    promising_nodes,
)
from service.engine.preemption.cross_node import Elsewhere
from service.engine.preemption.victims import Removability
from service.model.manifest import PodManifest
from service.model.objects import Node, ObjectName, Pod
from service.model.repair_changes import AnyRepairChange, RemovePods
from service.scheduler.decide.admission import knows_scheduler
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.group_membership import waits_for_members
from service.scheduler.decide.object_writes import missing
from service.scheduler.decide.placing.one_pod import Candidate, held_back_by, unknown_scheduler
from service.scheduler.decide.planning.protected_pods import is_protected
from service.scheduler.decide.shared_domain import shares_domain
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.plans import Bounds, Protected
from service.scheduler.protocol.repairs import (
    Repair,
    RepairMove,
    RepairsAnswer,
)

_KINDS_MAX = 300
"""So many kinds of nodes are looked at, those with the fewest obstacles first."""
_GUESSES_MAX = 5_000
_LOOSE_MAX = 10
"""Nodes that more rules about placed pods refuse are left out where pods are to leave."""
_VICTIMS_MAX = 8
"""More pods than these are not told to go: whoever has to remove so many, repairs nothing."""
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
"""Of equally many changes, those of the pod come first, then those of nodes."""
_SHAPES_MAX = 20
"""So many shapes of new nodes are tried, the smallest first."""
_ADDED_MAX = 3
"""So many of them are told."""
_STEP_NODES = 200
_SECONDS_OVER = "The time for the search was over."
_TRIALS_OVER = "As many changes were tried out as one search may."
_KINDS_OVER = "The nodes differ in too many ways to look at all of them."


class Guess:
    """Changes that may be a repair, and the pods that leave as well."""

    def __init__(self, remedies: Iterable[Remedy], victims: Sequence[Pod] = ()) -> None:
        by_key = {each.key: each for each in remedies}
        self.remedies = sorted(
            by_key.values(), key=lambda each: (_ORDER.index(each.key[0]), each.key)
        )
        self.victims = tuple(victims)
        self.keys = frozenset(by_key)

    @property
    def size(self) -> int:
        """How many changes it is made of; each pod that leaves is one."""
        return len(self.remedies) + len(self.victims)

    @property
    def rank(self) -> tuple[object, ...]:
        """What guesses are sorted by, the best first."""
        kinds = [_ORDER.index(each.key[0]) for each in self.remedies]
        return self.size, len(self.victims), kinds, [each.key for each in self.remedies]

    def subsets(self) -> Iterator["Guess"]:
        """Yield what is left if any changes are left out, or any one pod may stay."""
        for size in range(len(self.remedies)):
            for some in combinations(self.remedies, size):
                yield Guess(some, self.victims)
        if len(self.victims) == 1:
            yield Guess(self.remedies)
        elif len(self.victims) > 1:
            for index in range(len(self.victims)):
                yield Guess(self.remedies, (*self.victims[:index], *self.victims[index + 1 :]))


class RepairBounds(NamedTuple):
    """What repairs may be made of, and how many are wanted."""

    changes_max: int
    repairs_max: int
    removable: frozenset[str] | None
    """The namespaces whose pods may go; None: all."""
    plan: Bounds = Bounds()
    """Who stays all the same, and how many may go."""

    @property
    def victims_max(self) -> int:
        """How many pods may go."""
        most = self.plan.evictions_max
        return _VICTIMS_MAX if most is None else min(most, _VICTIMS_MAX)


class Found(NamedTuple):
    """What was found for a pod."""

    fits: bool
    message: str | None
    """Why it does not fit."""
    repairs: list[Repair]
    unfinished: str | None
    """What ended the search early; None if nothing did."""


def find_repairs(context: DecisionContext, intent: FindRepairs) -> Decision[RepairsAnswer]:
    """Find the repairs of a stored pod, with the pod itself taken out.

    Raises:
        NotFound: there is no such pod.
        Denied: its `schedulerName` is no profile, so no node can take it whatever is changed.
    """
    manifest = context.replica.pod(intent.namespace, intent.name)
    if manifest is None:
        raise missing("Pod", intent.namespace, intent.name)
    if not knows_scheduler(context.replica.cluster, manifest.pod):
        raise unknown_scheduler(context.replica.cluster, manifest.pod)
    bounds = RepairBounds(intent.changes_max, intent.repairs_max, intent.removable)
    found = yield from repairs_of(context, manifest, bounds)
    return RepairsAnswer(
        revision=context.replica.revision,
        namespace=manifest.namespace,
        name=manifest.name,
        fits=found.fits,
        message=found.message,
        repairs=found.repairs,
        complete=found.unfinished is None,
        unfinished=found.unfinished,
    )


def repairs_of(
    context: DecisionContext, manifest: PodManifest, bounds: RepairBounds
) -> Steps[Found]:
    """Find the repairs of a pod whose scheduler is known, stored or not; a stored one is taken out."""
    held_back = _held_back(context, manifest)
    if held_back is not None:
        return Found(fits=False, message=held_back, repairs=[], unfinished=None)
    search = _Search(context, bounds, manifest.pod)
    yield
    found = search.tried(Guess(()))
    if isinstance(found, Placement):
        return Found(fits=True, message=None, repairs=[], unfinished=None)
    message = found.message
    repairs = yield from search.repairs()
    return Found(fits=False, message=message, repairs=repairs, unfinished=search.unfinished)


def _held_back(context: DecisionContext, manifest: PodManifest) -> str | None:
    """Say why a waiting pod would not be placed whatever nodes it fits on."""
    if manifest.pod.node_name is not None:
        return None
    told = held_back_by(context, Candidate(manifest, manifest))
    told = told or waits_for_members(context.replica, manifest)
    return told or shares_domain(context.replica, manifest)


class _Search:
    """One search for the repairs of one pod."""

    def __init__(self, context: DecisionContext, bounds: RepairBounds, pod: Pod) -> None:
        self._context = context
        self._bounds = bounds
        self._cluster = context.replica.cluster
        self._stored: ObjectName = (pod.namespace, pod.name)
        self._pod = replace(pod, node_name=None, nominated_node_name=None)
        self._known: dict[tuple[frozenset[Key], frozenset[ObjectName]], bool] = {}
        """Whether the pod fits after changes that were tried out."""
        self._trials_left = context.limits.repair_trials_max
        self._budgets = context.budgets(as_given=False)
        self._allowances = Allowances(context.replica.cluster)
        self.unfinished: str | None = None
        """What ended the search early; None if nothing has."""

    def repairs(self) -> Steps[list[Repair]]:
        """Return the repairs, the least ones first."""
        mark = self._without_pod()
        try:
            self._map = ObstacleMap(self._cluster, self._pod)
        finally:
            self._cluster.undo(mark)
        kinds = self._map.kinds(_KINDS_MAX)
        if not self._map.is_whole:
            self.unfinished = _KINDS_OVER
        yield
        guesses = self._guesses(kinds)
        guesses = [each for each in guesses if not self._has_smaller(each, kinds)]
        yield
        guesses += yield from self._with_node()
        if self._bounds.victims_max > 0:
            guesses += yield from self._with_victims(kinds)
        found: list[Repair] = []
        for guess in sorted(guesses, key=attrgetter("rank")):
            if len(found) >= self._bounds.repairs_max or self._is_over():
                break
            repair = yield from self._proved(guess)
            if repair is not None:
                found.append(repair)
        return found

    def _is_over(self) -> bool:
        if self._trials_left <= 0:
            self.unfinished = _TRIALS_OVER
        elif self._context.is_late():
            self.unfinished = _SECONDS_OVER
        return self.unfinished in (_TRIALS_OVER, _SECONDS_OVER)

    # Guesses

    def _guesses(self, kinds: Sequence[Kind]) -> list[Guess]:
        """Return the sets of changes of which each does away with all obstacles of some node."""
        found: dict[frozenset[Key], Guess] = {}
        for kind in kinds:
            options = [self._map.options(each, kind.slot) for each in kind.obstacles]
            if not all(options) or len(options) > 2 * self._bounds.changes_max:
                continue
            for some in product(*options):
                guess = Guess(some)
                if guess.size <= self._bounds.changes_max and len(found) < _GUESSES_MAX:
                    found.setdefault(guess.keys, guess)
        if len(found) == _GUESSES_MAX:
            self.unfinished = _KINDS_OVER
        return list(found.values())

    def _has_smaller(self, guess: Guess, kinds: Sequence[Kind]) -> bool:
        """Whether fewer of the changes seem to be enough, so that it is not worth a trial."""
        return any(
            self._map.seem_enough(some, kinds)
            for size in range(1, len(guess.remedies))
            for some in combinations(guess.remedies, size)
        )

    def _with_node(self) -> Steps[list[Guess]]:
        """Return guesses that a node comes, of the smallest shapes that are there and help."""
        name, found = template_name(self._cluster), list[Guess]()
        for node in (yield from self._shapes())[:_SHAPES_MAX]:
            if len(found) >= _ADDED_MAX or self._is_over():
                break
            guess = Guess([adding_like(node, name)])
            if self._fits_after(guess):
                found.append(guess)
            yield
        return found

    def _shapes(self) -> Steps[list[Node]]:
        """Return a node of each shape that may help, the smallest first."""
        found: dict[Hashable, tuple[int, int, str, Node]] = {}
        nodes = self._cluster.nodes
        cpu, memory = nodes.allocatable("cpu"), nodes.allocatable("memory")
        for index, slot in enumerate(self._map.refused_for_others()):
            node = nodes.nodes[slot]
            assert node is not None
            size = int(cpu[slot]), int(memory[slot]), node.name
            known = found.setdefault(shape_of(node), (*size, node))
            if size < known[:3]:
                found[shape_of(node)] = (*size, node)
            if index % _STEP_NODES == _STEP_NODES - 1:
                yield
        return [node for *_, node in sorted(found.values(), key=itemgetter(0, 1, 2))]

    # Pods in the way

    def _with_victims(self, kinds: Sequence[Kind]) -> Steps[list[Guess]]:
        """Return guesses in which pods leave, after as few other changes as may be."""
        found: list[Guess] = []
        for base in self._before_victims(kinds)[: self._context.limits.repair_removals_max]:
            if self._is_over():
                break
            if not self._map.seem_enough(base.remedies, kinds):
                guess = yield from self._victims_after(base)
                found += [] if guess is None else [guess]
            yield
        return found

    def _before_victims(self, kinds: Sequence[Kind]) -> list[Guess]:
        found: dict[frozenset[Key], Guess] = {}
        for kind in kinds:
            options = [(each, self._map.options(each, kind.slot)) for each in kind.obstacles]
            fixed = [some for each, some in options if not each.removable]
            loose = [[None, *some] for each, some in options if each.removable]
            if len(fixed) >= 2 * self._bounds.changes_max or not 0 < len(loose) <= _LOOSE_MAX:
                continue
            for some in product(*fixed, *loose):
                guess = Guess(each for each in some if each is not None)
                if len(guess.remedies) < self._bounds.changes_max:
                    found.setdefault(guess.keys, guess)
        return sorted(found.values(), key=attrgetter("rank"))

    def _victims_after(self, base: Guess) -> Steps[Guess | None]:
        """Return the guess that so few pods as possible leave after some changes, if that helps.

        Nodes are tried in the order of how many have to leave at least, until no other can be better.
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

    def _promising(self, base: Guess) -> list[Promising]:
        """Return the nodes of which few pods have to leave, each with how many that are at least."""
        mark = self._without_pod()
        try:
            most = self._context.limits.repair_nodes_max
            victims_max = self._bounds.victims_max
            return promising_nodes(self._cluster, self._changed(base), victims_max, most)
        finally:
            self._cluster.undo(mark)

    def _in_the_way(self, base: Guess, slot: int) -> tuple[Pod, ...]:
        """Return pods without which a node takes the pod after some changes; none if there is no way."""
        cluster, bounds = self._cluster, self._bounds
        stays = None if bounds.plan.protect == Protected() else self._stays
        removability = Removability(_ANY_PRIORITY, bounds.removable, stays)
        mark = self._without_pod()
        try:
            pod = self._changed(base)
            found = Elsewhere(cluster, pod, removability, self._budgets).on(slot)
        finally:
            cluster.undo(mark)
            self._trials_left -= 1
        if found is None or (
            bounds.plan.respect_budgets and self._allowances.blocking(found.pods) is not None
        ):
            return ()
        return found.pods

    def _stays(self, pod: Pod) -> bool:
        return is_protected(pod, self._bounds.plan.protect)

    # Trying out

    def _without_pod(self) -> int:
        mark = self._cluster.mark()
        if self._cluster.pod(*self._stored) is not None:
            self._cluster.delete_pod(*self._stored)
        return mark

    def _changed(self, guess: Guess) -> Pod:
        """Make the changes of nodes, and return the pod as it is after the others."""
        spec = self._pod.spec
        for each in guess.remedies:
            if each.of_pod is not None:
                spec = each.of_pod(spec)
            elif each.added is not None:
                self._cluster.put_node(each.added)
            elif each.of_node is not None:
                node = self._cluster.node(each.node_name)
                assert node is not None
                self._cluster.put_node(each.of_node(node))
        return self._pod if spec is self._pod.spec else replace(self._pod, spec=spec)

    def tried(self, guess: Guess, *, untold: bool = False) -> Placement | Refusal:
        """Say where the pod would go after changes, or why nowhere; everything is undone."""
        mark = self._without_pod()
        try:
            pod = self._changed(guess)
            for each in guess.victims:
                self._cluster.delete_pod(each.namespace, each.name)
            return place(self._cluster, pod, untold=untold)
        finally:
            self._cluster.undo(mark)
            self._trials_left -= 1

    def _fits_after(self, guess: Guess) -> bool:
        key = guess.keys, frozenset((each.namespace, each.name) for each in guess.victims)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = isinstance(self.tried(guess, untold=True), Placement)
        return known

    def _proved(self, guess: Guess) -> Steps[Repair | None]:
        """Return a guess as a repair if the pod fits after it, and not after less."""
        placed = self.tried(guess, untold=True)
        yield
        if not isinstance(placed, Placement):
            return None
        for less in guess.subsets():
            if self._is_over() or self._fits_after(less):
                return None
            yield
        return Repair(
            changes=list(self._told(guess)),
            places=placed.node_name,
            why=self._why(guess),
            moves=self._moves(guess, placed.node_name) if guess.victims else UNSET,
        )

    def _moves(self, guess: Guess, node_name: str) -> list[RepairMove]:
        """Place the pods that leave, one after the other, once the pod is there; undo all of it."""
        mark, moves = self._without_pod(), list[RepairMove]()
        try:
            pod = self._changed(guess)
            for each in guess.victims:
                self._cluster.delete_pod(each.namespace, each.name)
            self._cluster.put_pod(replace(pod, node_name=node_name))
            for each in guess.victims:
                moves.append(self._moved(each))
        finally:
            self._cluster.undo(mark)
            self._trials_left -= len(guess.victims)
        return moves

    def _moved(self, victim: Pod) -> RepairMove:
        left = replace(victim, node_name=None, nominated_node_name=None)
        found = place(self._cluster, left, untold=True)
        to = found.node_name if isinstance(found, Placement) else None
        if to is not None:
            self._cluster.put_pod(replace(left, node_name=to))
        return RepairMove(namespace=victim.namespace, name=victim.name, to=to)

    # Telling

    def _told(self, guess: Guess) -> Iterator[AnyRepairChange]:
        for each in guess.remedies:
            assert each.change is not None
            yield each.change
        names = sorted((each.namespace, each.name) for each in guess.victims)
        for namespace, group in groupby(names, key=lambda each: each[0]):
            yield RemovePods(namespace=namespace, names=tuple(name for _, name in group))

    def _why(self, guess: Guess) -> str:
        """Say how many nodes refuse the pod for nothing else."""
        if guess.victims:
            count = len(guess.victims)
            pods = "a pod is" if count == 1 else f"{count} pods are"
            return f"{pods} in the way" + (" then" if guess.remedies else "")
        names = {each.node_name for each in guess.remedies if each.node_name}
        if any(each.added is not None for each in guess.remedies):
            return f"nothing keeps the pod from an empty node like {', '.join(sorted(names))}"
        if names:
            return f"nothing else keeps the pod from {', '.join(sorted(names))}"
        count = self._map.count_without(guess.remedies)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"nothing else keeps the pod from {nodes} of {self._cluster.nodes.count}"
