"""Whose doing each change is: what was acknowledged is there (A6), and nothing else is (A5, A7).

An answer says which revisions are its own. What no answer claims must belong to a call whose
outcome its client never learned, and to each such call belongs one commit's part at most.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any

import msgspec

from service.model.log.audit_chain import AuditRow
from service.model.log.commit import Change
from tests.concurrency.checker.evicting import (
    PREEMPTION,
    STATE_KIND,
    eviction_of,
    is_new_eviction,
    without_mark,
)
from tests.concurrency.checker.history import Call, History, Key, Violation
from tests.concurrency.checker.node_lifecycle import STATE_KIND as NODE_STATE_KIND, ends_pod
from tests.reference.view import is_finished, nomination_of, priority_of

MARK = "simulation/call"
DISTINGUISHED_BY = "groupSearchSteps"
"""The setting that is different in each configuration that clients ask for."""
WAITING_GROUP = "WaitingGroup"
"""The note of a group that waits as a whole, which is written with its pods."""
Claims = dict[int, Call]
"""The call that made each revision."""


def attribute(history: History) -> tuple[Claims, list[Violation]]:
    return _Attribution(history).run()


class _Attribution:
    def __init__(self, history: History) -> None:
        self._history = history
        self._changes = history.changes
        self._claims: Claims = {}
        self._found: list[Violation] = []
        self._effects: defaultdict[int, set[int]] = defaultdict(set)
        """The commits that each call made, by their first revision."""

    def run(self) -> tuple[Claims, list[Violation]]:
        answered = [call for call in self._history.calls if call.outcome == "ok"]
        for call in sorted(answered, key=lambda call: (_is_of_namespace(call), call.recorded)):
            self._claim_all(call, _CLAIMS[call.action](self, call))
        self._attribute_rest()
        self._check_keys()
        return self._claims, self._found

    # What answers say

    def _claim_all(self, call: Call, revisions: Iterable[int]) -> None:
        revisions = list(revisions)
        for revision in revisions:
            self._claim(call, revision)
        commits = {self._commit_of(revision) for revision in revisions}
        if len(commits) > 1:
            self._report("A6", f"{call} was answered as one commit, but lies in {sorted(commits)}")
        for revision in revisions[-1:]:
            committed = self._committed_at(revision)
            if committed is not None and committed > call.returned:
                self._report("A6", f"{call} was answered before it was committed")
            if committed is not None and committed < call.called and not call.recorded:
                self._report("A4", f"{call} claims {revision}, which was committed before it")

    def _claim(self, call: Call, revision: int) -> None:
        if not 1 <= revision <= len(self._changes):
            self._report("A6", f"{call} claims {revision}, beyond the log's end")
            return
        owner = self._claims.setdefault(revision, call)
        if owner.operation != call.operation and not _may_share(owner, call):
            self._report("A6", f"{call} and {owner} both claim revision {revision}")
        problem = _mismatch(call, self._changes[revision - 1])
        if problem:
            self._report("A6", f"{call}, revision {revision}: {problem}")
        self._effects[owner.number].add(self._commit_of(revision))

    def placed(self, call: Call) -> Iterable[int]:
        body = call.body
        if call.asked["dry_run"] and body["committed"]:
            self._report("A7", f"{call} is a dry run that committed")
        if not body["results"]:
            return ()
        first = min(result["plannedRevision"] for result in body["results"])
        own = range(first + 1, body["revision"] + 1)
        if bool(own) != body["committed"]:
            self._report("A6", f"{call} says committed={body['committed']} of {own}")
        self._check_results(call, own)
        return own

    def _check_results(self, call: Call, own: range) -> None:
        log = {tuple(each.key): each for each in self._changes[own.start - 1 : own.stop - 1]}
        if call.asked["dry_run"]:
            return
        for result in call.body["results"]:
            if result["outcome"] == "Placed":
                change = log.get(("Pod", result["namespace"], result["name"]))
                told = (result["uid"], result["nodeName"])
                if change is None or (change.uid, change.node_name) != told:
                    self._report("A6", f"{call}: {result['name']} at {told} is not in the log")

    def put(self, call: Call) -> Iterable[int]:
        revision = call.body["resourceVersion"]
        if revision != call.revision or self._mark_at(revision) != call.operation:
            return ()
        return self._unless_older(call, revision)

    def applied(self, call: Call) -> Iterable[int]:
        body = call.body
        effects = body["created"] + body["changed"] + body["deleted"]
        return range(body["revision"] - effects + 1, body["revision"] + 1)

    def deleted(self, call: Call) -> Iterable[int]:
        assert call.revision is not None
        kind, _, name = call.asked["object"]
        first = call.revision
        if kind == "Namespace":
            commit = self._commit_of(first)
            while first > commit and self._goes_with(name, self._changes[first - 2]):
                if first - 1 in self._claims or first - 1 in self._rows:
                    break
                first -= 1
        return range(first, call.revision + 1)

    def _goes_with(self, namespace: str, change: Change) -> bool:
        """Whether the deletion of a namespace may have made a change: it makes no new note."""
        if change.kind != WAITING_GROUP:
            return change.verb == "Delete" and change.namespace == namespace
        if change.created:
            return False
        earlier = reversed(self._changes[: change.revision - 1])
        before = next(each for each in earlier if each.key == change.key)
        return any(member[1] == namespace for member in waiting_members(before.body))

    def evicted(self, call: Call) -> Iterable[int]:
        """Unless the pod was marked before, which was somebody else's doing."""
        revision = call.body["resourceVersion"]
        if revision != call.revision or not 1 <= revision <= len(self._changes):
            return ()
        owner = self._claims.get(revision)
        if owner is not None and owner.action != "evict":
            return ()
        if eviction_of(self._changes[revision - 1]) is not None:
            return ()
        return self._unless_older(call, revision)

    def configured(self, call: Call) -> Iterable[int]:
        assert call.revision is not None
        if not 1 <= call.revision <= len(self._changes):
            return (call.revision,)
        change = self._changes[call.revision - 1]
        return self._unless_older(call, call.revision) if _is_asked_config(call, change) else ()

    def _unless_older(self, call: Call, revision: int) -> Iterable[int]:
        """A write that found everything as it should be shows a revision made before it."""
        committed = self._committed_at(revision)
        return () if committed is not None and committed < call.called else (revision,)

    def nothing(self, call: Call) -> Iterable[int]:
        return ()

    # What nobody was told

    def _attribute_rest(self) -> None:
        before: dict[Key, Change] = {}
        for change in self._changes:
            old = before.get(tuple(change.key))
            before[tuple(change.key)] = change
            if change.revision in self._claims or change.revision <= self._history.granted:
                continue
            if self._may_be_of_queue(change.revision) and _is_of_queue(old, change):
                if not self._is_torn_from_others(change, before):
                    continue
                if not any(self._candidates(old, change)):
                    continue
            if change.kind == WAITING_GROUP and (
                self._concerns_its_commit(old, change) or self._is_abandoned(change, before)
            ):
                continue
            if _is_of_evictions(old, change) or self._ends_lower_nomination(old, change):
                continue
            calls = list(self._candidates(old, change))
            if calls:
                commit = self._commit_of(change.revision)
                call = min(calls, key=lambda call: self._doubts(call, change.revision))
                self._claims[change.revision] = call
                self._effects[call.number].add(commit)
            else:
                told = f"{change.verb} {change.key}: {self._told_otherwise(change)}"
                self._report("A7", f"revision {change.revision}: {told}")

    def _candidates(self, before: Change | None, change: Change) -> Iterable[Call]:
        is_new = before is None or before.verb != "Put"
        is_placed = before is not None and not is_new and before.node_name is not None
        commit = self._commit_of(change.revision)
        committed = self._committed_at(change.revision)
        for call in self._unknown.get(tuple(change.key), ()):
            known = self._effects[call.number]
            early = committed is not None and committed < call.called
            if call.action == "place" and (is_placed or (is_new and not call.manifests)):
                continue  # who names a pod without sending it makes none
            if _is_of_namespace(call) and not _objects(call) <= self._keys_in(commit):
                continue
            if not early and known <= {commit} and _mismatch(call, change) is None:
                yield call

    def _doubts(self, call: Call, revision: int) -> tuple[float, ...]:
        """Several calls may have asked for a change: whose it is most likely comes first.

        A key has its effect in one place. If the audit tells what one request has changed, it is
        the one that asked for most of it. Else least in doubt are those with a part in the commit
        already; a group would be there whole, and other pods most likely are; and who asked last
        is most likely still being served.
        """
        commit = self._commit_of(revision)
        elsewhere = {
            each
            for other in self._history.calls
            if call.key is not None and other.key == call.key
            for each in self._effects[other.number]
        } - {commit}
        keys = self._keys_with(revision)
        is_partial = call.action == "place" and not _objects(call) <= keys
        is_torn = is_partial and bool(call.asked["group"])
        has_no_part = commit not in self._effects[call.number]
        explained = len(set(self._targets(call)) & keys)
        is_told = self._history.audit is not None
        by_audit = (bool(elsewhere), -explained if is_told else 0)
        return *by_audit, is_torn, has_no_part, is_partial, -explained, -call.called

    def _is_torn_from_others(self, change: Change, before: Mapping[Key, Change]) -> bool:
        """Whether a pod gets a node, and others that it waits with have none after its commit.

        Others that were denied, or deleted, have none either. That is not what the queue does; but who asks for the one pod gets it placed.
        """
        if change.node_name is None:
            return False
        commit = self._commit_of(change.revision)
        placed = {tuple(each.key) for each in self._of_commit(commit) if each.node_name}
        for key, note in before.items():
            if key[0] != WAITING_GROUP or note.verb == "Delete":
                continue
            members = set(waiting_members(note.body))
            if tuple(change.key) in members:
                others = members - placed
                return any(
                    other not in before or before[other].node_name is None for other in others
                )
        return False

    def _concerns_its_commit(self, before: Change | None, change: Change) -> bool:
        """Whether a note of who waits together changes with a pod that it is about.

        A pod that waits with others from now on need not change itself.
        """
        notes = [each.body for each in (before, change) if each is not None]
        members = {key for note in notes for key in waiting_members(note)}
        commit = self._commit_of(change.revision)
        new = (each for each in self._of_commit(commit) if each.kind == WAITING_GROUP)
        joining = {key for each in new if each.created for key in waiting_members(each.body)}
        return not members.isdisjoint(self._keys_in(commit) | joining)

    def _is_abandoned(self, change: Change, before: Mapping[Key, Change]) -> bool:
        """Whether a note goes because nobody waits any more that it is about.

        Any placement of a group that may have to wait has such notes go.
        """
        waits = (_waits(before.get(each)) for each in waiting_members(change.body))
        return change.verb == "Delete" and not any(waits)

    def _ends_lower_nomination(self, before: Change | None, change: Change) -> bool:
        """Whether a pod only loses a node that its commit nominates for a pod of higher priority."""
        if before is None or {before.verb, change.verb} != {"Put"} or change.kind != "Pod":
            return False
        old, pod = msgspec.json.decode(before.body), msgspec.json.decode(change.body)
        node_name = (old.get("status") or {}).pop("nominatedNodeName", None)
        if node_name is None or old != pod:
            return False
        others = (
            msgspec.json.decode(each.body)
            for each in self._of_commit(self._commit_of(change.revision))
            if each.kind == "Pod" and each.verb == "Put"
        )
        return any(
            nomination_of(each) == node_name and priority_of(each) > priority_of(pod)
            for each in others
        )

    def _keys_with(self, revision: int) -> set[Key]:
        """What the request changes that made a revision; what its commit changes if no audit tells."""
        commit, request = self._commit_of(revision), self._request_of(revision)
        return {tuple(each.key) for each in self._of_commit(commit) if each.revision in request}

    def _request_of(self, revision: int) -> range:
        """The revisions of the request that made one; up to the log's last one if no audit tells."""
        ends = self._sorted_ends
        place = bisect_left(ends, revision)
        end = ends[place] if place < len(ends) else len(self._changes)
        return range(ends[place - 1] + 1 if place else 1, end + 1)

    @cached_property
    def _sorted_ends(self) -> list[int]:
        return sorted(self._rows)

    @cached_property
    def _rows(self) -> dict[int, AuditRow]:
        """What the audit tells of each request, by its last revision."""
        return {row.revision or 0: row for row in self._history.audit or ()}

    def _keys_in(self, commit: int) -> set[Key]:
        """What the commit that begins there changes."""
        return {tuple(change.key) for change in self._of_commit(commit)}

    def _of_commit(self, commit: int) -> Iterator[Change]:
        """The changes of the commit that begins there."""
        following = (self._changes[index] for index in range(commit - 1, len(self._changes)))
        return takewhile(lambda change: self._commit_of(change.revision) == commit, following)

    def _may_be_of_queue(self, revision: int) -> bool:
        """Whether the service itself may have placed what was pending: a setting and the audit tell.

        In the audit of a simulation only requests of the service itself name their operations.
        """
        works = self._queue_works[bisect_right(self._queue_works, (revision, False)) - 1][1]
        row = self._rows.get(self._request_of(revision)[-1])
        return works and (row is None or row.operation != "")

    @cached_property
    def _queue_works(self) -> list[tuple[int, bool]]:
        """From which revision on it does, or does not."""
        return [(0, True)] + [
            (change.revision, bool(msgspec.json.decode(change.body).get("placePendingPods", True)))
            for change in self._changes
            if change.kind == "Cluster"
        ]

    def _told_otherwise(self, change: Change) -> str:
        asked = [call for call in self._history.calls if tuple(change.key) in _objects(call)]
        return f"nobody's; asked by {', '.join(map(str, asked)) or 'nobody'}"

    @cached_property
    def _unknown(self) -> dict[Key, list[Call]]:
        calls: defaultdict[Key, list[Call]] = defaultdict(list)
        for call in self._history.calls:
            if call.outcome == "unknown":
                for key in self._targets(call):
                    calls[key].append(call)
        return calls

    def _targets(self, call: Call) -> Iterable[Key]:
        if _is_of_namespace(call):
            inside = call.asked["object"][2]
            return {tuple(c.key) for c in self._changes if c.namespace == inside} | _objects(call)
        return _objects(call)

    # Idempotency keys

    def _check_keys(self) -> None:
        by_key: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self._history.calls:
            if call.key is not None:
                by_key[call.key].append(call)
        for key, calls in by_key.items():
            self._check_key(key, calls)

    def _check_key(self, key: str, calls: list[Call]) -> None:
        answered = [call for call in calls if call.outcome == "ok" and not call.asked["dry_run"]]
        if len({call.request_hash for call in answered}) > 1:
            self._report(
                "A5", f"two requests were answered under {key}: {', '.join(map(str, answered))}"
            )
        elif len({msgspec.json.encode(call.body) for call in answered}) > 1:
            self._report("A5", f"answers under {key} differ: {[call.body for call in answered]}")
        commits = {commit for call in calls for commit in self._effects[call.number]}
        if len(commits) > 1:
            self._report("A5", f"{key} had effects at {sorted(commits)}")
        for call in calls:
            if call.status == "IdempotencyKeyReused" and len({c.request_hash for c in calls}) == 1:
                self._report("A5", f"{call}: no other request has this key")

    # The log

    def _mark_at(self, revision: int) -> int | None:
        if not 1 <= revision <= len(self._changes):
            return None
        return mark_of(self._changes[revision - 1])

    @cached_property
    def _firsts(self) -> list[int]:
        firsts = [0] * (len(self._changes) + 1)
        for commit in self._history.commits:
            for revision in range(commit.first, commit.last + 1):
                firsts[revision] = commit.first
        return firsts

    def _commit_of(self, revision: int) -> int:
        return self._firsts[revision] if 0 < revision < len(self._firsts) else 0

    @cached_property
    def _times(self) -> dict[int, float]:
        at = self._history.committed_at
        return {c.first: at[c.commit_id] for c in self._history.commits if c.commit_id in at}

    def _committed_at(self, revision: int) -> float | None:
        return self._times.get(self._commit_of(revision))

    def _report(self, invariant: str, message: str) -> None:
        self._found.append(Violation(invariant, message))


