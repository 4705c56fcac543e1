"""Placement of groups: all members or none, each checked with all others placed.

After a lost race, the previously chosen nodes are tried first: all of them, then those that still
pass. Then there are three attempts, each costlier than the one before: one by one with all rules;
one by one within each domain of a topology key by which members have affinity to each other,
treating rules that later members may still satisfy as satisfied; and a search with backtracking,
bounded in steps. Every result is verified as a whole: each member is removed from the state that
has all of them, and checked against it.

Members that have to share a domain of a node label (`Colocation`) are tried in each domain: one by
one in all domains, in the order of `domains_by_fit`, and only then by searches with backtracking.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.groups.colocation import Colocation, domains_of
from service.engine.placing.binding import assume_bindings, bindings_on
from service.engine.placing.device_binding import allocations_on
from service.engine.placing.placement import (
    Placement,
    best_placement,
    candidates_of,
    check,
    place,
    profile_of,
    relation_vetoes,
    without_reserved_nodes,
)
from service.engine.placing.refusal import Refusal, refuse
from service.engine.ranking.rank_cache import Candidates
from service.engine.state.nodes.group_domain import GroupDomain, group_domain
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.model.devices.device import ClaimAllocation
from service.model.pods.pod import Pod

T = TypeVar("T")
Search = Generator[None, None, T]
"""A search in steps of a few milliseconds at most."""
_Choice = tuple[str | None, ...]
"""One label value per colocation, each None if no node has the label."""
_STEPS_AT_ONCE = 16
"""A deep search yields only once per this many steps, because each level forwards every yield."""
_PODS_AT_ONCE = 8
"""The number of pods that are compiled, or bound to their previous nodes, in one step."""


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """One placement for each member, in the members' order."""

    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """The member that the best attempt failed on, and why it failed."""

    failed: int
    refusal: Refusal
    exhausted: bool
    """Whether the search ran out of steps."""
    steps: int = 0
    """The number of steps taken."""
    tried: int = 0
    """The number of domains tried, if members have to share one."""

    @property
    def message(self) -> str:
        """Why the member failed, and whether the search was exhaustive."""
        sentences = [self.refusal.message]
        if self.tried > 1:
            sentences.append(
                f"None of the {self.tried} domains that were tried takes the whole group."
            )
        if self.exhausted:
            sentences.append("The search ended at groupSearchSteps; a placement may still exist.")
        return " ".join(sentences)


def place_group(
    cluster: Cluster,
    pods: Sequence[Pod],
    hints: Sequence[str | None] = (),
    colocations: Sequence[Colocation] = (),
) -> GroupPlacement | GroupRefusal:
    """Find nodes for all pods together, without changing the cluster.

    Args:
        cluster: the cluster.
        pods: the members of the group.
        hints: for each pod, the node chosen before a lost race, or empty. They are taken if the whole
            group still passes there, and otherwise as far as members do.
        colocations: the members that have to share a domain.

    Raises:
        UnknownSchedulerError: a pod's scheduler is not a profile of the cluster.
    """
    search = place_group_in_steps(cluster, pods, hints, colocations)
    while True:
        try:
            next(search)
        except StopIteration as stop:
            outcome: GroupPlacement | GroupRefusal = stop.value
            return outcome


def place_group_in_steps(
    cluster: Cluster,
    pods: Sequence[Pod],
    hints: Sequence[str | None] = (),
    colocations: Sequence[Colocation] = (),
) -> Search[GroupPlacement | GroupRefusal]:
    """Run `place_group` step by step.

    Between the steps the cluster contains tentative pods, and must not be changed.
    """
    return GroupSearch(cluster, pods, colocations).run(hints)


