"""Declarations of operations: each handler states what it accepts and answers.

Requests are checked against the declaration (access, media types, body limit, query parameters),
and the OpenAPI document is generated from it, so the two cannot diverge.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from service.api.http.permissions import Access, declared

JSON = "application/json"
NDJSON = "application/x-ndjson"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
APPLY_JSON = "application/apply-patch+json"

WholeNumber = Annotated[int, msgspec.Meta(ge=0, lt=10**18)]
"""A nonnegative integer in a query or header."""

DNSLabel = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A name of at most 63 characters, as required for clusters and namespaces (RFC 1123)."""

EntityTags = Annotated[
    str, msgspec.Meta(pattern=r'^\s*(\*|(W/)?"[!#-~]*"(\s*,\s*(W/)?"[!#-~]*")*)\s*$')
]
"""The value of If-Match or If-None-Match: `*`, or quoted tags."""

PRECONDITIONS = ("If-Match", "If-None-Match", "If-Unmodified-Since")
"""Headers that make a write conditional; operations that do not declare them refuse them."""
UNHONORED = "unhonored"
"""The key in a handler's `opt` for preconditions that its operation does not declare, as bytes."""

BodyLimit = Literal["body", "placements", "simulations", "apply"]
"""The prefix of the setting `…_bytes_max` that limits an operation's body."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A query parameter or header; `type` is the type of its value."""

    name: str
    description: str
    type: Any = str
    place: Literal["query", "header"] = "query"
    example: Any = None
    required: bool = False


DRY_RUN = Parameter(
    name="dryRun",
    type=bool,
    description="Whether to answer as usual, refusals included, but change nothing; `All` says the same as `true`. An "
    "object in the answer has no `resourceVersion` then, and no ETag.",
)


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request or an answer: its type in each media type, and its description."""

    types: Mapping[str, Any]
    description: str
    example: Any = None
    """The example for each JSON media type, or for text types if it is a string."""
    examples: Mapping[str, Any] = {}
    """Examples by media type."""
    named: Mapping[str, Any] = {}
    """Named examples, used instead of `example` if one is not enough, the most common first."""
    required: bool = True


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of the API, as its handler declares it."""

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
    """Whether the operation never changes anything, so that its answers may be refused."""
    tagged: bool = False
    """Whether answers that are not about a cluster have an entity tag; those about one always
    do.
    """
    decided: bool = False
    """Whether the operation needs the cluster's replica, on whichever worker has it (protocol rule
    P19).
    """
    decided_with: Sequence[frozenset[str]] = ()
    """Sets of query parameters; a request with all parameters of any set needs the replica too."""
    warns: bool = False
    """Whether answers may have warnings about manifests in the request or stored objects."""
    minimal: bool = False
    """Whether `Prefer: return=minimal` shortens answers."""
    keeps_unknown: Sequence[Any] = ()
    """Types in bodies whose unknown fields are kept or ignored, as in Kubernetes' own objects."""
    components: Mapping[str, Any] = {}
    """Types or schemas, by name, that bodies refer to although no msgspec type contains them."""
    problems: Sequence[str] = ()
    """Problem codes of this operation, in addition to those common to all operations."""

    def names(self, place: Literal["query", "header"]) -> frozenset[str]:
        """Return the names of the parameters in the query or in the headers."""
        return frozenset(p.name for p in self.parameters if p.place == place)


def as_ndjson(*values: Mapping[str, Any]) -> str:
    """Encode values as NDJSON, for examples."""
    return msgspec.json.Encoder().encode_lines(values).decode()


def described(operation: Operation) -> dict[str, Any]:
    """Build the `opt` of a Litestar handler from its operation."""
    honored = operation.names("header")
    unhonored = frozenset(name.lower().encode() for name in PRECONDITIONS if name not in honored)
    return {"operation": operation, UNHONORED: unhonored, **declared(operation.access)}
