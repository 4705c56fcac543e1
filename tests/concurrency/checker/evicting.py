"""A14: nobody is evicted without a violated rule, twice, too soon, or beyond the minute's budget.

Or for a pod of higher priority that waits for the room: then the commit that evicts nominates the
node, and nobody else is leaving it for the same pod already.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.state import State
from tests.reference import ReferenceCluster
from tests.reference.evictions import MustGo, blocking_budget, broken_rules, grace_of, must_go
from tests.reference.preemption import is_under_way, rejection
from tests.reference.view import (
    Manifest,
    is_terminating,
    name_of,
    namespace_of,
    nomination_of,
    priority_of,
    spec_of,
)

PREEMPTION = "PreemptionByScheduler"
REASONS = (
    "NodeAffinityViolated",
    "PodAntiAffinityViolated",
    "PodAffinityViolated",
    PREEMPTION,
)
ASKED_FOR = "EvictionByEvictionAPI"
STATE_KIND = "Evictions"
"""What the service remembers of evictions is an object of this kind."""
MINUTE = timedelta(minutes=1)
_ROUNDING = timedelta(microseconds=10)
"""Of times that were added up."""
PATIENCE = timedelta(seconds=4)
"""How soon after a violation somebody has looked."""
_PATH = re.compile(r"\bspec\.[^\s>]+")
TimerKey = tuple[str, str, str, str]
"""Namespace, name and uid of a pod, and the rule."""


def eviction_of(change: Change) -> tuple[str, str] | None:
    """Reason and message of the service's own eviction that a change says it is."""
    if change.kind != "Pod" or b"DisruptionTarget" not in change.body:
        return None
    status = msgspec.json.decode(change.body).get("status") or {}
    for condition in status.get("conditions") or []:
        if condition["type"] == "DisruptionTarget" and condition.get("reason") in REASONS:
            return condition["reason"], condition["message"]
    return None


def _rule_in(message: str) -> str:
    """The path of the rule for which a message says that a pod was evicted, wherever in it."""
    found = _PATH.search(message)
    return found[0] if found else ""


def without_mark(body: bytes) -> Manifest:
    """A pod without what marks it as evicted."""
    manifest: Manifest = msgspec.json.decode(body)
    metadata = {k: v for k, v in manifest["metadata"].items() if k != "deletionTimestamp"}
    status = dict(manifest.get("status") or {})
    conditions = status.pop("conditions", None) or []
    status["conditions"] = [each for each in conditions if each["type"] != "DisruptionTarget"]
    return manifest | {"metadata": metadata, "status": status}


def concerns_evictions(change: Change) -> bool:
    """Whether a change evicts a pod, or is what is remembered of evictions to come."""
    return change.kind == STATE_KIND or eviction_of(change) is not None


