"""A20: pods of a node end only because it was deleted, after their grace period, and then all of them.

They stay ended.

The service remembers a deleted node in the commit that deletes it. Whoever has no node that is there
is never said to be placed.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.history import Key
from tests.concurrency.checker.state import State
from tests.reference.view import Manifest, is_finished, name_of, spec_of

STATE_KIND = "NodeState"
"""What the service remembers of a node is an object of this kind."""
REASON = "DeletionByPodGC"
PATIENCE = timedelta(seconds=4)
"""How soon after something is due somebody has looked."""


def ends_pod(before: bytes | None, change: Change) -> bool:
    """Whether a change only ends a pod as Failed because its node is gone."""
    if before is None or change.kind != "Pod" or change.verb != "Put":
        return False
    if REASON.encode() not in change.body or REASON.encode() in before:
        return False
    return _without_end(before) == _without_end(change.body)


def has_ended_with_its_node(body: bytes) -> bool:
    """Whether a stored pod has been ended because its node was gone."""
    return REASON.encode() in body and is_finished(msgspec.json.decode(body))


def _without_end(body: bytes) -> Manifest:
    manifest: Manifest = msgspec.json.decode(body)
    status = {k: v for k, v in (manifest.get("status") or {}).items() if k != "phase"}
    conditions = status.pop("conditions", None) or []
    status["conditions"] = [each for each in conditions if each["type"] != "DisruptionTarget"]
    return manifest | {"status": status}


class DeletedNodesCheck:
    """Follows a replay: `see` each change before it is applied."""

    def __init__(self, state: State, report: Callable[[str], None], *, clocks_jump: bool) -> None:
        """Where the database's clock jumps nothing is said of how long anything took."""
        self._state = state
        self._report = report
        self._clocks_jump = clocks_jump

    def see(self, change: Change, at: datetime, commit: Sequence[Change]) -> None:
        """`commit`: all changes of the commit that this one is part of."""
        if (change.kind, change.verb) == ("Node", "Delete"):
            self._see_deletion(change)
        elif change.kind == STATE_KIND and change.verb == "Delete":
            self._see_forgotten(change, commit)
        elif change.verb == "Put" and ends_pod(self._stored(tuple(change.key)), change):
            self._see_end(change, at)
        elif (change.kind, change.verb) == ("Pod", "Put"):
            self._see_write(change)

    def finish(self, ended: datetime) -> None:
        """After some quiet no pod waits for a node whose time is over."""
        for key in self._state.of_kind(STATE_KIND):
            since = self._since(key[2])
            if since is None and not self._clocks_jump:
                self._report(f"the time of pods of {key[2]} never began")
            elif (
                since is not None
                and since + self._grace + PATIENCE < ended
                and not self._clocks_jump
            ):
                self._report(f"pods of {key[2]} are still there, though it is gone since {since}")

    @property
    def _grace(self) -> timedelta:
        return timedelta(seconds=self._state.cluster.config.get("orphanGraceSeconds", 10))

    def _see_deletion(self, change: Change) -> None:
        has_pods = bool(self._pods_of(change.name))
        stored = self._stored((STATE_KIND, "", change.name))
        noted = stored is not None and msgspec.json.decode(stored)["deleted"]
        if has_pods and not noted:
            self._report(f"revision {change.revision} deletes {change.name} and forgets its pods")

    def _see_forgotten(self, change: Change, commit: Sequence[Change]) -> None:
        ended = {tuple(each.key[1:]) for each in commit if each.kind == "Pod"}
        left = [pod for pod in self._pods_of(change.name) if _key(pod) not in ended]
        if left and change.name not in self._state.view.nodes:
            self._report(f"revision {change.revision} forgets {len(left)} pods of {change.name}")

    def _see_end(self, change: Change, at: datetime) -> None:
        pod = self._state.pod(tuple(change.key))
        assert pod is not None
        name = str(spec_of(pod)["nodeName"])
        told = f"revision {change.revision} ends {change.namespace}/{change.name} on {name}"
        if is_finished(pod):
            self._report(f"{told}, which had ended before")
        if name in self._state.view.nodes:
            self._report(f"{told}, which is there")
        since = self._since(name)
        if since is None:
            self._report(f"{told}, whose time never began")
        elif since + self._grace > at and not self._clocks_jump:
            self._report(f"{told} at {at}, but it has until {since + self._grace}")

    def _see_write(self, change: Change) -> None:
        """Nobody says here that a pod lives again that has ended, so none does."""
        stored = self._stored(tuple(change.key))
        if stored is None or not has_ended_with_its_node(stored):
            return
        before, after = msgspec.json.decode(stored), msgspec.json.decode(change.body)
        is_same = before["metadata"]["uid"] == after["metadata"]["uid"]
        if is_same and not is_finished(after):
            told = f"{change.namespace}/{change.name}, which had ended with its node"
            self._report(f"revision {change.revision} revives {told}")

    def _since(self, name: str) -> datetime | None:
        stored = self._stored((STATE_KIND, "", name))
        at: Any = None if stored is None else msgspec.json.decode(stored).get("deleted_at")
        return None if at is None else datetime.fromisoformat(at)

    def _stored(self, key: Key) -> bytes | None:
        stored = self._state.bodies.get(key)
        return None if stored is None else stored[1]

    def _pods_of(self, name: str) -> list[Manifest]:
        return [
            pod
            for pod in self._state.cluster.pods.values()
            if spec_of(pod).get("nodeName") == name and not is_finished(pod)
        ]


def _key(pod: Manifest) -> tuple[str, str]:
    return pod["metadata"]["namespace"], name_of(pod)
