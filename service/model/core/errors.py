"""The exception tree of all errors that clients may see.

    MoorageError
    ├── MalformedJSON            the request is not JSON, or not strict JSON
    ├── InvalidManifest          it is JSON with invalid fields; all are reported at once
    ├── Denied                   admission or a quota refuses it
    ├── Forbidden                the caller lacks the right
    ├── NotFound
    ├── Conflict                 the request contradicts the stored state
    │   ├── RevisionConflict
    │   ├── PodDiffers
    │   ├── BindingRefused
    │   ├── BindingViolated
    │   ├── NoAdminLeft
    │   └── IdempotencyKeyInProgress
    ├── PreconditionFailed       an If-Match or If-None-Match does not hold
    ├── IdempotencyKeyReused
    ├── EvictionBlocked          a disruption budget does not allow the eviction now
    ├── Compacted                the log no longer reaches back that far
    ├── HistoryReplaced          the log no longer continues the reader's history
    └── Unavailable              try again later
        ├── Overloaded
        ├── StorageUnavailable   nothing was committed
        ├── PluginMissing        the cluster's configuration needs a plugin that is not installed
        └── OutcomeUnknown       something may have been committed

Each has a stable `code` for clients. The API assigns the HTTP statuses.
"""
# ruff: noqa: N818 - the names are the codes that clients see

from collections.abc import Sequence
from typing import Any

import msgspec


class FieldError(msgspec.Struct, frozen=True, omit_defaults=False):
    """One wrong field of a request."""

    field: str
    """Path of the field in the request, such as `pods[3].spec.tolerations[0].key`."""
    message: str
    """What is wrong with it."""
    value: Any = None
    """What was sent, where it is short enough to repeat."""

    def under(self, prefix: str) -> "FieldError":
        """Return the error with a prefix before its path, such as `under("pods[3]")`.

        The original path is relative to an object of the request; "" is the whole object.
        """
        separator = "." if prefix and self.field and not self.field.startswith("[") else ""
        return FieldError(prefix + separator + self.field, self.message, self.value)


class MoorageError(Exception):
    """Base class of all errors that clients may see; `detail` is a sentence for people."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def code(self) -> str:
        """The stable error code that clients see: the class name."""
        return type(self).__name__


class MalformedJSON(MoorageError):
    """The text is not JSON, has duplicate keys or NaN, or is nested too deeply."""


class InvalidManifest(MoorageError):
    """Fields of the request are invalid; `errors` lists all of them."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(_summary(self.errors))

    def under(self, prefix: str) -> "InvalidManifest":
        """Return the errors with a prefix before their paths, for an object inside a request."""
        return InvalidManifest([error.under(prefix) for error in self.errors])


def _summary(errors: Sequence[FieldError]) -> str:
    first = errors[0]
    rest = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{first.field}: {first.message}{rest}" if first.field else first.message + rest


class Denied(MoorageError):
    """Admission or a quota denies the change; `reason` is a stable word in CamelCase."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Forbidden(MoorageError):
    """The caller is authenticated, but lacks the right."""

    def under(self, place: str) -> "Forbidden":
        """Return the error for an object inside a request, such as `under("items[3]")`."""
        return Forbidden(f"{place}: {self.detail}")


class NotFound(MoorageError):
    """The object or cluster does not exist."""


class Conflict(MoorageError):
    """The request contradicts the stored state."""


class RevisionConflict(Conflict):
    """The `metadata.resourceVersion` or `metadata.uid` sent is not that of the stored object."""


class PodDiffers(Conflict):
    """A different pod is stored under the same name."""


class BindingRefused(Conflict):
    """The pod does not fit the requested node; `reasons` lists why, by plugin."""

    def __init__(self, detail: str, reasons: dict[str, list[str]]) -> None:
        super().__init__(detail)
        self.reasons = reasons


class BindingViolated(Conflict):
    """A placed pod's required rules do not hold on its node; `errors` lists those rules."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(f"Required rules of the pod do not hold: {_summary(errors)}")
        self.errors = list(errors)


class FieldManagerConflict(Conflict):
    """Other managers own fields that would change; `errors` lists each field and its manager."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(f"Others manage fields that would change: {_summary(errors)}")
        self.errors = list(errors)


class NoAdminLeft(Conflict):
    """The change would leave no one who can grant rights."""

    def __init__(self) -> None:
        super().__init__(
            "One token has to be that of a principal with the role admin on all clusters, in all namespaces."
        )


class IdempotencyKeyInProgress(Conflict):
    """The first request with this key is still running."""


class PreconditionFailed(MoorageError):
    """An `If-Match` or `If-None-Match` of the request does not hold."""


class EvictionBlocked(MoorageError):
    """Disruption budgets do not allow the eviction now; `causes` lists each of these budgets."""

    def __init__(self, causes: Sequence[str], retry_after: int = 5) -> None:
        super().__init__("Cannot evict pod as it would violate the pod's disruption budget.")
        self.causes = list(causes)
        self.retry_after = retry_after


class IdempotencyKeyReused(MoorageError):
    """The idempotency key was already used for a different request."""


class Compacted(MoorageError):
    """The log no longer reaches back to the requested revision."""


class HistoryReplaced(MoorageError):
    """The log does not continue the reader's history, for example after a restore."""


class ObjectUnreadable(MoorageError):
    """A stored object cannot be read: its row is damaged, or its format is unknown here."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        named = f"{namespace}/{name}" if namespace else name
        super().__init__(f"The stored {kind} {named} cannot be read.")
        self.kind = kind
        self.namespace = namespace
        self.name = name

    def unnamed(self) -> "ObjectUnreadable":
        """Return the error without the object's name, for callers who may not know it."""
        error = ObjectUnreadable("object", "", "")
        error.detail = (
            "An object of the cluster that you may not read cannot be read from the database."
        )
        return error


class Unavailable(MoorageError):
    """The request failed for now; retry after `retry_after` seconds with the same key."""

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Overloaded(Unavailable):
    """Too many requests are waiting, or time ran out before the commit."""


class StorageUnavailable(Unavailable):
    """The database is unreachable, and nothing of the request was committed."""


class PluginMissing(Unavailable):
    """A cluster's configuration names a plugin that is not installed on this server."""

    def __init__(self, field: str, plugin: str) -> None:
        super().__init__(
            f"{field}: the plugin {plugin} is not installed on this server, so that it cannot decide for this cluster.",
            retry_after=60,
        )


class OutcomeUnknown(Unavailable):
    """The connection broke during the commit, so its outcome is unknown."""