class EvictionCheck:
    """Follows a replay: `see` each change before it is applied, `settle` after each commit."""

    def __init__(
        self,
        state: State,
        report: Callable[[str], None],
        *,
        unseen: timedelta,
        blur: timedelta,
        clocks_jump: bool = False,
        keeps_past: bool = True,
        by_domains: bool = False,
    ) -> None:
        """Where the database's clock jumps nothing is said of how long anything took.

        `keeps_past`: whether states of before are kept, which is dear, and of use only if the
        log has evictions or remembers broken rules. `by_domains`: whether pods may be evicted that
        keep another one from a node on which they are not. `unseen`, `blur`: see `History`.
        """
        self._clocks_jump = clocks_jump
        self._keeps_past = keeps_past
        self._by_domains = by_domains
        self._unseen = unseen
        self._blur = blur
        self._state = state
        self._report = report
        self._timers: dict[TimerKey, datetime] = {}
        self._evicted: list[datetime] = []
        self._past: list[tuple[datetime, ReferenceCluster]] = []
        """After each commit: when it was, and what it left."""
        self._sweep: tuple[int, list[MustGo]] = (0, [])
        """The first revision of the last commit that evicts, and whom it may have had to evict."""

    def see(self, change: Change, at: datetime, commit: Sequence[Change]) -> None:
        """`commit`: all changes of the commit that this one is part of."""
        if change.kind == STATE_KIND and change.verb == "Put":
            self._see_timers(msgspec.json.decode(change.body), at)
        elif change.verb == "Put" and is_new_eviction(self._stored(change), change):
            self._see_eviction(change, at, commit)
        elif change.verb == "Put" and is_asked_for(self._stored(change), change):
            self._see_asked(change)

    def settle(self, at: datetime) -> None:
        if self._keeps_past:
            self._past.append((at, self._state.cluster.copy()))

    def finish(self, ended: datetime) -> None:
        """After some quiet nobody stays who has to go."""
        if self._count(ended) >= self._limit() or (self._clocks_jump and self._evicted):
            return
        view, config, overdue = self._state.view, self._state.cluster.config, set()
        for pod, _ in list(view.placed()):
            if is_terminating(pod):
                continue
            for plugin, path in broken_rules(view, pod):
                if plugin != "InterPodAffinity":
                    continue
                since = self._timers.get(_timer_key(pod, path), ended)
                if since + PATIENCE + grace_of(config, pod, path) < ended or since == ended:
                    overdue.add(((namespace_of(pod), name_of(pod)), path))
        look = must_go(view, config, overdue)
        budgets = self._state.budgets.values()
        for key in sorted(look.lost | look.chosen | look.unsure):
            pod = self._state.cluster.pods[key]
            if blocking_budget(view, pod, budgets) is None:
                self._report(f"{_told(pod)} is still there, though a rule does not hold")

    def _stored(self, change: Change) -> bytes | None:
        stored = self._state.bodies.get(tuple(change.key))
        return None if stored is None else stored[1]

    # Evictions

    def _see_asked(self, change: Change) -> None:
        """An eviction that somebody asked for is within the budgets, too."""
        pod = self._state.pod(tuple(change.key))
        if pod is None or is_terminating(pod):
            return
        budget = blocking_budget(self._state.view, pod, self._state.budgets.values())
        if budget is not None:
            told = f"revision {change.revision} evicts {_told(pod)}, as was asked for"
            self._report(f"{told}, though the disruption budget {budget} does not allow it")

    def _see_eviction(self, change: Change, at: datetime, commit: Sequence[Change]) -> None:
        eviction, pod = eviction_of(change), self._state.pod(tuple(change.key))
        assert eviction is not None
        assert pod is not None
        told = f"revision {change.revision} evicts {_told(pod)}"
        if is_terminating(pod):
            self._report(f"{told} a second time")
        stored = self._stored(change)
        assert stored is not None
        if without_mark(stored) != without_mark(change.body):
            self._report(f"{told} and changes it otherwise")
        if eviction[0] == PREEMPTION:
            for problem in self._preemption_problems(pod, change, commit):
                self._report(f"{told} for a pod of higher priority, {problem}")
            return  # It was asked for, and does not count for the budget.
        for problem in self._problems(pod, *eviction, at, commit):
            self._report(f"{told} ({': '.join(eviction)}), {problem}")
        self._evicted.append(at)
        # The service counts from when it decided, which it may have done earlier than it committed.
        count = self._count(at, within=max(MINUTE - self._blur, MINUTE / 2))
        if count > self._limit() and not self._clocks_jump:
            self._report(f"{told}: {count} in a minute, {self._limit()} are allowed")

    def _preemption_problems(
        self, victim: Manifest, change: Change, commit: Sequence[Change]
    ) -> Iterator[str]:
        node_name = spec_of(victim)["nodeName"]
        nominated = [
            each
            for each in map(_pod_in, commit)
            if each is not None
            and nomination_of(each) is not None
            and priority_of(each) > priority_of(victim)
        ]
        waiting = [each for each in nominated if nomination_of(each) == node_name]
        if not waiting and self._by_domains:
            waiting = [each for each in nominated if self._keeps_away(victim, each, commit)]
        if not waiting:
            yield f"but its commit has none for which {node_name} is nominated"
        is_first = not any(
            is_preemption(each) for each in commit if each.revision < change.revision
        )
        for each in waiting if is_first else ():
            if len(waiting) == 1 and self._is_under_way(each):
                yield f"but others are leaving for {name_of(each)} already"

    def _keeps_away(self, victim: Manifest, pod: Manifest, commit: Sequence[Change]) -> bool:
        """Whether the node that is nominated for a pod does not take it as long as the victim stays."""
        view, node_name = self._state.view, nomination_of(pod)
        leaving = {tuple(each.key[1:]) for each in commit if is_preemption(each)}
        leaving.discard((namespace_of(victim), name_of(victim)))
        for name, pods in view.pods_on.items():
            staying = [p for p in pods if (namespace_of(p), name_of(p)) not in leaving]
            view = view.holding(name, staying)
        return node_name in view.nodes and rejection(view, pod, str(node_name)) is not None

    def _is_under_way(self, pod: Manifest) -> bool:
        before = self._state.pod(("Pod", namespace_of(pod), name_of(pod)))
        if before is None or nomination_of(before) is None:
            return False
        return is_under_way(self._state.view, before, self._state.evaluate(before))

    def _problems(
        self, pod: Manifest, reason: str, message: str, at: datetime, commit: Sequence[Change]
    ) -> Iterator[str]:
        path = _rule_in(message)
        looks = self._looks(at, commit)
        if reason == "PodAntiAffinityViolated":
            anybody = self._state.cluster.config.get("antiAffinityVictim") == "LowestPriority"
            if not any(_is_in_conflict(look, pod, path, anybody=anybody) for look in looks):
                yield "which is in no such conflict"
        else:
            plugin = "NodeAffinity" if reason == "NodeAffinityViolated" else "InterPodAffinity"
            if (plugin, path) not in broken_rules(self._state.view, pod):
                yield "whose rule holds"
            elif plugin == "InterPodAffinity" and not self._clocks_jump:
                yield from self._grace_problems(pod, path, at)
        key = (namespace_of(pod), name_of(pod))
        budget = blocking_budget(self._state.view, pod, self._state.budgets.values())
        if budget is not None:
            yield f"though the disruption budget {budget} does not allow it"
        if not any(key in look.lost | look.chosen | look.unsure for look in looks):
            yield f"though no more than these have to go: {[sorted(look.chosen) for look in looks]}"

    def _looks(self, at: datetime, commit: Sequence[Change]) -> list[MustGo]:
        """Whom the service may have found who has to go, when it decided what is committed.

        It did so a little before, when some grace periods may not have been over yet.
        """
        first = commit[0].revision
        if self._sweep[0] != first:
            view, config = self._state.view, self._state.cluster.config
            found = [must_go(view, config, each) for each in self._overdue(at)]
            self._sweep = (first, found)
        return self._sweep[1]

    def _overdue(self, at: datetime) -> Iterator[set[tuple[tuple[str, str], str]]]:
        """The rules whose grace period may have been over, for each time up to now."""
        ends = {
            ((namespace_of(pod), name_of(pod)), path): self._timers.get(_timer_key(pod, path), at)
            + grace_of(self._state.cluster.config, pod, path)
            for pod, _ in self._state.view.placed()
            if not is_terminating(pod)
            for plugin, path in broken_rules(self._state.view, pod)
            if plugin == "InterPodAffinity"
        }
        times = sorted({end for end in ends.values() if self._clocks_jump or end <= at})
        for time in times or [at]:
            yield {rule for rule, end in ends.items() if end <= time}
        if times:
            yield set()

    def _grace_problems(self, pod: Manifest, path: str, at: datetime) -> Iterator[str]:
        grace = grace_of(self._state.cluster.config, pod, path)
        since = self._timers.get(_timer_key(pod, path), at)
        if since + grace > at:
            yield f"at {at}, but has until {since + grace}"
        broken = self._broken_since(pod, path)
        if broken is not None and broken + grace > at + self._blur:
            yield f"at {at}, but its rule held until {broken}"

    def _broken_since(self, pod: Manifest, path: str) -> datetime | None:
        """When the commit was made that broke the rule, and nobody can have seen it hold since."""
        broken_at = held_until = None
        for at, cluster in reversed(self._past):
            then = cluster.pods.get((namespace_of(pod), name_of(pod)))
            if then is None or _uid(then) != _uid(pod) or "nodeName" not in spec_of(then):
                break
            if ("InterPodAffinity", path) in broken_rules(cluster.view(), then):
                broken_at, held_until = at, None
            else:
                held_until = held_until or broken_at or at
                if held_until - at >= self._unseen:
                    break
        return broken_at

    def _count(self, at: datetime, within: timedelta = MINUTE) -> int:
        return sum(at - within < each <= at for each in self._evicted)

    def _limit(self) -> int:
        return int(self._state.cluster.config.get("evictionsPerMinute", 60))

    # Timers

    def _see_timers(self, remembered: dict[str, Any], at: datetime) -> None:
        """What is remembered is what does not hold, each since a time at which it did not."""
        timers = {
            (each["namespace"], each["name"], each["uid"], each["rule"]): datetime.fromisoformat(
                each["since"]
            )
            for each in remembered["timers"]
        }
        broken = {
            _timer_key(pod, path): pod
            for pod, _ in self._state.view.placed()
            if not is_terminating(pod)
            for plugin, path in broken_rules(self._state.view, pod)
            if plugin == "InterPodAffinity"
        }
        if timers.keys() != broken.keys():
            self._report(f"at {self._state.revision} timers run for {timers}, not for {broken}")
        for key in timers.keys() & broken.keys():
            since = self._timers.get(key)
            if since not in (None, timers[key]):
                self._report(f"at {self._state.revision} the timer {key} is not that of {since}")
            if self._clocks_jump:
                continue
            broke = self._broken_since(broken[key], key[3])
            if timers[key] > at + _ROUNDING or (
                broke is not None and timers[key] + self._blur < broke
            ):
                self._report(f"the timer {key} runs since {timers[key]}, but it broke at {broke}")
        self._timers = timers


