"""What becomes of each field of a manifest, by the declarations that decode manifests.

A field is honoured if a type declares it that is decoded, ignored with a warning if
`service.model.core.field_warnings` declares it, and refused if its object has no unknown fields or
it is declared as refused. Other fields are either kept and returned, which `unread_fields.toml` has
to say, or undecided.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from service.model.core.field_warnings import IGNORED_FIELDS, IgnoredField
from service.model.pods.scheduling_groups import COMPOSITE_FIELDS
from tools.manifests import versions
from tools.manifests.places import ANY_KIND, PLACES, Place

Answer = Literal[
    "honoured", "refused", "honoured or not", "warned", "computed", "kept", "undecided"
]

KEPT = Path(__file__).with_name("unread_fields.toml")
REASONS = "reasons"
"""The table of `KEPT` that says why fields are kept, by `Type.field`."""

_BY_HAND: Mapping[str, frozenset[str]] = {
    "ObjectMeta": frozenset({"generateName", "ownerReferences"}),
    "OwnerReference": frozenset({"controller"}),
}
"""Fields that are read before a manifest is decoded to its type."""
_COMPUTED = (
    (ANY_KIND, "metadata.managedFields"),
    ("PodDisruptionBudget", "status"),
    ("ResourceQuota", "status"),
)
"""Fields that Moorage computes, so that it ignores them where they are sent."""


class Field(NamedTuple):
    """One field of Kubernetes and its answer."""

    kind: str
    type_name: str
    path: str
    versions: tuple[str, ...]
    """The versions of Kubernetes that have it, of those that were read."""
    answer: Answer
    warning: IgnoredField | None = None
    reason: str = ""
    """Why it is kept unread, where somebody may ask."""


class Kept(NamedTuple):
    """What `unread_fields.toml` says."""

    names: Mapping[str, Sequence[str]]
    """The fields of each type that are kept unread."""
    reasons: Mapping[str, str]
    """Why some of them are, by `Type.field`."""


def kept() -> Kept:
    """Read `unread_fields.toml`."""
    entries = tomllib.loads(KEPT.read_text())
    reasons = entries.pop(REASONS, {})
    return Kept(entries, reasons)


def fields(read: versions.Fields) -> Iterator[Field]:
    """Yield every field of the places with its answer."""
    entered = kept()
    around: dict[tuple[str, str], Field] = {}
    for place in PLACES:
        names = dict.fromkeys(
            name for types in read.values() for name in types.get(place.type_name, ())
        )
        for name in sorted(names):
            if (place.path, name) == ("", "metadata"):
                continue
            field = _field(place, name, read, entered, around)
            around[field.kind, field.path] = field
            yield field


def own(read: versions.Fields) -> list[str]:
    """Return the paths of the fields in these places that no version of Kubernetes has."""
    known = {
        (place.kind, place.path, name)
        for place in PLACES
        for types in read.values()
        for name in types.get(place.type_name, ())
    }
    return [
        f"{place.path}.{name}"
        for place in PLACES
        if place.decoded is not None and place.path
        for name in sorted(_names(place.decoded))
        if (place.kind, place.path, name) not in known
    ]


def stale(read: versions.Fields) -> list[str]:
    """Return entries of `unread_fields.toml` about fields that do not exist or are not kept."""
    entered = kept()
    decided = {(field.type_name, _name(field.path)): field.answer for field in fields(read)}
    stated = [(type_, name) for type_, names in entered.names.items() for name in names]
    explained = [tuple(field.rsplit(".", 1)) for field in entered.reasons]
    return [
        f"{type_name}.{name}"
        for type_name, name in (*stated, *explained)
        if decided.get((type_name, name)) != "kept"
    ]


def _field(
    place: Place,
    name: str,
    read: versions.Fields,
    entered: Kept,
    around: Mapping[tuple[str, str], Field],
) -> Field:
    path = f"{place.path}.{name}" if place.path else name
    having = tuple(
        version for version, types in read.items() if name in types.get(place.type_name, ())
    )
    warning = _warning(place.kind, path)
    answer = _answer(place, name, warning)
    if answer == "undecided" and name in entered.names.get(place.type_name, ()):
        answer = "kept"
    outer = around.get((place.kind, place.path.removesuffix("[]")))
    if answer == "undecided" and place.decoded is None and outer is not None:
        answer, warning = outer.answer, outer.warning
    reason = entered.reasons.get(f"{place.type_name}.{name}", "")
    return Field(place.kind, place.type_name, path, having, answer, warning, reason)


def _answer(place: Place, name: str, warning: IgnoredField | None) -> Answer:
    path = f"{place.path}.{name}" if place.path else name
    if warning is not None:
        return "honoured or not" if warning.setting else "warned"
    if (place.kind, path) in COMPOSITE_FIELDS:
        return "refused"
    if (place.kind, path) in _COMPUTED or (place.kind, place.path) in _COMPUTED:
        return "computed"
    if name in _BY_HAND.get(place.type_name, ()):
        return "honoured"
    if place.decoded is None:
        return "undecided"
    if name in _names(place.decoded):
        return "honoured"
    return "refused" if place.decoded.__struct_config__.forbid_unknown_fields else "undecided"


def _name(path: str) -> str:
    return path.rpartition(".")[2]


@cache
def _warnings() -> Mapping[tuple[str, str], IgnoredField]:
    """Return the warnings about all values of a field; those about keys of a map leave it honoured."""
    return {(ignored.kind, ignored.path): ignored for ignored in reversed(IGNORED_FIELDS)}


def _warning(kind: str, path: str) -> IgnoredField | None:
    return _warnings().get((kind, path))


@cache
def _names(decoded: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(decoded))
