"""Finding the least changes after which a pod fits that no node takes.

First, all that keeps the pod from nodes is told apart, over all nodes at once (`obstacles`). Nodes with
the same obstacles are alike, so few kinds of nodes remain, and of each kind the sets of changes follow
that do away with its obstacles. Where placed pods are in the way, those are found that would have to
leave as preemption finds them, but whatever their priority.

That yields guesses only. Each of them is then tried out: the changes are made, the pod is placed as
every pod is, and everything is undone. A guess is told if the pod fits then, and if it does not fit
any more as soon as one of the changes, or of the pods that leave, is left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, groupby, product
from operator import attrgetter

from msgspec.structs import replace

from service.engine import Placement, Refusal, place
from service.engine.preemption.cross_node import Elsewhere
from service.engine.preemption.victims import Removability
from service.engine.questions.obstacles import (
    Key,
    Kind,
    ObstacleMap,
    Promising,
    Remedy,
    promising_nodes,
)
from service.model.manifest import PodManifest
from service.model.objects import ObjectName, Pod
from service.model.repair_changes import AnyRepairChange, RemovePods
from service.scheduler.decide.admission import knows_scheduler
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.group_membership import waits_for_members
from service.scheduler.decide.object_writes import missing
from service.scheduler.decide.placing.one_pod import Candidate, held_back_by, unknown_scheduler
from service.scheduler.decide.shared_domain import shares_domain
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.repairs import (
    Repair,
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
)
"""Of equally many changes, those of the pod come first, then those of nodes."""
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
    search = _Search(context, intent, manifest.pod)
    held_back = _held_back(context, manifest)
    if held_back is not None:
        return search.answer([], fits=False, message=held_back)
    yield
    found = search.tried(Guess(()))
    if isinstance(found, Placement):
        return search.answer([], fits=True, message=None)
    message = found.message
    repairs = yield from search.repairs()
    return search.answer(repairs, fits=False, message=message)


def _held_back(context: DecisionContext, manifest: PodManifest) -> str | None:
    """Say why a waiting pod would not be placed whatever nodes it fits on."""
    if manifest.pod.node_name is not None:
        return None
    told = held_back_by(context, Candidate(manifest, manifest))
    told = told or waits_for_members(context.replica, manifest)
    return told or shares_domain(context.replica, manifest)


class _Search:
    """One search for the repairs of one pod."""

    def __init__(self, context: DecisionContext, intent: FindRepairs, stored: Pod) -> None:
        self._context = context
        self._intent = intent
        self._cluster = context.replica.cluster
        self._stored: ObjectName = (stored.namespace, stored.name)
        self._pod = replace(stored, node_name=None, nominated_node_name=None)
        self._known: dict[tuple[frozenset[Key], frozenset[ObjectName]], bool] = {}
        """Whether the pod fits after changes that were tried out."""
        self._trials_left = context.limits.repair_trials_max
        self._budgets = context.budgets(as_given=False)
        self._unfinished: str | None = None

    def answer(self, repairs: list[Repair], *, fits: bool, message: str | None) -> RepairsAnswer:
        return RepairsAnswer(
            revision=self._context.replica.revision,
            namespace=self._pod.namespace,
            name=self._pod.name,
            fits=fits,
            message=message,
            repairs=repairs,
            complete=self._unfinished is None,
            unfinished=self._unfinished,
        )

    def repairs(self) -> Steps[list[Repair]]:
        """Return the repairs, the least ones first."""
        mark = self._without_pod()
        try:
            self._map = ObstacleMap(self._cluster, self._pod)
        finally:
            self._cluster.undo(mark)
        kinds = self._map.kinds(_KINDS_MAX)
        if not self._map.is_whole:
            self._unfinished = _KINDS_OVER
        yield
        guesses = self._guesses(kinds)
        guesses = [each for each in guesses if not self._has_smaller(each, kinds)]
        yield
        guesses += yield from self._with_victims(kinds)
        found: list[Repair] = []
        for guess in sorted(guesses, key=attrgetter("rank")):
            if len(found) >= self._intent.repairs_max or self._is_over():
                break
            repair = yield from self._proved(guess)
            if repair is not None:
                found.append(repair)
        return found

    def _is_over(self) -> bool:
        if self._trials_left <= 0:
            self._unfinished = _TRIALS_OVER
        elif self._context.is_late():
            self._unfinished = _SECONDS_OVER
        return self._unfinished in (_TRIALS_OVER, _SECONDS_OVER)

    # Guesses

    def _guesses(self, kinds: Sequence[Kind]) -> list[Guess]:
        """Return the sets of changes of which each does away with all obstacles of some node."""
        found: dict[frozenset[Key], Guess] = {}
        for kind in kinds:
            options = [self._map.options(each, kind.slot) for each in kind.obstacles]
            if not all(options) or len(options) > 2 * self._intent.changes_max:
                continue
            for some in product(*options):
                guess = Guess(some)
                if guess.size <= self._intent.changes_max and len(found) < _GUESSES_MAX:
                    found.setdefault(guess.keys, guess)
        if len(found) == _GUESSES_MAX:
            self._unfinished = _KINDS_OVER
        return list(found.values())

    def _has_smaller(self, guess: Guess, kinds: Sequence[Kind]) -> bool:
        """Whether fewer of the changes seem to be enough, so that it is not worth a trial."""
        return any(
            self._map.seem_enough(some, kinds)
            for size in range(1, len(guess.remedies))
            for some in combinations(guess.remedies, size)
        )

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
            if len(fixed) >= 2 * self._intent.changes_max or not 0 < len(loose) <= _LOOSE_MAX:
                continue
            for some in product(*fixed, *loose):
                guess = Guess(each for each in some if each is not None)
                if len(guess.remedies) < self._intent.changes_max:
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
            if pods and len(pods) <= _VICTIMS_MAX and (best is None or len(pods) < len(best)):
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
            return promising_nodes(self._cluster, self._changed(base), _VICTIMS_MAX, most)
        finally:
            self._cluster.undo(mark)

    def _in_the_way(self, base: Guess, slot: int) -> tuple[Pod, ...]:
        """Return pods without which a node takes the pod after some changes; none if there is no way."""
        cluster, removability = self._cluster, Removability(_ANY_PRIORITY, self._intent.removable)
        mark = self._without_pod()
        try:
            pod = self._changed(base)
            found = Elsewhere(cluster, pod, removability, self._budgets).on(slot)
        finally:
            cluster.undo(mark)
            self._trials_left -= 1
        return () if found is None else found.pods

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
            changes=list(self._told(guess)), places=placed.node_name, why=self._why(guess)
        )

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
        if names:
            return f"nothing else keeps the pod from {', '.join(sorted(names))}"
        count = self._map.count_without(guess.remedies)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"nothing else keeps the pod from {nodes} of {self._cluster.nodes.count}"
