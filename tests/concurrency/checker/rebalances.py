"""Moves of plans that rebalance, as the log tells them, judged by the slow reference.

Of each eviction: a budget allows it, the pod was not leaving, its new node is feasible, and has room
for it beside all that is kept there already. Of each placement: nobody else gets the room that is
kept for what comes in place of pods that move.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.state import State, unbound
from tests.reference.evictions import blocking_budget
from tests.reference.fit import allocatable_of
from tests.reference.pipeline import evaluate_view
from tests.reference.resources import requests
from tests.reference.view import Manifest, is_terminating, labels_of, name_of, spec_of

MARK = b"Rebalance: the plan "
RESERVATION = "MoveReservation"


class Rebalances:
    """Follows a log, and counts what plans that rebalance have done."""

    def __init__(self, never: Iterable[str] = ()) -> None:
        """`never`: the names of pods that have to stay where they are, unless others like them are there."""
        self._never = frozenset(never)
        self._state = State()
        self._kept: dict[str, Manifest] = {}
        """The reservations for whom nobody has come yet, by the names of the pods that move."""
        self.evicted = 0
        self.moved = 0

    def wrongs(self, changes: Iterable[Change]) -> Iterator[str]:
        """What is wrong with the moves of a log."""
        for change in changes:
            stored = self._state.pod(("Pod", change.namespace, change.name))
            if change.kind == RESERVATION:
                yield from self._reserved(change)
            elif change.kind == "Pod" and change.verb == "Put":
                if stored is not None and MARK in change.body and not _is_marked(stored):
                    self.evicted += 1
                    yield from self._wrongs_of_eviction(change, stored)
                elif change.node_name is not None and (stored is None or not _node(stored)):
                    yield from self._wrongs_of_placement(change)
            self._state.apply(change)

    def _reserved(self, change: Change) -> Iterator[str]:
        body = msgspec.json.decode(change.body)
        if change.verb == "Delete" or body.get("came_to"):
            before = self._kept.pop(change.name, None)
            self.moved += before is not None and body.get("came_to") == body["node_name"]
            return
        if change.name in self._kept:
            yield f"{change.name} at {change.revision} is moved twice"
        self._kept[change.name] = body
        there = self._state.cluster.copy()
        there.delete_pod(change.namespace, change.name)
        if body["node_name"] not in evaluate_view(there.view(), unbound(body["pod"]))["feasible"]:
            yield f"{change.name} at {change.revision} does not fit on {body['node_name']}"
        if not self._has_room(body["node_name"]):
            yield f"{change.name} at {change.revision} has no room on {body['node_name']}"

    def _wrongs_of_eviction(self, change: Change, stored: Manifest) -> Iterator[str]:
        told = f"{change.name} at {change.revision}"
        if is_terminating(stored):
            yield f"{told} was leaving already"
        if change.name in self._never and not self._has_another(stored):
            yield f"{told} has to stay"
        exceeded = blocking_budget(self._state.view, stored, self._state.budgets.values())
        if exceeded is not None:
            yield f"{told} exceeds the budget {exceeded}"

    def _has_another(self, pod: Manifest) -> bool:
        """Whether a pod with the same labels is on the same node, and stays there."""
        beside = self._state.view.pods_on[spec_of(pod)["nodeName"]]
        return any(
            labels_of(each) == labels_of(pod) and not is_terminating(each)
            for each in beside
            if name_of(each) != name_of(pod)
        )

    def _wrongs_of_placement(self, change: Change) -> Iterator[str]:
        pod: Manifest = msgspec.json.decode(change.body)
        node_name = spec_of(pod)["nodeName"]
        others = [each for each in self._kept.values() if not _replaces(pod, each["pod"])]
        if not self._has_room(node_name, [pod], others):
            yield f"{change.name} at {change.revision} takes room that is kept on {node_name}"

    def _has_room(
        self,
        node_name: str,
        coming: Iterable[Manifest] = (),
        kept: Iterable[dict[str, Any]] | None = None,
    ) -> bool:
        """Whether a node has room for its pods, for those that come, and for all for whom it is kept."""
        node = self._state.view.nodes.get(node_name)
        if node is None:
            return False
        reserved = self._kept.values() if kept is None else kept
        asked = [each["pod"] for each in reserved if each["node_name"] == node_name]
        pods = [*self._state.view.pods_on[node_name], *coming, *asked]
        used = sum((requests(each).get("cpu", Fraction(0)) for each in pods), start=Fraction(0))
        return used <= allocatable_of(node)["cpu"]


def _is_marked(pod: Manifest) -> bool:
    return MARK in msgspec.json.encode(pod)


def _node(pod: Manifest) -> str | None:
    return spec_of(pod).get("nodeName")


def _replaces(pod: Manifest, moved: Manifest) -> bool:
    if name_of(pod) == name_of(moved):
        return True
    owners = [_owner(each) for each in (pod, moved)]
    if any(owners):
        return owners[0] == owners[1]
    return labels_of(pod) == labels_of(moved)


def _owner(pod: Manifest) -> object:
    return [each["uid"] for each in pod["metadata"].get("ownerReferences") or ()]
