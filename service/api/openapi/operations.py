"""What the API says of each operation, beside its handler.

One value serves twice: requests are checked against it (access, media types, body limit, query
parameters), and the OpenAPI document is written from it. So the two cannot drift apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from service.api.openapi.access import Access, declared

JSON = "application/json"
NDJSON = "application/x-ndjson"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

BodyLimit = Literal["body", "placements", "simulations", "apply"]
"""Which of the settings `…_bytes_max` bounds an operation's body."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One query parameter or header; `type` is what its text has to be."""

    name: str
    description: str
    type: Any = str
    place: Literal["query", "header"] = "query"
    example: Any = None
    required: bool = False


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request's or an answer's body: the type of each media type, and how to read it."""

    types: Mapping[str, Any]
    description: str
    example: Any = None
    required: bool = True
    also: Sequence[str] = ()
    """Media types that are taken, too, but only told of in words: generators of clients that
    choose the Content-Type by the body's class fail on one that is a list."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the API."""

    id: str
    access: Access
    tag: str
    summary: str
    description: str = ""
    parameters: Sequence[Parameter] = ()
    request: Body | None = None
    limit: BodyLimit = "body"
    answers: Mapping[int, Body] = {}
    reads: bool = False
    """Whether it changes nothing, whatever it is asked: then its answer may be refused where there is no room for it."""
    tagged: bool = False
    """Whether its answers have an entity tag, though they are about no cluster: those have one anyway."""
    decided: bool = False
    """Whether it takes the cluster's replica: the worker that decides the cluster's requests has it (P19)."""
    problems: Sequence[str] = ()
    """The codes that this operation can answer beside those that every operation can."""

    def names(self, place: Literal["query", "header"]) -> frozenset[str]:
        """The names of the parameters of one place."""
        return frozenset(p.name for p in self.parameters if p.place == place)


def described(operation: Operation) -> dict[str, Any]:
    """The `opt` of a Litestar handler that carries its operation."""
    return {"operation": operation, **declared(operation.access)}
