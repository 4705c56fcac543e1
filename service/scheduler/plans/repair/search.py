"""Finding the least changes after which a pod fits that no node takes.

First, all that keeps the pod from nodes is told apart, over all nodes at once (`obstacles`). Nodes with
the same obstacles are alike, so few kinds of nodes remain, and of each kind the sets of changes follow
that do away with its obstacles. Where placed pods are in the way, those are found that would have to
leave as preemption finds them, but whatever their priority. A node may also be added that is like one
of those that are there, but empty.

That yields guesses only. Each of them is then tried out: the changes are made, the pod is placed as
every pod is, and everything is undone. A guess is told if the pod fits then, and if it does not fit
any more as soon as one of the changes, or of the pods that leave, is left out.

A change may bring obstacles that were not there before: without its node affinity, a pod may have
domains over which it has to be spread. So after a guess that seemed to be enough and is not, what
keeps the pod from nodes then is looked at as well, and more guesses follow.
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
from service.model.manifests.manifest import PodManifest
from service.model.objects.pods_and_nodes import Node, ObjectName, Pod
from service.model.plans.plans import ProtectedPods
from service.model.plans.repair_changes import AnyRepairChange, RemovePods
from service.scheduler.decide.admission.pod_admission import knows_scheduler, unknown_scheduler
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.groups.group_membership import waits_for_members
from service.scheduler.decide.groups.shared_domain import shares_domain
from service.scheduler.decide.object_writes import missing
from service.scheduler.decide.placing.pod_placement import Candidate, held_back_by
from service.scheduler.plans.protected_pods import is_protected
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.plans import PlanBounds
from service.scheduler.protocol.repairs import Repair, RepairMove, RepairsAnswer

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
"""Among equally many changes, those of the pod come first, then those of nodes."""
_SHAPES_MAX = 20
"""So many shapes of new nodes are tried, the smallest first."""
_ADDED_MAX = 3
"""So many of them are told."""
_LOOKS_MAX = 20
"""So many guesses that were not enough are followed by what has come in the way after them."""
_STEP_NODES = 200
_SECONDS_OVER = "The time for the search was over."
_TRIALS_OVER = "As many changes were tried out as one search may."
_LOOKS_OVER = "Too many changes bring new obstacles to look at all of these."
_KINDS_OVER = "The nodes differ in too many ways to look at all of them."


class Guess:
    """Changes that may be a repair, and the pods that leave as well."""

    def __init__(
        self,
        remedies: Iterable[Remedy],
        victims: Sequence[Pod] = (),
        seen: ObstacleMap | None = None,
    ) -> None:
        by_key = {each.key: each for each in remedies}
        self.remedies = sorted(
            by_key.values(), key=lambda each: (_ORDER.index(each.key[0]), each.key)
        )
        self.victims = tuple(victims)
        self.keys = frozenset(by_key)
        self.seen = seen
        """All obstacles when the last of these changes was thought of; None if it was not for them."""

    def __lt__(self, other: "Guess") -> bool:
        return self.rank < other.rank

    @property
    def size(self) -> int:
        """How many changes it is made of; each pod that leaves is one."""
        return len(self.remedies) + len(self.victims)

    @property
    def identity(self) -> tuple[frozenset[Key], frozenset[ObjectName]]:
        """Equal for equal changes."""
        return self.keys, frozenset((each.namespace, each.name) for each in self.victims)

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


class Look(NamedTuple):
    """What keeps the pod from nodes once some changes are made."""

    after: Guess
    obstacles: ObstacleMap
    kinds: Sequence[NodeKind]

    def guess(self, remedies: Iterable[Remedy]) -> Guess:
        """Return the changes, and these as well."""
        return Guess((*self.after.remedies, *remedies), seen=self.obstacles)


class RepairBounds(NamedTuple):
    """What repairs may be made of, and how many are wanted."""

    changes_max: int
    repairs_max: int
    removable: frozenset[str] | None
    """The namespaces whose pods may go; None: all."""
    plan: PlanBounds = PlanBounds()
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
        self._guessed: set[tuple[frozenset[Key], frozenset[ObjectName]]] = set()
        self._looks_left = _LOOKS_MAX
        self._trials_left = context.limits.repair_trials_max
        self._budgets = context.budgets(as_given=False)
        self._allowances = Allowances(context.replica.cluster)
        self.unfinished: str | None = None
        """What ended the search early; None if nothing has."""

    def repairs(self) -> Steps[list[Repair]]:
        """Return the repairs, the least ones first."""
        first = self._look(Guess(()))
        yield
        waiting = yield from self._guesses_by(first)
        waiting += yield from self._with_node(first.obstacles)
        heapify(waiting)
        found: list[Repair] = []
        while waiting and len(found) < self._bounds.repairs_max and not self._is_over():
            guess = heappop(waiting)
            repair = yield from self._proved(guess)
            if repair is not None:
                found.append(repair)
            elif self._may_be_continued(guess):
                for each in (yield from self._continued(guess)):
                    heappush(waiting, each)
        return found

    def _may_be_continued(self, guess: Guess) -> bool:
        """Whether the pod does not even fit after a guess, and more changes may be made."""
        if guess.victims or any(each.added is not None for each in guess.remedies):
            return False
        return guess.size < self._bounds.changes_max and not self._fits_after(guess)

    def _continued(self, guess: Guess) -> Steps[list[Guess]]:
        """Return the guess with changes that do away with what has come in the way after it."""
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
        """Return those guesses that a look suggests and that there were not before."""
        guesses = self._guesses(look)
        yield
        if self._bounds.victims_max > 0:
            guesses += yield from self._with_victims(look)
        new = {each.identity: each for each in guesses if each.identity not in self._guessed}
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
        """Return the sets of changes of which each does away with all obstacles of some node."""
        found: dict[frozenset[Key], Guess] = {}
        with self._after(look.after):
            for kind in look.kinds:
                options = [look.obstacles.options(each, kind.slot) for each in kind.obstacles]
                if not all(options) or len(options) > 2 * self._bounds.changes_max:
                    continue
                for some in product(*options):
                    guess = look.guess(some)
                    if guess.size <= self._bounds.changes_max and len(found) < _GUESSES_MAX:
                        found.setdefault(guess.keys, guess)
            if len(found) == _GUESSES_MAX:
                self.unfinished = _KINDS_OVER
            return [each for each in found.values() if not self._has_smaller(each, look)]

    def _has_smaller(self, guess: Guess, look: Look) -> bool:
        """Whether fewer of the changes seem to be enough, so that it is not worth a trial yet."""
        more = [each for each in guess.remedies if each.key not in look.after.keys]
        return any(
            look.obstacles.may_suffice(some, look.kinds)
            for size in range(1, len(more))
            for some in combinations(more, size)
        )

    def _with_node(self, obstacles: ObstacleMap) -> Steps[list[Guess]]:
        """Return guesses that a node comes, of the smallest shapes that are there and help."""
        name, found = template_name(self._cluster), list[Guess]()
        for node in (yield from self._shapes(obstacles))[:_SHAPES_MAX]:
            if len(found) >= _ADDED_MAX or self._is_over():
                break
            guess = Guess([node_addition(node, name)])
            if self._fits_after(guess):
                found.append(guess)
            yield
        return found

    def _shapes(self, obstacles: ObstacleMap) -> Steps[list[Node]]:
        """Return a node of each shape that may help, the smallest first."""
        found: dict[Hashable, tuple[int, int, str, Node]] = {}
        nodes = self._cluster.nodes
        cpu, memory = nodes.allocatable("cpu"), nodes.allocatable("memory")
        for index, slot in enumerate(obstacles.blocked_by_others()):
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

    def _with_victims(self, look: Look) -> Steps[list[Guess]]:
        """Return guesses in which pods leave, after as few other changes as may be."""
        found: list[Guess] = []
        for base in self._before_victims(look)[: self._context.limits.repair_removals_max]:
            if self._is_over():
                break
            if not look.obstacles.may_suffice(base.remedies, look.kinds):
                guess = yield from self._victims_after(base)
                found += [] if guess is None else [guess]
            yield
        return found

    def _before_victims(self, look: Look) -> list[Guess]:
        found: dict[frozenset[Key], Guess] = {}
        with self._after(look.after):
            for kind in look.kinds:
                options = [
                    (each, look.obstacles.options(each, kind.slot)) for each in kind.obstacles
                ]
                fixed = [some for each, some in options if not each.removable]
                loose = [[None, *some] for each, some in options if each.removable]
                if len(fixed) >= 2 * self._bounds.changes_max or not 0 < len(loose) <= _LOOSE_MAX:
                    continue
                for some in product(*fixed, *loose):
                    guess = look.guess(each for each in some if each is not None)
                    if len(guess.remedies) < self._bounds.changes_max:
                        found.setdefault(guess.keys, guess)
        return sorted(found.values())

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

    def _promising(self, base: Guess) -> list[PromisingNode]:
        """Return the nodes of which few pods have to leave, each with how many that are at least."""
        most, victims_max = self._context.limits.repair_nodes_max, self._bounds.victims_max
        with self._after(base) as pod:
            return promising_nodes(self._cluster, pod, victims_max, most)

    def _in_the_way(self, base: Guess, slot: int) -> tuple[Pod, ...]:
        """Return pods without which a node takes the pod after some changes; none if there is no way."""
        bounds = self._bounds
        stays = None if bounds.plan.protect in (None, ProtectedPods()) else self._stays
        removability = Removability(_ANY_PRIORITY, bounds.removable, stays)
        with self._after(base) as pod:
            found = CrossNodeSearch(self._cluster, pod, removability, self._budgets).victims_for(
                slot
            )
        self._trials_left -= 1
        if found is None or (
            bounds.plan.respect_budgets and self._allowances.blocking(found.pods) is not None
        ):
            return ()
        return found.pods

    def _stays(self, pod: Pod) -> bool:
        return is_protected(pod, self._bounds.plan.protect)

    # Trying out

    @contextmanager
    def _after(self, guess: Guess) -> Iterator[Pod]:
        """Make the changes, and undo them at the end; without the pod, which is given as it is then."""
        mark = self._cluster.mark()
        try:
            if self._cluster.pod(*self._stored) is not None:
                self._cluster.delete_pod(*self._stored)
            pod = self._changed(guess)
            for each in guess.victims:
                self._cluster.delete_pod(each.namespace, each.name)
            yield pod
        finally:
            self._cluster.undo(mark)

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

    def tried(self, guess: Guess, *, with_reasons: bool = True) -> Placement | Refusal:
        """Say where the pod would go after changes, or why nowhere; everything is undone."""
        self._trials_left -= 1
        with self._after(guess) as pod:
            found = place(self._cluster, pod, with_reasons=with_reasons)
        self._known[guess.identity] = isinstance(found, Placement)
        return found

    def _fits_after(self, guess: Guess) -> bool:
        known = self._known.get(guess.identity)
        if known is None:
            self.tried(guess, with_reasons=False)
            known = self._known[guess.identity]
        return known

    def _proved(self, guess: Guess) -> Steps[Repair | None]:
        """Return a guess as a repair if the pod fits after it, and not after less."""
        placed = self.tried(guess, with_reasons=False)
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
        self._trials_left -= len(guess.victims)
        with self._after(guess) as pod:
            self._cluster.put_pod(replace(pod, node_name=node_name))
            return [self._moved(each) for each in guess.victims]

    def _moved(self, victim: Pod) -> RepairMove:
        left = replace(victim, node_name=None, nominated_node_name=None)
        found = place(self._cluster, left, with_reasons=False)
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
        assert guess.seen is not None
        count = guess.seen.count_without(guess.remedies)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"nothing else keeps the pod from {nodes} of {self._cluster.nodes.count}"
