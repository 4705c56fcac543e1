"""All errors that a client may see, as one exception tree.

    MoorageError
    ├── MalformedJSON            the request is no JSON that we read
    ├── InvalidManifest          it is, but fields in it are wrong: all of them, at once
    ├── Denied                   admission or a quota refuses it
    ├── Forbidden                the caller may not do this
    ├── NotFound
    ├── Conflict                 what is stored stands against it
    │   ├── RevisionConflict
    │   ├── PodDiffers
    │   ├── BindingRefused
    │   ├── BindingViolated
    │   ├── NoAdminLeft
    │   └── IdempotencyKeyInProgress
    ├── PreconditionFailed       an If-Match or If-None-Match that does not hold
    ├── IdempotencyKeyReused
    ├── EvictionBlocked          a disruption budget does not allow it now
    ├── Compacted                the log no longer reaches back that far
    ├── HistoryReplaced          the log is another one than the reader knew
    └── Unavailable              ask again
        ├── Overloaded
        ├── StorageUnavailable   nothing was committed
        ├── PluginMissing        the cluster is configured with a plugin that this server has not
        └── OutcomeUnknown       something may have been committed

Each has a stable `code` for clients. Which HTTP status an error has is the API's business.
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
        """Return the error with a longer path: `under("pods[3]")`.

        Before that, the path is relative to an object of the request; "" is the whole object.
        """
        separator = "." if prefix and self.field and not self.field.startswith("[") else ""
        return FieldError(prefix + separator + self.field, self.message, self.value)


class MoorageError(Exception):
    """Base of all errors that a client may see: `detail` is a sentence for people."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def code(self) -> str:
        """The stable name that clients see: the class's own."""
        return type(self).__name__


class MalformedJSON(MoorageError):
    """The text is not JSON, or it has duplicate keys or NaN, or is nested too deeply."""


class InvalidManifest(MoorageError):
    """Fields are wrong; `errors` names every one of them."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(_summary(self.errors))

    def under(self, prefix: str) -> "InvalidManifest":
        """Return the errors with longer paths, for an object inside a request."""
        return InvalidManifest([error.under(prefix) for error in self.errors])


def _summary(errors: Sequence[FieldError]) -> str:
    first = errors[0]
    rest = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{first.field}: {first.message}{rest}" if first.field else first.message + rest


class Denied(MoorageError):
    """Admission or a quota refuses the change; `reason` is a stable word in CamelCase."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Forbidden(MoorageError):
    """The caller is known, and may not do this."""

    def under(self, place: str) -> "Forbidden":
        """Return the refusal of an object inside a request: `under("items[3]")`."""
        return Forbidden(f"{place}: {self.detail}")


class NotFound(MoorageError):
    """There is no such object or cluster."""


class Conflict(MoorageError):
    """The request contradicts the stored state."""


class RevisionConflict(Conflict):
    """`metadata.resourceVersion` or `metadata.uid` is not that of the stored object."""


class PodDiffers(Conflict):
    """A different pod is stored under the same name."""


class BindingRefused(Conflict):
    """The pod does not fit the named node; `reasons` says why, by plugin."""

    def __init__(self, detail: str, reasons: dict[str, list[str]]) -> None:
        super().__init__(detail)
        self.reasons = reasons


class BindingViolated(Conflict):
    """Required rules of a placed pod do not hold on its node now; `errors` names each of them."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(f"Required rules of the pod do not hold: {_summary(errors)}")
        self.errors = list(errors)


class FieldManagerConflict(Conflict):
    """Others manage fields that would change; `errors` names each of them and its manager."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(f"Others manage fields that would change: {_summary(errors)}")
        self.errors = list(errors)


class NoAdminLeft(Conflict):
    """After this change no one could grant rights any more."""

    def __init__(self) -> None:
        super().__init__(
            "One token has to be that of a principal with the role admin on all clusters, in all namespaces."
        )


class IdempotencyKeyInProgress(Conflict):
    """The first request with this key is still running."""


class PreconditionFailed(MoorageError):
    """An `If-Match` or `If-None-Match` of the request does not hold."""


class EvictionBlocked(MoorageError):
    """A disruption budget does not allow the eviction now; `causes` says so of each such budget."""

    def __init__(self, causes: Sequence[str], retry_after: int = 5) -> None:
        super().__init__("Cannot evict pod as it would violate the pod's disruption budget.")
        self.causes = list(causes)
        self.retry_after = retry_after


class IdempotencyKeyReused(MoorageError):
    """The idempotency key was used for a different request before."""


class Compacted(MoorageError):
    """The log no longer reaches back to the revision asked for."""


class HistoryReplaced(MoorageError):
    """The log does not continue what the reader knows: the database was restored, say."""


class ObjectUnreadable(MoorageError):
    """A stored object cannot be read: its row is damaged, or of a version that this one does not know."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        named = f"{namespace}/{name}" if namespace else name
        super().__init__(f"The stored {kind} {named} cannot be read.")
        self.kind = kind
        self.namespace = namespace
        self.name = name

    def unnamed(self) -> "ObjectUnreadable":
        """Return the error for a caller who may not know which object it is."""
        error = ObjectUnreadable("object", "", "")
        error.detail = (
            "An object of the cluster that you may not read cannot be read from the database."
        )
        return error


class Unavailable(MoorageError):
    """Ask again after `retry_after` seconds, with the same idempotency key."""

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Overloaded(Unavailable):
    """Too much is waiting already, or time ran out before the commit."""


class StorageUnavailable(Unavailable):
    """The database cannot be reached; nothing of the request was committed."""


class PluginMissing(Unavailable):
    """A cluster's configuration names a plugin that is not installed where this server runs."""

    def __init__(self, field: str, plugin: str) -> None:
        super().__init__(
            f"{field}: the plugin {plugin} is not installed on this server, so that it cannot decide for this cluster.",
            retry_after=60,
        )


class OutcomeUnknown(Unavailable):
    """The connection broke during the commit, and it is not known whether it was committed."""
