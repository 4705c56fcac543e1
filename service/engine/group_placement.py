"""Groups placed as one: every member in the state with all the others, or none.

After a lost race the nodes chosen before come first: all of them, then as many as still pass. Then
three attempts, each costlier than the one before: one by one with all rules; one by one within
each domain of a co-location key, taking for granted what other members may still bring; and a
search with backtracking, bounded in steps. Whatever is found is checked whole: each member with
itself taken out of the state that has them all.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.placement import (
    Placement,
    best_placement,
    candidates_of,
    pipeline_of,
    place,
    relation_vetoes,
)
from service.engine.questions.explanation import check
from service.engine.ranking.candidates import Candidates
from service.engine.refusal import Refusal, refuse
from service.engine.state.classes import PodClass
from service.engine.state.rank_bits import VETO
from service.engine.state.vetoes import Vetoes
from service.model.objects import Pod

T = TypeVar("T")
Search = Generator[None, None, T]
"""The steps of a search, each of a few milliseconds at most."""
_STEPS_AT_ONCE = 16
"""Of a search that goes deep, where every step is passed on by each level."""


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """One placement per member, in their order."""

    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """Which member the best attempt failed on, and why."""

    failed: int
    refusal: Refusal
    exhausted: bool
    """The search ended for lack of steps, not of possibilities."""
    steps: int = 0
    """So many of them were made."""

    @property
    def message(self) -> str:
        """Why the member failed, and whether all was tried."""
        if not self.exhausted:
            return self.refusal.message
        told = "The search ended at groupSearchSteps; a placement may still exist."
        return f"{self.refusal.message} {told}"


def place_group(
    cluster: Cluster, pods: Sequence[Pod], hints: Sequence[str | None] = ()
) -> GroupPlacement | GroupRefusal:
    """Nodes for all pods together; changes nothing.

    `hints`, one per pod if there are any, are the nodes chosen before a lost race: kept if the
    whole group still passes there, else as far as they do.
    Raises `UnknownSchedulerError`.
    """
    search = placing_group(cluster, pods, hints)
    while True:
        try:
            next(search)
        except StopIteration as stop:
            found: GroupPlacement | GroupRefusal = stop.value
            return found


def placing_group(
    cluster: Cluster, pods: Sequence[Pod], hints: Sequence[str | None] = ()
) -> Search[GroupPlacement | GroupRefusal]:
    """The steps of `place_group`; between them the cluster has tentative pods, and may not change."""
    return GroupSearch(cluster, pods).run(hints)


class GroupSearch:
    """The attempts for one group, and the best failure among them; `placing_group` runs one."""

    def __init__(self, cluster: Cluster, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._pods = pods
        self._classes = [cluster.class_of(pod) for pod in pods]
        self._start = cluster.mark()
        self._steps = self._steps_max = cluster.config.group_search_steps
        self._failed = 0
        self._refusal: Refusal | None = None

    def run(self, hints: Sequence[str | None]) -> Search[GroupPlacement | GroupRefusal]:
        """All attempts, until one succeeds; the cluster is then as it was."""
        try:
            for attempt in self._attempts(hints):
                found = yield from attempt
                if found is not None:
                    return GroupPlacement(tuple(found))
                self._cluster.undo(self._start)
        finally:
            self._cluster.undo(self._start)
        assert self._refusal is not None
        return GroupRefusal(
            self._failed,
            self._refusal,
            exhausted=self._steps <= 0,
            steps=self._steps_max - max(self._steps, 0),
        )

    def _attempts(self, hints: Sequence[str | None]) -> "Iterator[_Attempt]":
        if hints and all(hints):
            yield self._kept([hint for hint in hints if hint is not None])
        if any(hints):
            yield self._mended(hints)
        yield self._one_by_one()
        for domain in self._domains():
            yield self._one_by_one_in(domain)
        yield self._searched()

    def _kept(self, hints: list[str]) -> "_Attempt":
        if any(hint not in self._cluster.nodes.slots for hint in hints):
            return None
        for pod, hint in zip(self._pods, hints, strict=True):
            self._bind(pod, hint)
        return (yield from self.checked(hints))

    def _mended(self, hints: Sequence[str | None]) -> "_Attempt":
        """Those that still pass where they were to go; then the others, seeing these."""
        names: dict[int, str] = {}
        for index, (pod, hint) in enumerate(zip(self._pods, hints, strict=True)):
            yield
            answer = place(self._cluster, pod, hint=hint)
            if isinstance(answer, Placement) and answer.node_name == hint:
                self._bind(pod, hint)
                names[index] = hint
        return (yield from self._one_by_one(names))

    def _one_by_one(self, bound: Mapping[int, str] = MappingProxyType({})) -> "_Attempt":
        """Each member with all rules, seeing those before it and those that are `bound`."""
        names = dict(bound)
        for index, pod in enumerate(self._pods):
            if index in bound:
                continue
            yield
            answer = place(self._cluster, pod)
            if isinstance(answer, Refusal):
                self._note(index, answer)
                return None
            self._bind(pod, answer.node_name)
            names[index] = answer.node_name
        return (yield from self.checked([names[index] for index in range(len(names))]))

    def _domains(self) -> Iterator[Vetoes]:
        """For each domain of each key that members require of each other: it excludes the rest."""
        keys = dict.fromkeys(
            term.counter.key
            for pod_class in self._classes
            for term in pod_class.template.affinity
            if self._awaited(term.matcher.classes)
        )
        for key in keys:
            for _, domain in sorted(key.values.items()):
                yield Vetoes(key, nodes=np.where(key.domain_of == domain, 0, VETO))

    def _one_by_one_in(self, domain: Vetoes) -> "_Attempt":
        names = []
        for index, pod in enumerate(self._pods):
            yield
            choice = self._choice(index, domain)
            if choice is None:
                self._note(index, self._reason(index))
                return None
            self._bind(pod, choice.node_name)
            names.append(choice.node_name)
        return (yield from self.checked(names))

    def _choice(self, index: int, domain: Vetoes) -> Placement | None:
        pod, pod_class = self._pods[index], self._classes[index]
        return best_placement(self._cluster, pod, pod_class, self._hopeful(index, domain))

    def _hopeful(self, index: int, *more: Vetoes) -> Candidates:
        """Candidates under the rules that later members can only make worse, never mend."""
        pod, pod_class = self._pods[index], self._classes[index]
        pipeline = pipeline_of(self._cluster, pod)
        nodes = self._cluster.nodes
        vetoes = relation_vetoes(nodes, pod_class, pipeline, expected=self._classes)
        return candidates_of(self._cluster, pod_class, pipeline, [*vetoes, *more])

    def _searched(self) -> "_Attempt":
        """Depth first over all nodes, like members in the order of their nodes."""
        return self._deeper(0, [])

    def _deeper(self, index: int, slots: list[int]) -> "_Attempt":
        if index == len(self._pods):
            return (yield from self.checked([self._node_name(slot) for slot in slots]))
        mark = self._cluster.mark()
        for slot in self._candidates(index, slots):
            self._steps -= 1
            if self._steps < 0:
                return None
            if self._steps % _STEPS_AT_ONCE == 0:
                yield
            self._bind(self._pods[index], self._node_name(slot))
            found = yield from self._deeper(index + 1, [*slots, slot])
            if found is not None:
                return found
            self._cluster.undo(mark)
        return None

    def _candidates(self, index: int, slots: list[int]) -> list[int]:
        """Feasible slots, best first; of like members the later takes no earlier slot."""
        ranks = self._hopeful(index).ranks
        feasible = np.flatnonzero(ranks >= 0)
        same = index > 0 and self._classes[index] is self._classes[index - 1]
        if same:
            return [int(slot) for slot in feasible if slot >= slots[index - 1]]
        return [int(slot) for slot in feasible[np.argsort(-ranks[feasible], kind="stable")]]

    def checked(self, names: Sequence[str]) -> "_Attempt":
        """The whole group once more, each member with itself taken out."""
        placements = []
        for index, (pod, name) in enumerate(zip(self._pods, names, strict=True)):
            if index % _STEPS_AT_ONCE == _STEPS_AT_ONCE - 1:
                yield
            mark = self._cluster.mark()
            self._cluster.delete_pod(pod.namespace, pod.name)
            answer = place(self._cluster, pod, hint=name)
            if isinstance(answer, Refusal) or answer.node_name != name:
                self._note(index, _broken_by_the_rest(name, check(self._cluster, pod, name)))
                return None
            self._cluster.undo(mark)
            placements.append(answer)
        return placements

    def _reason(self, index: int) -> Refusal:
        pod, pod_class = self._pods[index], self._classes[index]
        return refuse(self._cluster, pod_class, pipeline_of(self._cluster, pod))

    def _note(self, failed: int, refusal: Refusal) -> None:
        """Keep the failure of the attempt that came furthest."""
        if self._refusal is None or failed > self._failed:
            self._failed, self._refusal = failed, refusal

    def _awaited(self, matched: dict[PodClass, None]) -> bool:
        return any(pod_class in matched for pod_class in self._classes)

    def _bind(self, pod: Pod, node_name: str) -> None:
        self._cluster.put_pod(replace(pod, node_name=node_name))

    def _node_name(self, slot: int) -> str:
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        return node.name


_Attempt = Search[list[Placement] | None]


def _broken_by_the_rest(node_name: str, broken: dict[str, list[str]]) -> Refusal:
    reasons = [reason for each in broken.values() for reason in each]
    return Refusal(
        f"with the whole group placed, {node_name} fails: {', '.join(reasons)}.",
        {plugin: dict.fromkeys(each, 1) for plugin, each in broken.items()},
    )