_CLAIMS: dict[str, Callable[[_Attribution, Call], Iterable[int]]] = {
    "place": _Attribution.placed,
    "put": _Attribution.put,
    "apply": _Attribution.applied,
    "delete": _Attribution.deleted,
    "evict": _Attribution.evicted,
    "config": _Attribution.configured,
    "get": _Attribution.nothing,
    "topology": _Attribution.nothing,
    "quotas": _Attribution.nothing,
}


def mark_of(change: Change) -> int | None:
    """The operation that sent the object, where it says so."""
    if MARK.encode() not in change.body:
        return None
    metadata = msgspec.json.decode(change.body)["metadata"]
    return int(metadata["annotations"][MARK])


def waiting_members(note: bytes) -> list[Key]:
    """The pods that wait together, as a note of them says."""
    return [("Pod", *each) for each in msgspec.json.decode(note)["members"]]


def _waits(pod: Change | None) -> bool:
    """Whether a pod is there that is still to be placed."""
    if pod is None or pod.verb == "Delete" or pod.node_name is not None:
        return False
    manifest = msgspec.json.decode(pod.body)
    return "deletionTimestamp" not in manifest["metadata"] and not is_finished(manifest)


def _is_of_queue(before: Change | None, change: Change) -> bool:
    """The service's own doing: a pending pod gets a node, or is told why it waits."""
    if before is None or (before.kind, before.verb, change.verb) != ("Pod", "Put", "Put"):
        return False
    if before.node_name is not None or before.uid != change.uid:
        return False
    return _without_outcome(before) == _without_outcome(change)


