"""Filters of lists: label and field selectors, node, phase, and use of namespace selectors."""

import re
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from service.api.http.request import wrong_parameter
from service.model.core.primitives import LabelSelector, LabelSelectorRequirement, SelectorOperator
from service.model.core.selectors import matches
from service.model.pods.namespace_selectors import uses_namespace_selector
from service.model.selection.object_filters import FieldRequirement, ObjectFilter
from service.model.selection.selectable_fields import (
    NODE_NAME,
    OBJECT_FIELDS,
    PENDING,
    PHASE,
    Listed,
)

# Repetitions are possessive: in text such as `a in ( , , …`, each space could belong to the comma
# before or after it, and a backtracking match would try all combinations.
_KEY = r"[A-Za-z0-9./_-]++"
_VALUE = r"[A-Za-z0-9._-]*+"
_EQUALITY = re.compile(rf"({_KEY})\s*+(=|==|!=)\s*+({_VALUE})")
_SET = re.compile(rf"({_KEY})\s++(in|notin)\s*+\(\s*+({_VALUE}(?:\s*+,\s*+{_VALUE})*+)\s*+\)")
_PRESENCE = re.compile(rf"(!?)\s*+({_KEY})")
_FIELD = re.compile(r"([A-Za-z.]++)\s*+(=|==|!=)\s*+([^=!]*+)")
_BEFORE_COMMA = re.compile(r"((?:[^,()]++|\([^()]*+\)|[()])*+),")
"""Matches text up to a comma outside parentheses."""

_KINDS_WANTED = "needs `kind`, and kinds that all have the field"


class _About(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ListedEvent(Listed, frozen=True, rename="camel"):
    """The part of an event that filters read."""

    involved_object: _About = _About()
    reason: str = ""
    type: str = ""


_listed = msgspec.json.Decoder(Listed)
_listed_event = msgspec.json.Decoder(ListedEvent)


class Field(NamedTuple):
    """A field that selectors can name: how to read it as text, and which kinds have it."""

    read: Callable[[Listed], str]
    kinds: frozenset[str]


_EVENT = "Event"
_OF_EVENTS = frozenset({_EVENT})
_SHARED = ("metadata.name", "metadata.namespace")
"""The fields that events have in common with all other objects."""

FIELDS: Mapping[str, Field] = {
    **{
        name: Field(field.of_json, field.kinds | _OF_EVENTS if name in _SHARED else field.kinds)
        for name, field in OBJECT_FIELDS.items()
    },
    "involvedObject.kind": Field(attrgetter("involved_object.kind"), _OF_EVENTS),
    "involvedObject.namespace": Field(attrgetter("involved_object.namespace"), _OF_EVENTS),
    "involvedObject.name": Field(attrgetter("involved_object.name"), _OF_EVENTS),
    "involvedObject.uid": Field(attrgetter("involved_object.uid"), _OF_EVENTS),
    "reason": Field(attrgetter("reason"), _OF_EVENTS),
    "type": Field(attrgetter("type"), _OF_EVENTS),
}


def parse_filters(kind: str, parameters: Mapping[str, str]) -> ObjectFilter:
    """Build a list's filter from its query parameters.

    Raises:
        MalformedRequest: a selector cannot be parsed, or names an unknown field or value.
    """
    fields = parse_field_selector(parameters.get("fieldSelector", ""), {kind})
    if (node_name := parameters.get("nodeName")) is not None:
        fields = (*fields, FieldRequirement(NODE_NAME, node_name))
    if (phase := parameters.get("phase")) is not None:
        fields = (*fields, _phase_requirement(phase))
    return ObjectFilter(
        labels=parse_label_selector(parameters.get("labelSelector", "")),
        fields=fields,
        uses_namespace_selector=_uses_namespace_selector(parameters.get("uses")),
    )


def filter_of_bodies(kind: str, wanted: ObjectFilter) -> Callable[[bytes], bool] | None:
    """Return a predicate on encoded objects, or None if every object passes."""
    if wanted.asks_nothing:
        return None
    decoder: msgspec.json.Decoder[Any] = _listed_event if kind == _EVENT else _listed
    selector = wanted.labels
    fields = [
        (FIELDS[requirement.field].read, requirement.value, requirement.wanted)
        for requirement in wanted.fields
    ]

    def passes(body: bytes) -> bool:
        listed = decoder.decode(body)
        if selector is not None and not matches(selector, listed.metadata.labels or {}):
            return False
        if not all((read(listed) == value) is is_wanted for read, value, is_wanted in fields):
            return False
        return not wanted.uses_namespace_selector or (
            listed.spec is not None and uses_namespace_selector(listed.spec.affinity)
        )

    return passes


def parse_label_selector(text: str) -> LabelSelector | None:
    """Parse a label selector such as `app=web,tier!=test`; return None if it is empty.

    Raises:
        MalformedRequest: it cannot be parsed.
    """
    if not text.strip():
        return None
    return LabelSelector(
        match_expressions=tuple(
            _requirement(part.strip(), text) for part in _BEFORE_COMMA.findall(f"{text},")
        )
    )


def _requirement(part: str, text: str) -> LabelSelectorRequirement:
    operator: SelectorOperator
    if match := _EQUALITY.fullmatch(part):
        operator = "NotIn" if match[2] == "!=" else "In"
        return LabelSelectorRequirement(key=match[1], operator=operator, values=(match[3],))
    if match := _SET.fullmatch(part):
        operator = "In" if match[2] == "in" else "NotIn"
        values = tuple(value.strip() for value in match[3].split(","))
        return LabelSelectorRequirement(key=match[1], operator=operator, values=values)
    if match := _PRESENCE.fullmatch(part):
        operator = "DoesNotExist" if match[1] else "Exists"
        return LabelSelectorRequirement(key=match[2], operator=operator)
    raise wrong_parameter("labelSelector", "cannot be read as a label selector", text)


def parse_field_selector(text: str, kinds: Collection[str]) -> tuple[FieldRequirement, ...]:
    """Parse a field selector such as `spec.nodeName=n1,status.phase!=Failed` for some kinds.

    Raises:
        MalformedRequest: it cannot be parsed, or names a field that one of the kinds lacks.
    """
    if not text.strip():
        return ()
    return tuple(_field_requirement(part.strip(), kinds, text) for part in text.split(","))


def _field_requirement(part: str, kinds: Collection[str], text: str) -> FieldRequirement:
    match = _FIELD.fullmatch(part)
    if match is None:
        raise wrong_parameter("fieldSelector", "cannot be read as a field selector", text)
    field = FIELDS.get(match[1])
    if field is None or not field.kinds.issuperset(kinds):
        known = [name for name, candidate in FIELDS.items() if candidate.kinds.issuperset(kinds)]
        message = f"knows only {', '.join(known)} here" if known else _KINDS_WANTED
        raise wrong_parameter("fieldSelector", message, text)
    return FieldRequirement(match[1], match[3], match[2] != "!=")


def _phase_requirement(text: str) -> FieldRequirement:
    phases = (PENDING, "Running", "Succeeded", "Failed", "Unknown")
    if text not in phases:
        raise wrong_parameter("phase", f"has to be one of {', '.join(phases)}", text)
    return FieldRequirement(PHASE, text)


def _uses_namespace_selector(text: str | None) -> bool:
    if text not in (None, "namespaceSelector"):
        raise wrong_parameter("uses", "has to be namespaceSelector", text or "")
    return text is not None
