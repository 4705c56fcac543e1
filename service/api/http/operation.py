"""The type with which each handler declares its operation.

Requests are checked against the declaration (access, media types, body limit, query parameters), and
the OpenAPI document is made from it, so the two cannot drift apart.
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
"""A number in a query or a header."""

DNSLabel = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A name of at most 63 characters, as clusters and namespaces have them (RFC 1123)."""

EntityTags = Annotated[
    str, msgspec.Meta(pattern=r'^\s*(\*|(W/)?"[!#-~]*"(\s*,\s*(W/)?"[!#-~]*")*)\s*$')
]
"""The value of If-Match and If-None-Match: `*`, or quoted tags."""

PRECONDITIONS = ("If-Match", "If-None-Match", "If-Unmodified-Since")
"""Headers that make a write conditional; a write is refused if its operation does not declare them."""
UNHONORED = "unhonored"
"""The key in a handler's `opt` for preconditions that its operation does not declare, as bytes."""

BodyLimit = Literal["body", "placements", "simulations", "apply"]
"""The prefix of the setting `…_bytes_max` that limits an operation's body."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A query parameter or header; `type` is the type of its text."""

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
    """Shown for each JSON media type, or for text if it is text."""
    examples: Mapping[str, Any] = {}
    """Examples for single media types."""
    named: Mapping[str, Any] = {}
    """Named examples, used instead of `example` if one does not show everything; the most common comes first."""
    required: bool = True


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
    """Whether no request ever changes anything, so that an answer may be refused for lack of room."""
    tagged: bool = False
    """Whether answers have an entity tag although they are not about a cluster; those about one always do."""
    decided: bool = False
    """Whether the operation needs the cluster's replica and is forwarded to the worker that has it (P19)."""
    decided_with: Sequence[frozenset[str]] = ()
    """Sets of query parameters; a request with all parameters of one set needs the replica too."""
    warns: bool = False
    """Whether the operation reads manifests or acts on stored ones, so that answers may have warnings."""
    minimal: bool = False
    """Whether `Prefer: return=minimal` shortens answers."""
    keeps_unknown: Sequence[Any] = ()
    """Types in bodies whose unknown fields are kept or ignored, as in Kubernetes' own objects."""
    components: Mapping[str, Any] = {}
    """Types or schemas, by name, that bodies refer to although msgspec has no type for them."""
    problems: Sequence[str] = ()
    """Problem codes of this operation, in addition to those that every operation has."""

    def names(self, place: Literal["query", "header"]) -> frozenset[str]:
        """Return the names of the parameters in one place."""
        return frozenset(p.name for p in self.parameters if p.place == place)


def as_ndjson(*values: Mapping[str, Any]) -> str:
    """Return values as NDJSON, for examples."""
    return msgspec.json.Encoder().encode_lines(values).decode()


def described(operation: Operation) -> dict[str, Any]:
    """Return the `opt` of a Litestar handler for an operation."""
    honored = operation.names("header")
    unhonored = frozenset(name.lower().encode() for name in PRECONDITIONS if name not in honored)
    return {"operation": operation, UNHONORED: unhonored, **declared(operation.access)}