def _is_of_evictions(before: Change | None, change: Change) -> bool:
    """The service's own doing: a placed pod is evicted; what is to be remembered of that."""
    if change.kind in (STATE_KIND, NODE_STATE_KIND):
        return True
    if before is not None and before.verb == "Put" and ends_pod(before.body, change):
        return True
    if before is None or "Delete" in (before.verb, change.verb) or before.node_name is None:
        return False
    if (before.uid, before.node_name) != (change.uid, change.node_name):
        return False
    same = without_mark(before.body) == without_mark(change.body) if change.kind == "Pod" else False
    return same and is_new_eviction(before.body, change)


def _without_outcome(change: Change) -> dict[str, Any]:
    """A pod without what placing it changes."""
    manifest = dict(msgspec.json.decode(change.body))
    manifest["spec"].pop("nodeName", None)
    manifest.pop("status", None)
    return manifest


def _may_share(owner: Call, call: Call) -> bool:
    """Two evictions of one pod, or two answers under one key, may both name one change."""
    return owner.action == call.action == "evict" or (
        call.recorded and owner.key == call.key is not None
    )


def _objects(call: Call) -> set[Key]:
    if call.action == "config":
        return {("Cluster", "", "config")}
    if call.action in ("put", "delete", "evict"):
        return {tuple(call.asked["object"])}
    if call.action == "apply":
        return {tuple(key) for key in call.asked["objects"]}
    if call.action == "place" and not call.asked["dry_run"]:
        return {tuple(key) for key in call.asked["pods"]}
    return set()


