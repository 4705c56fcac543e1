"""Lines of NDJSON that delete an object: `{"delete": {"kind": "Pod", "metadata": {…}}}`."""

import re

import msgspec

from service.api.http.body import converted
from service.api.openapi.resources import RESOURCES
from service.model.errors import FieldError, InvalidManifest
from service.model.json_and_patches.strict_json import decode_strict
from service.model.manifests.manifest import DEFAULT_NAMESPACE
from service.scheduler.protocol.intents import Deletion, Preconditions

_BEGINS = re.compile(rb'\s*\{\s*"delete"\s*:')
_NAMESPACED = {resource.kind: resource.namespaced for resource in RESOURCES}


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Deleted(msgspec.Struct, frozen=True):
    kind: str
    metadata: _Metadata


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    delete: _Deleted


def parse_deletion(line: bytes) -> Deletion | None:
    """The deletion that a line asks for; None if its first member is not `delete`.

    The object stands there as a manifest, of which only kind, name, namespace, uid and
    resourceVersion are read.

    Raises:
        MalformedJSON: the line is no JSON that the server reads.
        InvalidManifest: it does not name an object, or has other members beside `delete`.
    """
    if _BEGINS.match(line) is None:
        return None
    asked = converted(decode_strict(line), _Line).delete
    if asked.kind not in _NAMESPACED:
        raise InvalidManifest(
            [FieldError("delete.kind", "is not a kind that is stored", asked.kind)]
        )
    metadata = asked.metadata
    return Deletion(
        kind=asked.kind,
        namespace=(metadata.namespace or DEFAULT_NAMESPACE) if _NAMESPACED[asked.kind] else "",
        name=metadata.name,
        preconditions=Preconditions(
            uid=metadata.uid or None, resource_version=metadata.resource_version or None
        ),
    )
