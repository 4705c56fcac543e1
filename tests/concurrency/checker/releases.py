"""Rolling releases as the log tells them, judged by the slow reference.

Of each eviction: a budget allows it, the pod was not leaving, and enough are available without it. Of
each new pod: its node is feasible, there are not too many with it, and the waves before are ready.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.state import State, unbound
from tests.reference.evictions import blocking_budget
from tests.reference.pipeline import evaluate_view
from tests.reference.view import Manifest, is_finished, is_terminating, name_of, spec_of

MARK = b"Replace: the plan "


class Bounds(NamedTuple):
    """What holds between two waves."""

    most: int
    least: int


def is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def wrongs(changes: Iterable[Change], old: str, new: str, bounds: Bounds) -> Iterator[str]:
    """What is wrong with the waves of a log; old and new pods are told by how their names begin."""
    state, fresh = State(), set[str]()
    for change in changes:
        before = state.pod(("Pod", change.namespace, change.name))
        if change.kind == "Plan":
            fresh.clear()
        elif change.kind == "Pod" and change.verb == "Put":
            release = _Release(state, old, new, fresh)
            if _evicts(before, change):
                yield from release.wrongs_of_eviction(before, change, bounds)
            elif change.name.startswith(new) and _comes(before, change):
                yield from release.wrongs_of_placement(change, bounds)
                fresh.add(change.name)
        state.apply(change)


class _Release:
    def __init__(self, state: State, old: str, new: str, fresh: set[str]) -> None:
        self._state = state
        pods = [each for each in state.cluster.pods.values() if not is_finished(each)]
        # Pods whose node is gone are missing, like those that have not come yet.
        nodes = (None, *state.cluster.nodes)
        there = [each for each in pods if spec_of(each).get("nodeName") in nodes]
        active = [each for each in there if not is_terminating(each)]
        self.old = [each for each in active if name_of(each).startswith(old)]
        self.new = [each for each in active if name_of(each).startswith(new)]
        self._fresh = fresh
        """The new pods that have come in the same wave."""

    def _begun_early(self) -> Iterator[str]:
        for each in self.new:
            if not is_ready(each) and name_of(each) not in self._fresh:
                yield f"begins a wave although {name_of(each)} is not ready"

    def wrongs_of_eviction(
        self, pod: Manifest | None, change: Change, bounds: Bounds
    ) -> Iterator[str]:
        told = f"{change.name} at {change.revision}"
        assert pod is not None
        if is_terminating(pod):
            yield f"{told} was leaving already"
        exceeded = blocking_budget(self._state.view, pod, self._state.budgets.values())
        if exceeded is not None:
            yield f"{told} exceeds the budget {exceeded}"
        available = sum(map(is_ready, (*self.old, *self.new)))
        if is_ready(pod) and available <= bounds.least:
            yield f"{told} leaves {available - 1} available"
        yield from (f"{told} {each}" for each in self._begun_early())

    def wrongs_of_placement(self, change: Change, bounds: Bounds) -> Iterator[str]:
        told = f"{change.name} at {change.revision}"
        made = msgspec.json.decode(change.body)
        feasible = evaluate_view(self._state.view, unbound(made))["feasible"]
        if spec_of(made)["nodeName"] not in feasible:
            yield f"{told} does not fit on {spec_of(made)['nodeName']}"
        there = len(self.old) + len(self.new) + 1
        if there > bounds.most:
            yield f"{told} is one of {there}"
        yield from (f"{told} {each}" for each in self._begun_early())


def _evicts(stored: Manifest | None, change: Change) -> bool:
    return stored is not None and MARK in change.body and MARK not in msgspec.json.encode(stored)


def _comes(stored: Manifest | None, change: Change) -> bool:
    return stored is None and change.node_name is not None


def counted(changes: Sequence[Change], new: str) -> tuple[int, int]:
    """How many pods were evicted and how many new ones placed, by the log."""
    state, evicted, placed = State(), 0, 0
    for change in changes:
        before = state.pod(("Pod", change.namespace, change.name))
        if change.kind == "Pod" and change.verb == "Put":
            evicted += _evicts(before, change)
            placed += change.name.startswith(new) and _comes(before, change)
        state.apply(change)
    return evicted, placed
