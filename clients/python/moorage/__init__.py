"""A client of Moorage, scheduling as a service: asynchronous (`AsyncClient`) and synchronous (`Client`).

It is a package beside the server, and loads nothing of it. Objects are dictionaries in Kubernetes'
own shape, whose types are in `moorage.types`; what Moorage does not know of them is kept.
"""

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
