"""The exceptions that requests may raise.

MoorageError
├── ProblemError              the server answered with a problem document (RFC 9457)
│   ├── InvalidRequestError   400, 413, 414, 415, 422, 431: `errors` names each wrong field
│   ├── UnauthenticatedError  401
│   ├── ForbiddenError        403: rights, admission, quotas
│   ├── NotFoundError         404
│   ├── ConflictError         409: the stored state is not what was assumed
│   ├── PreconditionError     412: `If-Match` does not hold
│   ├── ExpiredError          410: the log does not reach back to that revision
│   └── UnavailableError      429 and 5xx, after all repetitions; EvictionBlocked at once
└── NoAnswerError             there was no answer
    ├── UnreachableError      no connection was made, so nothing was asked
    ├── TimedOutError         whether the server did what was asked is unknown
    └── ConnectionLostError   the same
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

SERVER_FAULT = 500
DETAIL_CHARACTERS_MAX = 500
"""How much of an answer that is no problem document, such as a proxy's, is shown."""


class MoorageError(Exception):
    """Base class of all errors that the client raises."""


class ProblemError(MoorageError):
    """The server answered with a problem document, available as `document`."""

    def __init__(
        self, document: Mapping[str, Any], *, retry_after_seconds: float | None = None
    ) -> None:
        self.document = document
        self.status: int = document["status"]
        self.code: str = document.get("code") or ""
        """A stable code for the problem, in CamelCase; empty if the answer is not Moorage's."""
        self.title: str = document.get("title") or ""
        self.detail: str = document.get("detail") or ""
        self.errors: Sequence[Mapping[str, Any]] = document.get("errors") or ()
        """The invalid fields, each with its `field` (a path), `message`, and perhaps `value`."""
        self.retry_after_seconds = retry_after_seconds
        """How many seconds the server asks to wait before a retry, or None."""
        super().__init__(_sentence(self))


class InvalidRequestError(ProblemError):
    """The request is invalid, and repeating it will not help."""


class UnauthenticatedError(ProblemError):
    """The server requires a token, or a different one."""


class ForbiddenError(ProblemError):
    """Rights, an admission rule, or a quota forbid the request."""


class NotFoundError(ProblemError):
    """The object, cluster, or path does not exist."""


class ConflictError(ProblemError):
    """The stored state is not what the request assumes; read it again."""


class PreconditionError(ProblemError):
    """The object has changed since it was read, or exists already."""


class ExpiredError(ProblemError):
    """The log does not reach back to that revision; list again."""


class UnavailableError(ProblemError):
    """The server is overloaded, restarting, or failing; whether it did anything may be unknown."""


class NoAnswerError(MoorageError):
    """No answer was received; the subclass says why."""


class UnreachableError(NoAnswerError):
    """No connection could be made, so no request was sent."""


class TimedOutError(NoAnswerError):
    """The answer did not arrive in time; whether the request was carried out is unknown."""


class ConnectionLostError(NoAnswerError):
    """The connection broke; whether the request was carried out is unknown."""


_CLASSES: Mapping[int, type[ProblemError]] = {
    400: InvalidRequestError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    412: PreconditionError,
    413: InvalidRequestError,
    414: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: UnavailableError,
    431: InvalidRequestError,
}


def error_of_document(
    document: Mapping[str, Any], retry_after_seconds: float | None = None
) -> ProblemError:
    """Build the exception for a problem document; `status` determines its class."""
    status = document["status"]
    fallback = UnavailableError if status >= SERVER_FAULT else ProblemError
    return _CLASSES.get(status, fallback)(document, retry_after_seconds=retry_after_seconds)


def error_of_answer(
    status: int, phrase: str, content: bytes, retry_after: str | None
) -> ProblemError:
    """Build the exception for an answer other than 2xx, with or without a problem document."""
    fallback = {"title": phrase, "status": status}
    try:
        document = {**fallback, **msgspec.json.decode(content, type=dict[str, Any])}
    except msgspec.DecodeError:
        text = content.decode(errors="replace")
        document = {**fallback, "detail": text[:DETAIL_CHARACTERS_MAX]}
    return error_of_document(document, _seconds(retry_after))


def _seconds(retry_after: str | None) -> float | None:
    """Parse a `Retry-After` in seconds, or return None, also for dates."""
    try:
        return None if retry_after is None else max(float(retry_after), 0.0)
    except ValueError:
        return None


def _sentence(error: ProblemError) -> str:
    summary = error.detail or error.title or f"The server answered {error.status}."
    fields = (f"{entry.get('field')}: {entry.get('message')}" for entry in error.errors)
    rest = "; ".join(field for field in fields if field not in summary)
    return f"{summary} ({rest})" if rest else summary