class GroupSearch:
    """The attempts to place one group, and the failure that got furthest."""

    def __init__(
        self, cluster: Cluster, pods: Sequence[Pod], colocations: Sequence[Colocation] = ()
    ) -> None:
        self._cluster = cluster
        self._colocations = colocations
        self._within: list[GroupDomain | None] = [None] * len(pods)
        """The domain in which each member is currently tried, if it has to share one."""
        self._pods = pods
        self._classes: list[PodClass] = []
        self._bindings: dict[int, dict[str, str] | None] = {}
        """The volume bindings of each member from when it was last bound."""
        self._devices: dict[int, list[ClaimAllocation] | None] = {}
        """The device allocations of each member from when it was last bound."""
        self._start = cluster.mark()
        self._steps = self._steps_max = cluster.config.group_search_steps
        self._tried = 0
        """The number of domains tried, if members have to share one."""
        self._failed = 0
        self._refusal: Refusal | None = None

    def run(self, hints: Sequence[str | None]) -> Search[GroupPlacement | GroupRefusal]:
        """Make attempts until one succeeds, leaving the cluster unchanged."""
        try:
            yield from self._classify()
            for attempt in self._attempts(hints):
                placements = yield from attempt
                if placements is not None:
                    return GroupPlacement(tuple(self._with_bindings(placements)))
                self._cluster.undo(self._start)
        finally:
            self._cluster.undo(self._start)
        assert self._refusal is not None
        return GroupRefusal(
            self._failed,
            self._refusal,
            exhausted=self._steps <= 0,
            steps=self._steps_max - max(self._steps, 0),
            tried=self._tried,
        )

    def _classify(self) -> Search[None]:
        """Look up the classes of all members, compiling them where necessary."""
        for index, pod in enumerate(self._pods):
            if index % _PODS_AT_ONCE == _PODS_AT_ONCE - 1:
                yield
            self._classes.append(self._cluster.class_of(pod))

    def _attempts(self, hints: Sequence[str | None]) -> "Iterator[_Attempt]":
        if self._colocations:
            yield from self._attempts_by_domain(hints)
            return
        yield from self._with_hints(hints)
        yield self._in_order()
        for domain in self._domains():
            yield self._in_order_within(domain)
        yield self._search()

    def _with_hints(self, hints: Sequence[str | None]) -> "Iterator[_Attempt]":
        if hints and all(hints):
            yield self._with_all_hints([hint for hint in hints if hint is not None])
        if any(hints):
            yield self._with_passing_hints(hints)

    def _attempts_by_domain(self, hints: Sequence[str | None]) -> "Iterator[_Attempt]":
        """Try all domains cheaply before searching any of them exhaustively.

        Every member that is tried in a domain counts as a step.
        """
        domains: list[list[str | None]] = []
        yield self._list_domains(domains, hints)
        # At most as many choices as the search has steps, and at least one.
        choices: list[_Choice] = list(islice(product(*domains), self._steps_max))
        if any(hints):
            self._choose(choices[0])
            yield from self._with_hints(hints)
        quick: list[Callable[[], _Attempt]] = [self._in_order]
        if any(True for _ in self._domains()):
            quick.append(self._in_order_within)
        for attempt in quick:
            for number, choice in enumerate(choices, 1):
                if self._steps <= 0:
                    return
                self._choose(choice)
                self._tried = max(self._tried, number)
                yield attempt()
                self._steps -= len(self._pods)
        for choice in choices:
            if self._steps <= 0:
                return
            self._choose(choice)
            yield self._search()

    def _list_domains(
        self, domains: list[list[str | None]], hints: Sequence[str | None]
    ) -> "_Attempt":
        """List the domains of each colocation in turn; place nothing."""
        for colocation in self._colocations:
            yield
            pods = [self._pods[i] for i in colocation.members]
            domains.append(domains_of(self._cluster, colocation, pods, hints))
        return None

    def _choose(self, values: _Choice) -> None:
        """Set the domains in which members are tried next."""
        for colocation, value in zip(self._colocations, values, strict=True):
            within = group_domain(self._cluster.nodes, colocation.key, value)
            for index in colocation.members:
                self._within[index] = within

    def _with_all_hints(self, hints: list[str]) -> "_Attempt":
        if any(hint not in self._cluster.nodes.slots for hint in hints):
            return None
        for index, hint in enumerate(hints):
            if index % _PODS_AT_ONCE == _PODS_AT_ONCE - 1:
                yield
            self._bind(index, hint)
        if None in self._bindings.values() or None in self._devices.values():
            return None
        return (yield from self.verify(hints))

    def _with_passing_hints(self, hints: Sequence[str | None]) -> "_Attempt":
        """Use the hints that still pass, then place the other members around them."""
        names: dict[int, str] = {}
        for index, (pod, hint) in enumerate(zip(self._pods, hints, strict=True)):
            yield
            answer = place(self._cluster, pod, hint, self._within[index])
            if isinstance(answer, Placement) and answer.node_name == hint:
                self._bind(index, hint)
                names[index] = hint
        return (yield from self._in_order(names))

    def _in_order(self, bound: Mapping[int, str] = MappingProxyType({})) -> "_Attempt":
        """Place the members in order under all rules; those in `bound` are already placed."""
        names = dict(bound)
        for index, pod in enumerate(self._pods):
            if index in bound:
                continue
            yield
            known = self._knows_failure(index)
            answer = place(self._cluster, pod, within=self._within[index], with_reasons=not known)
            if isinstance(answer, Refusal):
                self._note(index, answer)
                return None
            self._bind(index, answer.node_name)
            names[index] = answer.node_name
        return (yield from self.verify([names[index] for index in range(len(names))]))

    def _domains(self) -> Iterator[Vetoes]:
        """Yield, for each domain of the members' mutual affinity, vetoes of all other nodes."""
        keys = dict.fromkeys(
            term.counter.key
            for pod_class in self._classes
            for term in pod_class.template.affinity
            if self._matches_any_member(term.matcher.classes)
        )
        for key in keys:
            for _, domain in sorted(key.values.items()):
                yield Vetoes(key, nodes=np.where(key.domain_of == domain, 0, VETO))

    def _in_order_within(self, *domain: Vetoes) -> "_Attempt":
        names = []
        for index in range(len(self._pods)):
            yield
            choice = self._choice(index, *domain)
            if choice is None:
                if not self._knows_failure(index):
                    self._note(index, self._reason(index))
                return None
            self._bind(index, choice.node_name)
            names.append(choice.node_name)
        return (yield from self.verify(names))

    def _choice(self, index: int, *domain: Vetoes) -> Placement | None:
        pod, pod_class = self._pods[index], self._classes[index]
        return best_placement(
            self._cluster, pod, pod_class, self._optimistic_candidates(index, *domain)
        )

    def _optimistic_candidates(self, index: int, *more: Vetoes) -> Candidates:
        """Return the candidates, treating rules that later members may satisfy as satisfied."""
        pod, pod_class = self._pods[index], self._classes[index]
        profile = profile_of(self._cluster, pod)
        nodes = self._cluster.nodes
        vetoes = relation_vetoes(nodes, pod_class, profile, expected=self._classes)
        within = self._within[index]
        more = more if within is None else (*more, within.vetoes)
        candidates = candidates_of(self._cluster, pod_class, profile, [*vetoes, *more])
        if self._cluster.has_reservations:
            return without_reserved_nodes(self._cluster, pod, candidates, self._classes, more)
        return candidates

    def _search(self) -> "_Attempt":
        """Search depth first over all nodes; members of one class take slots in ascending order."""
        return self._descend(0, [])

    def _descend(self, index: int, slots: list[int]) -> "_Attempt":
        if index == len(self._pods):
            return (yield from self.verify([self._node_name(slot) for slot in slots]))
        mark = self._cluster.mark()
        for slot in self._candidates(index, slots):
            self._steps -= 1
            if self._steps < 0:
                return None
            if self._steps % _STEPS_AT_ONCE == 0:
                yield
            self._bind(index, self._node_name(slot))
            placements = yield from self._descend(index + 1, [*slots, slot])
            if placements is not None:
                return placements
            self._cluster.undo(mark)
        return None

    def _candidates(self, index: int, slots: list[int]) -> list[int]:
        """Return the feasible slots, best first.

        A member of the same class as the previous one takes no earlier slot: exchanging the two
        would make no difference.
        """
        ranks = self._optimistic_candidates(index).ranks
        feasible = np.flatnonzero(ranks >= 0)
        same = index > 0 and self._classes[index] is self._classes[index - 1]
        if same:
            return [int(slot) for slot in feasible if slot >= slots[index - 1]]
        return [int(slot) for slot in feasible[np.argsort(-ranks[feasible], kind="stable")]]

    def verify(self, names: Sequence[str]) -> "_Attempt":
        """Check each member of the group again, with that member removed."""
        placements = []
        for index, (pod, name) in enumerate(zip(self._pods, names, strict=True)):
            if index % _STEPS_AT_ONCE == _STEPS_AT_ONCE - 1:
                yield
            mark = self._cluster.mark()
            self._cluster.delete_pod(pod.namespace, pod.name)
            self._cluster.forget_assumed_devices(pod)
            answer = place(self._cluster, pod, name, self._within[index])
            if isinstance(answer, Refusal) or answer.node_name != name:
                self._note(index, _broken_by_the_rest(name, check(self._cluster, pod, name)))
                return None
            self._cluster.undo(mark)
            placements.append(answer)
        return placements

    def _reason(self, index: int) -> Refusal:
        pod = self._pods[index]
        return refuse(self._cluster, pod, profile_of(self._cluster, pod), self._within[index])

    def _note(self, failed: int, refusal: Refusal) -> None:
        """Record the failure of the attempt that got furthest."""
        if not self._knows_failure(failed):
            self._failed, self._refusal = failed, refusal

    def _knows_failure(self, index: int) -> bool:
        """Return whether a failure of this member or a later one is already known."""
        return self._refusal is not None and index <= self._failed

    def _matches_any_member(self, matched: dict[PodClass, None]) -> bool:
        return any(pod_class in matched for pod_class in self._classes)

    def _bind(self, index: int, node_name: str) -> None:
        pod = self._pods[index]
        bindings = bindings_on(self._cluster, pod, node_name)
        assume_bindings(self._cluster, pod, node_name, bindings or {})
        self._bindings[index] = bindings
        devices = allocations_on(self._cluster, pod, node_name)
        self._cluster.assume_devices(pod, devices or ())
        self._devices[index] = devices
        self._cluster.put_pod(replace(pod, node_name=node_name))

    def _with_bindings(self, placements: Sequence[Placement]) -> Iterator[Placement]:
        """Yield each placement with the bindings that the search chose for it."""
        for index, placement in enumerate(placements):
            bindings = self._bindings[index]
            devices = self._devices[index]
            yield Placement(placement.node_name, placement.score, bindings, devices)

    def _node_name(self, slot: int) -> str:
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        return node.name


_Attempt = Search[list[Placement] | None]


def _broken_by_the_rest(node_name: str, broken: dict[str, list[str]]) -> Refusal:
    reasons = [reason for plugin_reasons in broken.values() for reason in plugin_reasons]
    return Refusal(
        f"with the whole group placed, {node_name} fails: {', '.join(reasons)}.",
        {plugin: dict.fromkeys(plugin_reasons, 1) for plugin, plugin_reasons in broken.items()},
    )
