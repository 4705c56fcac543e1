"""The type with which each handler declares its operation, which stands beside it.

One value serves twice: requests are checked against it (access, media types, body limit, query
parameters), and the OpenAPI document is written from it. So the two cannot drift apart.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from service.api.openapi.rights_each_operation_needs import Access, declared

JSON = "application/json"
NDJSON = "application/x-ndjson"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
APPLY_JSON = "application/apply-patch+json"

WholeNumber = Annotated[int, msgspec.Meta(ge=0, lt=10**18)]
"""What a number in a query or a header has to be."""

DNSLabel = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A name of at most 63 characters, as clusters and namespaces have them (RFC 1123)."""

EntityTags = Annotated[
    str, msgspec.Meta(pattern=r'^\s*(\*|(W/)?"[!#-~]*"(\s*,\s*(W/)?"[!#-~]*")*)\s*$')
]
"""What If-Match and If-None-Match have to be: `*`, or quoted tags."""

PRECONDITIONS = ("If-Match", "If-None-Match", "If-Unmodified-Since")
"""Headers that make a write conditional; a write is refused if its operation does not declare them."""
UNHONORED = "unhonored"
"""The key in a handler's `opt` for the preconditions that its operation does not declare, as header bytes."""

BodyLimit = Literal["body", "placements", "simulations", "apply"]
"""The first part of the setting `…_bytes_max` that bounds an operation's body."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One query parameter or header; `type` is what its text has to be."""

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
    """Shown in each media type that has JSON, and for text where it is text."""
    examples: Mapping[str, Any] = {}
    """Other examples, of single media types."""
    named: Mapping[str, Any] = {}
    """Examples by name, where one does not show everything; the first is the most usual. Takes the place
    of `example`."""
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
    """Whether no request for it ever changes anything, so that its answer may be refused for lack of room."""
    tagged: bool = False
    """Whether its answers have an entity tag though they are not about a cluster; those that are have one."""
    decided: bool = False
    """Whether it needs the cluster's replica, so that it is forwarded to the worker that has it (P19)."""
    decided_with: Sequence[frozenset[str]] = ()
    """Names of query parameters: a request that has all of one set needs the replica, too."""
    warns: bool = False
    """Whether it reads manifests, or acts on stored ones, so that its answers may have warnings."""
    minimal: bool = False
    """Whether `Prefer: return=minimal` makes its answers shorter."""
    keeps_unknown: Sequence[Any] = ()
    """Types of its bodies whose unknown fields are kept or ignored, as in Kubernetes' own objects."""
    components: Mapping[str, Any] = {}
    """Types or schemas, by name, that its bodies only refer to, since msgspec has no type for them."""
    problems: Sequence[str] = ()
    """The codes that this operation can answer beside those that every operation can."""

    def names(self, place: Literal["query", "header"]) -> frozenset[str]:
        """The names of the parameters of one place."""
        return frozenset(p.name for p in self.parameters if p.place == place)


def as_ndjson(*values: Mapping[str, Any]) -> str:
    """Return values as NDJSON, as examples of it are shown."""
    return msgspec.json.Encoder().encode_lines(values).decode()


def described(operation: Operation) -> dict[str, Any]:
    """The `opt` of a Litestar handler that carries its operation."""
    honored = operation.names("header")
    unhonored = frozenset(name.lower().encode() for name in PRECONDITIONS if name not in honored)
    return {"operation": operation, UNHONORED: unhonored, **declared(operation.access)}