def _is_in_conflict(look: MustGo, pod: Manifest, path: str, *, anybody: bool) -> bool:
    key = (namespace_of(pod), name_of(pod))
    return any(
        each.rule == path
        and not each.attracts
        and (each.owner == key or (anybody and key in each.others))
        for each in look.constraints
    )


def _pod_in(change: Change) -> Manifest | None:
    if change.kind != "Pod" or change.verb != "Put":
        return None
    return dict(msgspec.json.decode(change.body))


def is_preemption(change: Change) -> bool:
    """Whether a change marks a pod as to be stopped so that another one has its room."""
    eviction = eviction_of(change) if change.verb == "Put" else None
    return eviction is not None and eviction[0] == PREEMPTION


def is_new_eviction(before: bytes | None, change: Change) -> bool:
    """Whether a change marks a pod as evicted by the service, in other words than before."""
    eviction = eviction_of(change)
    if eviction is None or before is None:
        return False
    marks = [_mark(before), _mark(change.body)]
    return marks[0] != marks[1]


def is_asked_for(before: bytes | None, change: Change) -> bool:
    """Whether a change marks a pod as evicted because a client or a plan asked for it."""
    return (
        change.kind == "Pod"
        and before is not None
        and ASKED_FOR.encode() in change.body
        and ASKED_FOR.encode() not in before
    )


def _mark(body: bytes) -> tuple[Any, Any]:
    manifest = msgspec.json.decode(body)
    conditions = (manifest.get("status") or {}).get("conditions") or []
    return (
        manifest["metadata"].get("deletionTimestamp"),
        [each for each in conditions if each["type"] == "DisruptionTarget"],
    )


def _timer_key(pod: Manifest, path: str) -> TimerKey:
    return namespace_of(pod), name_of(pod), _uid(pod), path


def _uid(pod: Manifest) -> str:
    return str(pod["metadata"]["uid"])


def _told(pod: Manifest) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)} on {spec_of(pod).get('nodeName')}"
