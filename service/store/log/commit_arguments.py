"""The statement that makes a commit, and its arguments: arrays by column."""

from collections.abc import Sequence
from typing import NamedTuple

from service.model.log.commit import Change, CommitRequest, IdempotencyRecord, effects
from service.store.audit import AUDIT_COLUMNS, AuditPolicy, audit_columns
from service.store.db import arrays
from service.store.events import EVENT_COLUMNS, event_columns

_COMMIT_COLUMNS = 23
"""The number of arguments of every commit: 7 for itself, 11 for changes, and 5 for records."""


def _places(count: int) -> str:
    """Return placeholders for `count` arguments."""
    return ", ".join(f"${place}" for place in range(1, count + 1))


# The statements are composed of placeholders alone, so no SQL can be injected.
_COMMIT = f"SELECT * FROM commit_v5({_places(_COMMIT_COLUMNS)})"  # noqa: S608
_COMMIT_WITH_EVENTS = f"SELECT * FROM commit_v5({_places(_COMMIT_COLUMNS + EVENT_COLUMNS)})"  # noqa: S608
_COMMIT_WITH_AUDIT = (
    f"SELECT * FROM commit_v5({_places(_COMMIT_COLUMNS + EVENT_COLUMNS + AUDIT_COLUMNS)})"  # noqa: S608
)


class Call(NamedTuple):
    """A statement and its arguments."""

    statement: str
    arguments: tuple[object, ...]


def commit_call(cluster_id: int, request: CommitRequest, policy: AuditPolicy) -> Call:
    """Return the call that makes a commit; one without events or audit takes fewer arguments."""
    arguments = _arguments(cluster_id, request)
    audit = () if policy.never else request.audit
    if audit and policy.applies_to([entry.caller for entry in audit]):
        kept = (*event_columns(request.events), *audit_columns(request.audit))
        return Call(_COMMIT_WITH_AUDIT, (*arguments, *kept))
    if request.events:
        return Call(_COMMIT_WITH_EVENTS, (*arguments, *event_columns(request.events)))
    return Call(_COMMIT, arguments)


def _arguments(cluster_id: int, request: CommitRequest) -> tuple[object, ...]:
    """Return the arguments of `commit_v5`, with changes and records as arrays by column."""
    changes = request.changes
    assert changes, "a commit without changes makes no revision"
    assert changes[0].revision == request.expected_revision + 1, changes[0].revision
    assert changes[-1].revision == request.last_revision, changes[-1].revision
    return (
        cluster_id,
        request.expected_revision,
        request.expected_tip,
        request.commit_id,
        request.planned_at,
        request.kind,
        request.not_before,
        *_change_columns(changes),
        *record_columns(request.idempotency),
        arrays.bytes_or_null([change.fields_before for change in changes]),
    )


def _change_columns(changes: Sequence[Change]) -> tuple[object, ...]:
    texts: list[list[str]] = [
        [change.verb for change in changes],
        [change.kind for change in changes],
        [change.namespace for change in changes],
        [change.name for change in changes],
        [change.uid for change in changes],
    ]
    bodies = [change.body for change in changes]
    created = [change.created for change in changes]
    node_names = [change.node_name for change in changes]
    labels_before = [change.labels_before for change in changes]
    return (
        arrays.texts(effects(changes)),
        arrays.booleans(created),
        *map(arrays.texts, texts),
        arrays.texts_or_null(node_names),
        arrays.bytes_or_null(labels_before),
        bodies,
    )


def record_columns(records: Sequence[IdempotencyRecord]) -> tuple[list[object], ...]:
    """Return idempotency records as arrays by column."""
    return (
        [record.operation for record in records],
        [record.key for record in records],
        [record.chunk for record in records],
        [record.request_hash for record in records],
        [record.answer for record in records],
    )
