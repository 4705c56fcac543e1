"""A14: nobody is evicted without a violated rule, twice, too soon, or beyond the minute's budget."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from service.model.log import Change
from tests.concurrency.checker.state import State
from tests.reference import ReferenceCluster
from tests.reference.evictions import broken_rules, comes_first, conflicts
from tests.reference.view import Manifest, is_terminating, name_of, namespace_of, spec_of

REASONS = ("NodeAffinityViolated", "PodAntiAffinityViolated", "PodAffinityViolated")
STATE_KIND = "Evictions"
"""What the service remembers of evictions is an object of this kind."""
MINUTE = timedelta(minutes=1)
_ROUNDING = timedelta(microseconds=10)
"""Of times that were added up."""
PATIENCE = timedelta(seconds=4)
"""How soon after a violation somebody has looked."""
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
    ) -> None:
        """Where the database's clock jumps nothing is said of how long anything took.

        `keeps_past`: whether states of before are kept, which is dear, and of use only if the
        log has evictions or remembers broken rules. `unseen`, `blur`: see `History`.
        """
        self._clocks_jump = clocks_jump
        self._keeps_past = keeps_past
        self._unseen = unseen
        self._blur = blur
        self._state = state
        self._report = report
        self._timers: dict[TimerKey, datetime] = {}
        self._evicted: list[datetime] = []
        self._past: list[tuple[datetime, ReferenceCluster]] = []
        """After each commit: when it was, and what it left."""

    def see(self, change: Change, at: datetime) -> None:
        if change.kind == STATE_KIND and change.verb == "Put":
            self._see_timers(msgspec.json.decode(change.body), at)
        elif change.verb == "Put" and is_new_eviction(self._stored(change), change):
            self._see_eviction(change, at)

    def settle(self, at: datetime) -> None:
        if self._keeps_past:
            self._past.append((at, self._state.cluster.copy()))

    def finish(self, ended: datetime) -> None:
        """After some quiet nobody stays who has to go."""
        if self._count(ended) >= self._limit() or (self._clocks_jump and self._evicted):
            return
        view, config = self._state.view, self._state.cluster.config
        for pod, _ in list(view.placed()):
            if is_terminating(pod):
                continue
            for plugin, path in broken_rules(view, pod):
                since = self._timers.get(_timer_key(pod, path), ended)
                patience = PATIENCE + _grace(config) * (plugin == "InterPodAffinity")
                if plugin == "NodeAffinity" or since + patience < ended or since == ended:
                    self._report(f"{_told(pod)} is still there, though {path} does not hold")
            for path, owner, _ in conflicts(view, pod):
                if owner is pod:
                    self._report(f"{_told(pod)} is still there, though {path} does not hold")

    def _stored(self, change: Change) -> bytes | None:
        stored = self._state.bodies.get(tuple(change.key))
        return None if stored is None else stored[1]

    # Evictions

    def _see_eviction(self, change: Change, at: datetime) -> None:
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
        for problem in self._problems(pod, *eviction, at):
            self._report(f"{told} ({': '.join(eviction)}), {problem}")
        self._evicted.append(at)
        if self._count(at) > self._limit() and not self._clocks_jump:
            self._report(f"{told}: {self._count(at)} in a minute, {self._limit()} are allowed")

    def _problems(self, pod: Manifest, reason: str, message: str, at: datetime) -> Iterator[str]:
        path = message.partition(" ")[0]
        if reason == "PodAntiAffinityViolated":
            yield from self._conflict_problems(pod, path)
            return
        plugin = "NodeAffinity" if reason == "NodeAffinityViolated" else "InterPodAffinity"
        if (plugin, path) not in broken_rules(self._state.view, pod):
            yield "whose rule holds"
        elif plugin == "InterPodAffinity" and not self._clocks_jump:
            yield from self._grace_problems(pod, path, at)

    def _conflict_problems(self, pod: Manifest, path: str) -> Iterator[str]:
        config = self._state.cluster.config
        quarrels = conflicts(self._state.view, pod)
        anybody = config.get("antiAffinityVictim") == "LowestPriority"
        if not any(rule == path and (owner is pod or anybody) for rule, owner, _ in quarrels):
            yield "which is in no such conflict"
        for _, owner, other in quarrels:
            rival = other if owner is pod else owner
            if (anybody or owner is not pod) and not comes_first(config, pod, rival):
                yield f"though {_told(rival)} should go rather"

    def _grace_problems(self, pod: Manifest, path: str, at: datetime) -> Iterator[str]:
        grace = _grace(self._state.cluster.config)
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

    def _count(self, at: datetime) -> int:
        return sum(at - MINUTE < each <= at for each in self._evicted)

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


def is_new_eviction(before: bytes | None, change: Change) -> bool:
    """Whether a change marks a pod as evicted by the service, in other words than before."""
    eviction = eviction_of(change)
    if eviction is None or before is None:
        return False
    marks = [_mark(before), _mark(change.body)]
    return marks[0] != marks[1]


def _mark(body: bytes) -> tuple[Any, Any]:
    manifest = msgspec.json.decode(body)
    conditions = (manifest.get("status") or {}).get("conditions") or []
    return (
        manifest["metadata"].get("deletionTimestamp"),
        [each for each in conditions if each["type"] == "DisruptionTarget"],
    )


def _grace(config: Manifest) -> timedelta:
    return timedelta(seconds=config.get("affinityViolationGraceSeconds", 30))


def _timer_key(pod: Manifest, path: str) -> TimerKey:
    return namespace_of(pod), name_of(pod), _uid(pod), path


def _uid(pod: Manifest) -> str:
    return str(pod["metadata"]["uid"])


def _told(pod: Manifest) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)} on {spec_of(pod).get('nodeName')}"
