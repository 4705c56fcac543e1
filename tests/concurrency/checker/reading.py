"""A10, A11, A13, A17: what watchers, listers and replicas saw is what the log says."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.concurrency.checker.history import History, Key, Listing, Transcript, Violation
from tests.concurrency.checker.state import State


def check_readers(history: History) -> list[Violation]:
    found = [Violation("A10", each) for t in history.transcripts for each in _watched(history, t)]
    found += [Violation("A11", each) for each in _listed(history)]
    return found + [Violation("A17", each) for each in _foreign(history)]


def _watched(history: History, transcript: Transcript) -> Iterator[str]:
    expected = transcript.since
    for event in transcript.events:
        expected += 1
        if event.revision != expected:
            yield f"a watcher got {event.revision} in place of {expected}"
            return
        change = history.changes[event.revision - 1]
        if (change.verb, tuple(change.key), change.body) != event[1:]:
            yield f"a watcher got another event at {event.revision}"
    for revision, events in transcript.truths:
        if revision != transcript.since + events:
            yield f"a watcher was told {revision} after {events} events since {transcript.since}"


def _listed(history: History) -> Iterator[str]:
    for listing in history.listings:
        folded = _followed(history, listing)
        present = {k: row for k, row in history.rows.items() if k[0] == listing.kind}
        for key in sorted(folded.keys() | present.keys()):
            if folded.get(key) != present.get(key):
                yield f"a list at {listing.revision} and the events since give another {key}"


def _followed(history: History, listing: Listing) -> dict[Key, tuple[int, bytes]]:
    """What somebody holds who listed and then watched from the list's revision."""
    held = dict(listing.rows)
    for change in history.changes[listing.revision :]:
        key = tuple(change.key)
        if change.kind != listing.kind:
            continue
        if change.verb == "Put":
            held[key] = (change.revision, change.body)
        else:
            held.pop(key, None)
    return held


def _foreign(history: History) -> Iterator[str]:
    if not history.foreign:
        return
    for call in history.calls:
        if call.body is not None and history.foreign in msgspec.json.encode(
            call.body, enc_hook=str
        ):
            yield f"{call} shows an object of another cluster"
    for change in history.changes:
        if history.foreign in change.body:
            yield f"revision {change.revision} holds an object of another cluster"


def check_replicas(history: History, state: State) -> list[Violation]:
    """After some quiet all replicas are the tables, count what these have, and answer alike."""
    found = [Violation("A13", each) for each in history.differing]
    if not history.replicas or history.head is None:
        return found
    expected = (history.head[0], _digest(history))
    found += [
        Violation("A13", f"{each.worker} is at {each.revision}, the tables at {expected[0]}")
        for each in history.replicas
        if (each.revision, each.digest.partition("-")[0]) != expected
    ]
    found += [
        Violation("A13", f"{each.worker} counts otherwise than a replica that is loaded anew")
        for each in history.replicas
        if history.loaded and each.digest != history.loaded
    ]
    first = history.replicas[0]
    found += [
        Violation("A13", f"{each.worker} answers {each.probes}, {first.worker} {first.probes}")
        for each in history.replicas[1:]
        if each.probes != first.probes
    ]
    return found


def _digest(history: History) -> str:
    """As replicas tell it before the dash: keys and revisions, by kind and key."""
    digest = hashlib.sha256()
    for key in sorted(history.rows):
        told: list[Any] = [*key, history.rows[key][0]]
        digest.update(msgspec.json.encode(told))
    return digest.hexdigest()