def _is_of_namespace(call: Call) -> bool:
    """A namespace takes with it what is in it."""
    return call.action == "delete" and call.asked["object"][0] == "Namespace"


def _is_asked_config(call: Call, change: Change) -> bool:
    if change.kind != "Cluster":
        return False
    settings = msgspec.json.decode(change.body)
    return bool(settings[DISTINGUISHED_BY] == call.asked[DISTINGUISHED_BY])


def _mismatch(call: Call, change: Change) -> str | None:
    """Why a change can't be this call's doing."""
    if change.kind == WAITING_GROUP and call.action in ("place", "delete"):
        return None
    verb = "Delete" if call.action == "delete" else "Put"
    if change.verb != verb:
        return f"the log has {change.verb} {change.key}"
    if call.action == "config":
        return None if _is_asked_config(call, change) else "the log has other settings"
    key = tuple(change.key)
    if _is_of_namespace(call):
        inside = change.namespace == call.asked["object"][2]
        return None if inside or key in _objects(call) else f"the log has {key}"
    if call.asked.get("evict") and _makes_room(change):
        return None
    if key not in _objects(call):
        return f"the log has {key}"
    if call.action in ("put", "apply") and mark_of(change) != call.operation:
        return "the log has somebody else's content"
    return _wrong_mark(call, change)


def _makes_room(change: Change) -> bool:
    """Whether a change may be what placing another pod with preemption does to a pod."""
    if change.kind != "Pod":
        return False
    eviction = eviction_of(change)
    if eviction is not None:
        return eviction[0] == PREEMPTION
    status = msgspec.json.decode(change.body).get("status") or {}
    return change.node_name is None and "nominatedNodeName" not in status


def _wrong_mark(call: Call, change: Change) -> str | None:
    """Whether a pod is marked as to be stopped, and by whom."""
    if call.action == "evict" and b"deletionTimestamp" not in change.body:
        return "the pod is not marked"
    if call.action in ("evict", "place") and eviction_of(change) is not None:
        return "the service evicts the pod"
    return None
