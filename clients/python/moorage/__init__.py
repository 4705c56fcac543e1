"""Clients of Moorage, scheduling as a service: `AsyncClient` and the synchronous `Client`.

The package is independent of the server. Objects are dictionaries in Kubernetes' format, with types
in `moorage.types`; fields unknown to Moorage are preserved. Names are imported on first use, so
that the command starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.asynchronous.cache import AsyncCache
    from moorage.asynchronous.client import AsyncClient
    from moorage.asynchronous.objects import AsyncObjects
    from moorage.errors import (
        ConflictError,
        ConnectionLostError,
        ExpiredError,
        ForbiddenError,
        InvalidRequestError,
        MoorageError,
        NoAnswerError,
        NotFoundError,
        PreconditionError,
        ProblemError,
        TimedOutError,
        UnauthenticatedError,
        UnavailableError,
        UnreachableError,
    )
    from moorage.events import Change, Event
    from moorage.pages import Page
    from moorage.requests import Manifest, new_key
    from moorage.retries import Retries
    from moorage.synchronous.cache import Cache
    from moorage.synchronous.client import Client
    from moorage.synchronous.objects import Objects

__all__ = [
    "AsyncCache",
    "AsyncClient",
    "AsyncObjects",
    "Cache",
    "Change",
    "Client",
    "ConflictError",
    "ConnectionLostError",
    "Event",
    "ExpiredError",
    "ForbiddenError",
    "InvalidRequestError",
    "Manifest",
    "MoorageError",
    "NoAnswerError",
    "NotFoundError",
    "Objects",
    "Page",
    "PreconditionError",
    "ProblemError",
    "Retries",
    "TimedOutError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnreachableError",
    "new_key",
]

_NAMES_BY_MODULE = {
    "moorage.asynchronous.cache": ("AsyncCache",),
    "moorage.asynchronous.client": ("AsyncClient",),
    "moorage.asynchronous.objects": ("AsyncObjects",),
    "moorage.errors": (
        "ConflictError",
        "ConnectionLostError",
        "ExpiredError",
        "ForbiddenError",
        "InvalidRequestError",
        "MoorageError",
        "NoAnswerError",
        "NotFoundError",
        "PreconditionError",
        "ProblemError",
        "TimedOutError",
        "UnauthenticatedError",
        "UnavailableError",
        "UnreachableError",
    ),
    "moorage.events": ("Change", "Event"),
    "moorage.pages": ("Page",),
    "moorage.requests": ("Manifest", "new_key"),
    "moorage.retries": ("Retries",),
    "moorage.synchronous.cache": ("Cache",),
    "moorage.synchronous.client": ("Client",),
    "moorage.synchronous.objects": ("Objects",),
}
_HOMES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name on its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
