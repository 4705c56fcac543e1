"""Filters of lists: label and field selectors, node, phase, and the fields that pods use."""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from service.api.bodies.requests import wrong_parameter
from service.model.kept_kinds import KEPT_KINDS
from service.model.namespace_selectors import uses_namespace_selector
from service.model.objects import Affinity, LabelSelector, LabelSelectorRequirement
from service.model.selectors import matches

# Repetitions are possessive: spaces that could stand before or after each of many commas in
# `a in ( , , …` would be tried in all combinations.
_KEY = r"[A-Za-z0-9./_-]++"
_VALUE = r"[A-Za-z0-9._-]*+"
_EQUALITY = re.compile(rf"({_KEY})\s*+(=|==|!=)\s*+({_VALUE})")
_SET = re.compile(rf"({_KEY})\s++(in|notin)\s*+\(\s*+({_VALUE}(?:\s*+,\s*+{_VALUE})*+)\s*+\)")
_PRESENCE = re.compile(rf"(!?)\s*+({_KEY})")
_FIELD = re.compile(r"([A-Za-z.]++)\s*+(=|==|!=)\s*+([^=!]*+)")
_BEFORE_COMMA = re.compile(r"((?:[^,()]++|\([^()]*+\)|[()])*+),")
"""It matches text up to a comma that is outside of parentheses."""

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    unschedulable: bool | None = None
    affinity: Affinity | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class _About(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Listed(msgspec.Struct, frozen=True):
    """The part of a stored object that filters read."""

    metadata: _Metadata = _Metadata()
    spec: _Spec | None = None
    status: _Status | None = None


class ListedEvent(Listed, frozen=True, rename="camel"):
    """The part of an event that filters read."""

    involved_object: _About = _About()
    reason: str = ""
    type: str = ""


_listed = msgspec.json.Decoder(Listed)
_listed_event = msgspec.json.Decoder(ListedEvent)

Filter = Callable[[Listed], bool]


class Field(NamedTuple):
    """A field that field selectors can name: the kinds that have it, and how to read it as text."""

    read: Callable[[Listed], str]
    kinds: frozenset[str]


_ALL = frozenset({"Node", "Namespace", "Pod", "ResourceQuota", "PodGroup", "Event", *KEPT_KINDS})
_POD = frozenset({"Pod"})
_NAMESPACED = frozenset(
    {
        *("Pod", "ResourceQuota", "PodGroup", "Event"),
        *(each.kind for each in KEPT_KINDS.values() if each.namespaced),
    }
)
_EVENT = frozenset({"Event"})


def _phase(listed: Listed) -> str:
    """The pod's phase; a pod whose status was never sent is Pending, as in kube-apiserver."""
    return (listed.status and listed.status.phase) or "Pending"


FIELDS: Mapping[str, Field] = {
    "metadata.name": Field(attrgetter("metadata.name"), _ALL),
    "metadata.namespace": Field(attrgetter("metadata.namespace"), _NAMESPACED),
    "spec.nodeName": Field(lambda o: (o.spec and o.spec.node_name) or "", _POD),
    "spec.schedulerName": Field(
        lambda o: (o.spec and o.spec.scheduler_name) or "default-scheduler", _POD
    ),
    "spec.unschedulable": Field(
        lambda o: "true" if o.spec and o.spec.unschedulable else "false", frozenset({"Node"})
    ),
    "status.phase": Field(_phase, _POD),
    "involvedObject.kind": Field(attrgetter("involved_object.kind"), _EVENT),
    "involvedObject.namespace": Field(attrgetter("involved_object.namespace"), _EVENT),
    "involvedObject.name": Field(attrgetter("involved_object.name"), _EVENT),
    "involvedObject.uid": Field(attrgetter("involved_object.uid"), _EVENT),
    "reason": Field(attrgetter("reason"), _EVENT),
    "type": Field(attrgetter("type"), _EVENT),
}


def parse_filters(kind: str, parameters: Mapping[str, str]) -> Callable[[bytes], bool] | None:
    """The filter that the query parameters of a list ask for; None if everything passes.

    Raises:
        MalformedRequest: a selector cannot be read, or names an unknown field or value.
    """
    asked = [
        parse(parameters[name], kind) for name, parse in _PARSERS.items() if name in parameters
    ]
    filters = [each for each in asked if each is not None]
    if not filters:
        return None

    decoder: msgspec.json.Decoder[Any] = _listed_event if kind == "Event" else _listed

    def passes(body: bytes) -> bool:
        listed = decoder.decode(body)
        return all(each(listed) for each in filters)

    return passes


def parse_label_selector(text: str) -> LabelSelector | None:
    """Read a label selector in Kubernetes' syntax, such as `app=web,tier!=test`; None selects all.

    Raises:
        MalformedRequest: it cannot be read.
    """
    if not text.strip():
        return None
    return LabelSelector(
        match_expressions=tuple(
            _requirement(part.strip(), text) for part in _BEFORE_COMMA.findall(f"{text},")
        )
    )


def _label_filter(text: str, _kind: str) -> Filter | None:
    selector = parse_label_selector(text)
    if selector is None:
        return None
    return lambda listed: matches(selector, listed.metadata.labels or {})


def _requirement(part: str, text: str) -> LabelSelectorRequirement:
    operator: Operator
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


def _field_filter(text: str, kind: str) -> Filter | None:
    if not text.strip():
        return None
    parts = [_field_requirement(part.strip(), kind, text) for part in text.split(",")]
    return lambda listed: all((read(listed) == value) is wanted for read, value, wanted in parts)


def _field_requirement(
    part: str, kind: str, text: str
) -> tuple[Callable[[Listed], str], str, bool]:
    match = _FIELD.fullmatch(part)
    if match is None:
        raise wrong_parameter("fieldSelector", "cannot be read as a field selector", text)
    field = FIELDS.get(match[1])
    if field is None or kind not in field.kinds:
        known = ", ".join(name for name, each in FIELDS.items() if kind in each.kinds)
        raise wrong_parameter("fieldSelector", f"knows only {known} here", text)
    return field.read, match[3], match[2] != "!="


def _node_filter(text: str, _kind: str) -> Filter:
    return lambda listed: FIELDS["spec.nodeName"].read(listed) == text


def _phase_filter(text: str, _kind: str) -> Filter:
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    if text not in phases:
        raise wrong_parameter("phase", f"has to be one of {', '.join(phases)}", text)
    return lambda listed: _phase(listed) == text


def _uses_filter(text: str, _kind: str) -> Filter:
    if text != "namespaceSelector":
        raise wrong_parameter("uses", "has to be namespaceSelector", text)
    return _uses_namespace_selector


def _uses_namespace_selector(listed: Listed) -> bool:
    return listed.spec is not None and uses_namespace_selector(listed.spec.affinity)


_PARSERS: Mapping[str, Callable[[str, str], Filter | None]] = {
    "labelSelector": _label_filter,
    "fieldSelector": _field_filter,
    "nodeName": _node_filter,
    "phase": _phase_filter,
    "uses": _uses_filter,
}
