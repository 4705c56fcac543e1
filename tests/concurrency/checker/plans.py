"""Plans as the log tells them, judged by the slow reference.

- Budgets: no pod that a plan marks as to be stopped is one too many for its disruption budget.
- Rules: whoever is evicted from a drained node has another one to go to; a plan that is committed at
  once breaks no required rule of a pod that stays; and every placement is feasible where it is made.
- Whole or absent: what one request or one step of a kept plan does is in one commit, with the status
  that counts it; of a request that was refused nothing is there.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.history import History
from tests.concurrency.checker.log import check_log
from tests.concurrency.checker.state import State, objections, overcommitted, unbound
from tests.reference.evictions import blocking_budget
from tests.reference.pipeline import evaluate_view
from tests.reference.selectors import selector_matches
from tests.reference.view import (
    REQUIRED,
    Manifest,
    View,
    affinity_of,
    is_terminating,
    labels_of,
    name_of,
    nomination_of,
    spec_of,
)
from tests.reference.violations import violations

Broken = frozenset[tuple[str, str]]
"""Pods with the rules of theirs that do not hold."""
Kind = Literal["Drain", "Replace", "Preemption", "Remove"]
_MARKS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("Drain", re.compile(r"^Drain: node (\S+) is drained$")),
    ("Replace", re.compile(r"^Replace: the plan (\S+) replaces it$")),
)
_PREEMPTION = "PreemptionByScheduler"
COUNTED = ("evicted", "placed")
"""What the status of a kept plan counts."""


class PlanCall(msgspec.Struct, kw_only=True):
    """One request to plan and commit at once, and what came of it."""

    number: int
    removed: tuple[str, ...] = ()
    """Pods that it says are gone."""
    placed: tuple[str, ...] = ()
    """New pods, of names that nobody else uses."""
    expected: tuple[str, ...] | None = None
    """The pods of the steps that were looked at before; None: any would do."""
    count: int = 0
    """How many pods are to be marked as to be stopped; 0: those that are placed are all it is about."""
    outcome: str = "unknown"
    """Committed, Planned, the code of an error, or unknown."""
    revision: int = 0
    steps: tuple[str, ...] = ()
    """The pods of its steps, as it was told."""

    def __str__(self) -> str:
        return f"plan {self.number} ({self.outcome}@{self.revision})"


@dataclass
class PlanTally:
    """What the plans of a log did, and what was wrong with that."""

    steps: Counter[str] = field(default_factory=Counter)
    """Committed steps: pods that were marked, deleted or placed, by the kind of the plan."""
    placements: int = 0
    """Of callers and the queue, beside plans."""
    budgets: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    half_done: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """The log itself is not as it has to be."""

    @property
    def violations(self) -> list[str]:
        return [
            *(f"budget: {each}" for each in self.budgets),
            *(f"rule: {each}" for each in self.rules),
            *(f"half done: {each}" for each in self.half_done),
            *(f"log: {each}" for each in self.others),
        ]


@dataclass
class _Marks:
    """The pods that one commit marks as to be stopped."""

    by_plan: defaultdict[tuple[Kind, str], set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )
    removed: dict[int, str] = field(default_factory=dict)
    """By revision, those whose mark says nothing: a plan that was committed at once."""
    preempted: dict[str, str] = field(default_factory=dict)
    """Pods and their nodes."""


def check_plans(
    history: History, calls: Sequence[PlanCall], *, staying: Iterable[str] = ()
) -> PlanTally:
    """Judge all plans of a history; pods that are `staying` must never leave."""
    tally = PlanTally(others=[str(each) for each in check_log(history)])
    if not tally.others:
        _Judge(history, calls, frozenset(staying), tally).run()
    return tally


class _Judge:
    def __init__(
        self,
        history: History,
        calls: Sequence[PlanCall],
        staying: frozenset[str],
        tally: PlanTally,
    ) -> None:
        self._history = history
        self._calls = calls
        self._staying = staying
        self._tally = tally
        self._state = State()
        self._placing = {name: call for call in calls for name in call.placed}
        removals = [each for each in calls if each.count and each.outcome == "Committed"]
        self._removals = {each.revision: each for each in removals}
        self._begun = {each.revision - len(each.steps) + 1: each for each in removals}
        self._unknown = [each for each in calls if each.count and each.outcome == "unknown"]
        self._nodes = 0
        """How often nodes have changed."""
        self._broken_at: tuple[Hashable, Broken] = (None, frozenset())
        self._before: dict[int, Broken] = {}
        """By plan, what was broken before it."""
        self._told: dict[str, tuple[str, Counter[str]]] = {}
        """Of each kept plan its uid and how many pods it says it has evicted and placed."""
        self._done: set[int] = set()

    def run(self) -> None:
        changes = self._history.changes
        for commit in self._history.commits:
            self._commit(changes[commit.first - 1 : commit.last])
        for call in self._calls:
            if call.outcome == "Committed" and call.number not in self._done:
                self._half_done(f"{call} is not in the log")

    # One commit

    def _commit(self, changes: Sequence[Change]) -> None:
        marks, placed = _Marks(), defaultdict[int, set[str]](set)
        by_release: Counter[str] = Counter()
        for change in changes:
            self._see_begin(change)
            if change.kind == "Pod" and change.revision > self._history.granted:
                self._pod(change, marks, placed, by_release)
            self._state.apply(change)
            self._nodes += change.kind == "Node"
            if change.kind == "Pod" and change.node_name in self._state.view.nodes:
                self._check_room(change)
            self._see_end(change, placed)
        self._check_placing(changes, placed)
        self._check_kept(changes, marks, by_release)
        self._check_removed(changes, marks)
        self._check_preempted(changes, marks)

    def _pod(
        self,
        change: Change,
        marks: _Marks,
        placed: defaultdict[int, set[str]],
        by_release: Counter[str],
    ) -> None:
        before = self._state.pod(("Pod", change.namespace, change.name))
        if change.verb == "Delete":
            return
        after = msgspec.json.decode(change.body)
        if before is not None and not is_terminating(before) and is_terminating(after):
            self._mark(change, before, after, marks)
        elif before is not None and is_terminating(before) and self._is_marked_anew(before, after):
            self._rule(change, "was leaving already")
        if change.node_name is not None and (before is None or "nodeName" not in spec_of(before)):
            self._place(change, after, placed, by_release)

    def _is_marked_anew(self, before: Manifest, after: Manifest) -> bool:
        return _disruption(before) != _disruption(after)

    def _mark(self, change: Change, before: Manifest, after: Manifest, marks: _Marks) -> None:
        told = _disruption(after)
        kind, plan = _plan_of(told)
        if change.name in self._staying:
            self._rule(change, "has to stay")
        exceeded = blocking_budget(self._state.view, before, self._state.budgets.values())
        if exceeded is not None:
            self._tally.budgets.append(f"{_told(change)} exceeds the budget {exceeded}")
        self._tally.steps[kind] += 1
        if kind == "Drain" and not self._has_elsewhere(change, before):
            self._rule(change, "has no other node")
        if kind == "Remove":
            marks.removed[change.revision] = change.name
        elif kind == "Preemption":
            marks.preempted[change.name] = spec_of(before)["nodeName"]
        else:
            marks.by_plan[kind, plan].add(change.name)

    def _has_elsewhere(self, change: Change, pod: Manifest) -> bool:
        there = self._state.cluster.copy()
        there.delete_pod(change.namespace, change.name)
        feasible = evaluate_view(there.view(), unbound(pod))["feasible"]
        return bool(set(feasible) - {spec_of(pod)["nodeName"]})

    def _place(
        self,
        change: Change,
        pod: Manifest,
        placed: defaultdict[int, set[str]],
        by_release: Counter[str],
    ) -> None:
        assert change.node_name is not None
        if change.name in self._placing:
            call = self._placing[change.name]
            placed[call.number].add(change.name)
            self._tally.steps["Place"] += 1
        elif (release := _release_of(change.name)) is not None:
            by_release[release] += 1
            self._tally.steps["Replace"] += 1
        else:
            self._tally.placements += 1
        refused = objections(self._state.view, pod, change.node_name)
        if refused:
            self._rule(change, f"may not go to {change.node_name}: {refused}")

    def _check_room(self, change: Change) -> None:
        assert change.node_name is not None
        excess = overcommitted(self._state.view, change.node_name)
        if excess:
            self._rule(change, f"{change.node_name} has {excess}")

    # Plans that are committed at once

    def _see_begin(self, change: Change) -> None:
        call = self._begun.get(change.revision)
        if call is None and change.kind == "Pod" and change.created:
            call = self._placing.get(change.name)
        if call is not None and call.number not in self._before:
            self._before[call.number] = self._broken()

    def _see_end(self, change: Change, placed: Mapping[int, set[str]]) -> None:
        """Ask what is broken as soon as all is done that one request was to do."""
        call = self._removals.get(change.revision)
        if call is not None:
            self._done.add(call.number)
            self._check_new(call, self._broken(without=call.steps))
        call = self._placing.get(change.name)
        if call is not None and change.created and placed.get(call.number) == set(call.placed):
            self._check_new(call, self._broken())

    def _check_new(self, call: PlanCall, after: Broken) -> None:
        if new := after - self._before.pop(call.number, after):
            self._tally.rules.append(f"{call} breaks {sorted(new)}")

    def _broken(self, without: Iterable[str] = ()) -> Broken:
        """What is broken now, or would be without some pods; asked anew if it can be anything else."""
        concerned = _concerned(self._state.view, frozenset(without))
        key = (self._nodes, _places(concerned))
        if self._broken_at[0] != key:
            self._broken_at = (key, _broken(concerned))
        return self._broken_at[1]

    def _check_placing(self, changes: Sequence[Change], placed: defaultdict[int, set[str]]) -> None:
        """All pods of a plan come in one commit, and those that go are gone with it."""
        deleted = {each.name for each in changes if (each.kind, each.verb) == ("Pod", "Delete")}
        for name in (each.name for each in changes if each.kind == "Pod" and each.verb == "Put"):
            call = self._placing.get(name)
            if call is None or call.number not in placed or call.number in self._done:
                continue
            self._done.add(call.number)
            missing = set(call.placed) - placed[call.number]
            left = set(call.removed) - deleted
            if missing or left:
                told = f"{call} did not place {sorted(missing)} and did not delete {sorted(left)}"
                self._half_done(told)
            if call.outcome not in ("Committed", "unknown"):
                self._half_done(f"{call} was refused, and {name} is there")
            self._tally.steps["Place"] += len(deleted & set(call.removed))

    def _check_removed(self, changes: Sequence[Change], marks: _Marks) -> None:
        """Each mark that names no plan is the doing of a request, and all that it was told to do is."""
        for change in changes:
            call = self._removals.get(change.revision)
            if call is None:
                continue
            span = range(change.revision - len(call.steps) + 1, change.revision + 1)
            own = {marks.removed.pop(each, "") for each in span}
            if own != set(call.steps):
                self._half_done(f"{call} was told {call.steps}, and {sorted(own)} are marked")
        left = set(marks.removed.values())
        for call in list(self._unknown):
            if left and call.expected and set(call.expected) <= left:
                left -= set(call.expected)
                self._unknown.remove(call)
        if left:
            self._half_done(f"nobody was told at {changes[-1].revision} that {sorted(left)} go")

    # Plans that are kept

    def _check_kept(
        self, changes: Sequence[Change], marks: _Marks, by_release: Counter[str]
    ) -> None:
        """The status that comes with a step counts what the step does."""
        due = {(kind, plan): len(names) for (kind, plan), names in marks.by_plan.items()}
        told: defaultdict[str, Counter[str]] = defaultdict(Counter)
        wanted: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for change in changes:
            if (change.kind, change.verb) == ("Plan", "Put"):
                plan = msgspec.json.decode(change.body)
                told[change.name].update(self._progress(change, plan))
                evicted = sum(due.pop(each, 0) for each in _own_marks(change.name, plan))
                wanted[change.name]["evicted"] += evicted
            elif change.kind == "Plan":
                self._told.pop(change.name, None)
        for (kind, plan_name), number in due.items():
            wanted[f"{kind} {plan_name}"]["evicted"] += number
        for release, number in by_release.items():
            wanted[release]["placed"] += number
        for name in told.keys() | wanted.keys():
            if any(told[name][what] != wanted[name][what] for what in COUNTED):
                self._half_done(
                    f"{name} counts {dict(told[name])} at {changes[-1].revision}, "
                    f"where {dict(wanted[name])} is done"
                )

    def _progress(self, change: Change, plan: Manifest) -> Counter[str]:
        """How much more a plan says it has done than it has said before."""
        uid, status = plan["metadata"]["uid"], plan.get("status") or {}
        now = Counter({name: status.get(name, 0) for name in COUNTED})
        known = self._told.get(change.name, ("", Counter()))
        self._told[change.name] = (uid, now)
        more = Counter(now)
        more.subtract(known[1] if known[0] == uid else Counter())
        return more

    # Preemption

    def _check_preempted(self, changes: Sequence[Change], marks: _Marks) -> None:
        nominated = {
            nomination_of(msgspec.json.decode(each.body))
            for each in changes
            if each.kind == "Pod" and each.verb == "Put"
        }
        for name, node_name in marks.preempted.items():
            if node_name not in nominated:
                self._half_done(f"{name} leaves {node_name} for nobody at {changes[-1].revision}")

    def _rule(self, change: Change, told: str) -> None:
        self._tally.rules.append(f"{_told(change)} {told}")

    def _half_done(self, told: str) -> None:
        self._tally.half_done.append(told)


def _told(change: Change) -> str:
    return f"{change.name} at {change.revision}"


def _disruption(pod: Manifest) -> Any:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "DisruptionTarget"), None)


def _plan_of(condition: Any) -> tuple[Kind, str]:
    """Which kind of plan marks a pod, and the node or the plan that the mark names."""
    if condition is None:
        return "Remove", ""
    if condition.get("reason") == _PREEMPTION:
        return "Preemption", ""
    for kind, pattern in _MARKS:
        if found := pattern.match(condition.get("message") or ""):
            return kind, found[1]
    raise NotImplementedError(f"{condition}")


def _own_marks(name: str, plan: Manifest) -> Iterator[tuple[Kind, str]]:
    goal = plan["spec"]["goal"]
    if goal["type"] == "Replace":
        yield "Replace", name
    for each in (goal.get("nodes") or {}).get("names") or ():
        yield "Drain", each


def _release_of(name: str) -> str | None:
    """The plan that a pod comes by, as its name tells: `svc-v7-3` by `release-7`."""
    found = re.match(r"^svc-v(\d+)-\d+$", name)
    return f"release-{found[1]}" if found else None


def _concerned(view: View, gone: frozenset[str]) -> View:
    """The cluster without some pods, and without all that neither have a rule nor are in one's selector."""
    ruled = {id(pod): list(_selectors(pod)) for pod, _ in view.placed()}
    selectors = [each for found in ruled.values() for each in found]
    distinct = {msgspec.json.encode(each): each for each in selectors}.values()

    def is_concerned(pod: Manifest) -> bool:
        if name_of(pod) in gone:
            return False
        labels = labels_of(pod)
        return bool(ruled[id(pod)]) or any(selector_matches(each, labels) for each in distinct)

    twin = copy(view)
    twin.pods_on = {
        node_name: [each for each in pods if is_concerned(each)]
        for node_name, pods in view.pods_on.items()
    }
    return twin


def _selectors(pod: Manifest) -> Iterator[Manifest]:
    spec = spec_of(pod)
    for constraint in spec.get("topologySpreadConstraints") or ():
        yield constraint.get("labelSelector") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for required in REQUIRED:
            for term in affinity_of(pod, kind).get(required) or ():
                yield term.get("labelSelector") or {}


def _places(view: View) -> frozenset[tuple[str, str, bool]]:
    return frozenset(
        (name_of(pod), spec_of(pod)["nodeName"], is_terminating(pod)) for pod, _ in view.placed()
    )


def _broken(view: View) -> Broken:
    """The required rules that do not hold of pods that are not about to leave."""
    leaving = {name_of(pod) for pod, _ in view.placed() if is_terminating(pod)}
    return frozenset(
        (each.name, each.rule) for each in violations(view) if each.name not in leaving
    )
