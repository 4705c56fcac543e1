"""Schemas of the events of a watch.

OpenAPI 3.1 cannot describe event streams, so a stream is declared as text, and its `contentSchema`
describes the messages in it. The data of a message is JSON of one of these types.
"""

from typing import Annotated, Any, Literal

import msgspec

from service.api.resources.objects import types as object_types
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import Value
from service.model.registry.manifests import STORED_KINDS

_SCHEMAS = "#/components/schemas/"


class BookmarkMeta(Value, frozen=True, kw_only=True):
    """Up to where everything was sent."""

    resource_version: str
    """Everything up to this revision was sent."""


class Bookmark(Value, frozen=True, kw_only=True):
    """What stands in place of an object in a bookmark."""

    metadata: BookmarkMeta
    """Up to where everything was sent."""


class WatchClusterMeta(Value, frozen=True, kw_only=True):
    """The cluster's name, and when its configuration changed."""

    name: str
    """Name of the cluster."""
    resource_version: str
    """Revision of the change."""


class WatchCluster(Value, frozen=True, kw_only=True):
    """A cluster's configuration as of a change of it."""

    kind: Literal["Cluster"] = "Cluster"
    """What this is."""
    metadata: WatchClusterMeta
    """The cluster's name, and when its configuration changed."""
    config: ClusterConfig
    """Its settings; one that is absent has its default."""


def _event(kind: str, type_: type[msgspec.Struct]) -> type[msgspec.Struct]:
    described = msgspec.Meta(
        description="The object as of this revision; of a deleted one the last state."
    )
    explanation = msgspec.Meta(description="Kind of the object.")
    return msgspec.defstruct(
        f"{kind}WatchEvent",
        [("kind", Annotated[Literal[kind], explanation]), ("object", Annotated[type_, described])],
        namespace={"__doc__": f"The `data` of an event of a watch that is about a {kind}."},
        frozen=True,
        kw_only=True,
    )


_OBJECTS: dict[str, type[msgspec.Struct]] = {
    "Node": object_types.Node,
    "Namespace": object_types.Namespace,
    "Pod": object_types.Pod,
    "ResourceQuota": object_types.ResourceQuota,
    "PodGroup": object_types.PodGroup,
    **object_types.KEPT_TYPES,
    "Cluster": WatchCluster,
    "Bookmark": Bookmark,
}
assert {*STORED_KINDS} < {*_OBJECTS}

_EVENTS = {kind: _event(kind, type_) for kind, type_ in _OBJECTS.items()}

WATCH_EVENT = {
    "description": "The `data` of one event of a watch. That of an ERROR event is a Problem instead.",
    "oneOf": [{"$ref": f"{_SCHEMAS}{type_.__name__}"} for type_ in _EVENTS.values()],
    "discriminator": {
        "propertyName": "kind",
        "mapping": {kind: f"{_SCHEMAS}{type_.__name__}" for kind, type_ in _EVENTS.items()},
    },
}
"""The schema of the data of every event except errors; msgspec has no type for it."""


class WatchMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a watch, as Server-Sent Events have them."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")] | msgspec.UnsetType = msgspec.UNSET
    """The revision; absent in ERROR events."""
    event: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    """What happened to the object."""
    data: Annotated[
        str,
        msgspec.Meta(
            extra_json_schema={
                "contentMediaType": "application/json",
                "contentSchema": {
                    "anyOf": [{"$ref": f"{_SCHEMAS}WatchEvent"}, {"$ref": f"{_SCHEMAS}Problem"}]
                },
            }
        ),
    ]
    """A WatchEvent as JSON; of an ERROR event a Problem."""


class BindingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a stream of bindings, as Server-Sent Events have them."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")] | msgspec.UnsetType = msgspec.UNSET
    """The revision; absent in ERROR events."""
    event: Literal[
        "PLACED", "TERMINATING", "SUCCEEDED", "FAILED", "UNPLACED", "DELETED", "BOOKMARK", "ERROR"
    ]
    """The action of the record."""
    data: Annotated[
        str,
        msgspec.Meta(
            extra_json_schema={
                "contentMediaType": "application/json",
                "contentSchema": {
                    "anyOf": [
                        {"$ref": f"{_SCHEMAS}BindingChange"},
                        {"$ref": f"{_SCHEMAS}Problem"},
                    ]
                },
            }
        ),
    ]
    """A BindingChange as JSON; of an ERROR event a Problem."""


WATCH_TYPES: tuple[type[msgspec.Struct], ...] = (*_EVENTS.values(), WatchMessage)
"""The types of the messages of a watch."""


def _stream(description: str, media_type: str, part: str) -> Any:
    """Build the type of an endless text that consists of the given parts."""
    content = {"contentMediaType": media_type, "contentSchema": {"$ref": f"{_SCHEMAS}{part}"}}
    return Annotated[str, msgspec.Meta(description=description, extra_json_schema=content)]


WatchStream = _stream(
    "Messages in the form of Server-Sent Events, without an end.",
    "text/event-stream",
    "WatchMessage",
)
"""The body of a watch."""

BindingEventsText = _stream(
    "Messages in the form of Server-Sent Events, without an end.",
    "text/event-stream",
    "BindingMessage",
)
"""The body of a stream of bindings as events."""

BindingLinesText = _stream(
    "Records, one a line, without an end; the last one may be a Problem.",
    "application/x-ndjson",
    "BindingChange",
)
"""The body of a stream of bindings as lines."""
