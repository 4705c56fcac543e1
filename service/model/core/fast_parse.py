"""A fast parser for plain objects, which most objects of bulk loads are.

A plain object is compact JSON with its kind first, then metadata with only a name, namespace,
labels, and annotations, then the rest. Usually only the object's name is new, and the rest is byte
for byte equal to an object already found valid, so it is looked up instead of decoded. The
functions here return None for objects that are not plain. Those are parsed in full, which also
reports errors.
"""

import re
import sys
from functools import lru_cache

import msgspec

from service.model.core.metadata import (
    REQUIRED_NODE,
    Metadata,
    following,
    may_have_rules,
)
from service.model.core.names import (
    SUBDOMAIN,
    SUBDOMAIN_LENGTH_MAX,
    annotation_key,
    dns_label,
    dns_subdomain,
    label_key,
    label_value,
)
from service.model.core.strict_json import encode

_METADATA = b'"metadata":{'
SPEC, STATUS = b'"spec":', b'"status":'
BEFORE_SPEC, BEFORE_STATUS = b"}," + SPEC, b"}," + STATUS
_NAME = re.compile(rb'"name":"(%b)"' % SUBDOMAIN.encode())
_FIELDS = frozenset({"namespace", "labels", "annotations"})
_BYTES_MAX = 4 * 1024
_SHARED_BYTES_MAX = 1024
_BACKSLASH = ord("\\")
_IDENTITY = re.compile(rb',"uid":"([0-9a-f-]{36})","creationTimestamp":"([0-9TZ:-]{20})"')
_IDENTITY_LENGTH = len(',"uid":"","creationTimestamp":""') + 36 + 20

_HEADS = {
    template.format(kind).encode(): kind
    for kind in ("Pod", "Node")
    for template in (
        '{{"apiVersion":"v1","kind":"{}",',
        '{{"kind":"{}","apiVersion":"v1",',
        '{{"kind":"{}",',
    )
} | {b"{": ""}
Fields = dict[str, str | dict[str, str] | None]

_decode = msgspec.json.Decoder(Fields).decode


class Plain(msgspec.Struct, frozen=True, gc=False):
    """The unparsed parts of a plain object."""

    kind: str
    """The kind, or "" if the object does not state it."""
    metadata: bytes
    """The bytes between the braces of the metadata, assuming that it is a JSON object."""
    first: bytes
    """The key of the first member after the metadata: `SPEC` or `STATUS`."""
    body: bytes
    """The value of that first member, and all members after it."""

    @property
    def rest(self) -> bytes:
        """The members after the metadata."""
        return self.first + self.body


class _Shared(msgspec.Struct, frozen=True, gc=False):
    """Metadata without the name, shared by all pods of one owner."""

    namespace: str
    labels: dict[str, str]
    members: bytes
    """The encoded members, with a comma before each."""


def cut(raw: bytes) -> Plain | None:
    """Divide a plain pod or node into its parts, or return None.

    The first bytes that look like the end of the metadata are its end: inside a string the quotes
    would be escaped, and at a deeper level the part before them would not be a JSON object.
    """
    head, _, members = raw.partition(_METADATA)
    kind = _HEADS.get(head)
    if kind is None:
        return None
    first = SPEC
    metadata, separator, body = members.partition(BEFORE_SPEC)
    if not separator:
        first = STATUS
        metadata, separator, body = members.partition(BEFORE_STATUS)
    return Plain(kind, metadata, first, body[:-1]) if body[-1:] == b"}" else None


def cut_any(raw: bytes) -> Plain | None:
    """Divide a plain pod or node into its parts, even if it has white space, or return None."""
    return cut(raw) or cut(compact(raw))


def compact(raw: bytes) -> bytes:
    """Remove white space between the tokens of a document; text that is not JSON is unchanged."""
    if raw[:1] == b"{" and raw[-1:] == b"}" and raw.find(b'": ', 0, 64) < 0:
        return raw
    try:
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw


def plain_metadata(raw: bytes, namespace: str) -> Metadata | None:
    """Return valid metadata that has only a name, namespace, labels, and annotations, or None.

    Args:
        raw: the members of a JSON object, compact.
        namespace: the default namespace; "" for cluster-scoped kinds.
    """
    named = _NAME.match(raw)
    if named is None:
        return _in_any_order(raw, namespace)
    name = named[1].decode()
    if len(name) > SUBDOMAIN_LENGTH_MAX:
        return None
    return _named(name, raw[named.end() :], namespace)


def loaded_metadata(raw: bytes, namespace: str) -> Metadata | None:
    """Return metadata that Moorage rendered, if its identity has the usual form, or None."""
    at = len(raw) - _IDENTITY_LENGTH
    identity = _IDENTITY.fullmatch(raw, at) if at > 0 else None
    named = _NAME.match(raw) if identity is not None else None
    if identity is None or named is None:
        return None
    name, rest = named[1].decode(), raw[named.end() : at]
    created = sys.intern(identity[2].decode())  # all objects of a commit share it
    return _named(name, rest, namespace, identity[1].decode(), created)


def _named(
    name: str, rest: bytes, namespace: str, uid: str = "", created: str = ""
) -> Metadata | None:
    """Read metadata from a name and the bytes that follow it in the object, or return None."""
    if len(rest) <= _SHARED_BYTES_MAX:
        shared = _shared(rest, namespace)
    else:
        shared = _read_shared(rest, namespace)
    if shared is None:
        return None
    return Metadata(
        name=name,
        namespace=shared.namespace,
        labels=shared.labels,
        members=shared.members,
        uid=uid,
        created=created,
    )


def _read_shared(rest: bytes, namespace: str) -> _Shared | None:
    """Read plain metadata without its name (`,"labels":{…}`, or nothing), or return None."""
    if not rest:
        return _Shared(namespace, {}, _implied(namespace))
    fields = _decoded(b"{%b}" % rest[1:]) if rest[:1] == b"," else None
    return _valid(fields, rest, namespace) if fields else None


_shared = lru_cache(maxsize=4_096)(_read_shared)


def _in_any_order(raw: bytes, namespace: str) -> Metadata | None:
    fields = _decoded(b"{%b}" % raw) or {}
    name = fields.pop("name", None)
    shared = _valid(fields, following(fields), namespace)
    if shared is None or not isinstance(name, str) or dns_subdomain(name):
        return None
    return Metadata(
        name=name, namespace=shared.namespace, labels=shared.labels, members=shared.members
    )


def _implied(namespace: str) -> bytes:
    return b',"namespace":"%b"' % namespace.encode() if namespace else b""


def _decoded(raw: bytes) -> Fields | None:
    """Decode a small object of strings and string maps without repeated keys, or return None."""
    if len(raw) > _BYTES_MAX or (_BACKSLASH in raw and b"\\u0000" in raw):
        return None
    try:
        fields = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields if encode(fields) == raw else None


@lru_cache(maxsize=1_024)
def _are_labels(labels: tuple[tuple[str, str], ...]) -> bool:
    return not any(label_key(key) or label_value(value) for key, value in labels)


@lru_cache(maxsize=1_024)
def _are_keys(annotations: tuple[str, ...]) -> bool:
    """Return whether these are valid annotation keys that Moorage does not read.

    Cached by keys alone, since many objects share them and differ in their values.
    """
    return not any(map(annotation_key, annotations)) and not may_have_rules(annotations)


def _valid(fields: Fields, members: bytes, default: str) -> _Shared | None:
    """Return metadata without the name, or None if invalid; `members` is `fields` encoded."""
    if fields.get("creationTimestamp", "") is None:  # Go clients send null
        del fields["creationTimestamp"]
        members = following(fields)
    if not _FIELDS.issuperset(fields):
        return None
    namespace = fields.get("namespace", default)
    labels, annotations = fields.get("labels", {}), fields.get("annotations", {})
    if not (isinstance(labels, dict) and isinstance(annotations, dict)):
        return None
    if not isinstance(namespace, str) or ("namespace" in fields and not default):
        return None
    if "namespace" in fields and dns_label(namespace):
        return None
    if REQUIRED_NODE in annotations or not _are_keys(tuple(annotations)):
        return None
    if not _are_labels(tuple(labels.items())):
        return None
    return _Shared(
        namespace, labels, members if "namespace" in fields else members + _implied(default)
    )
