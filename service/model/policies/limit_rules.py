"""Validation of LimitRanges.

Source: `ValidateLimitRange`, v1.35, which checks a limit range after its bounds were filled in as
defaults.
"""

from collections.abc import Iterator, Mapping

from service.model.core import names
from service.model.core.quantity import NANO
from service.model.core.resources import (
    container_resource,
    may_be_overcommitted,
    nanos_or_none,
    quantities,
)
from service.model.core.validators import (
    Problems,
    Record,
    at,
    entries_of,
    items_of,
    key_at,
    list_of,
    record,
    text,
)

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_STORAGE = "storage"
_LOWER_THAN = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("min", "default"),
    ("defaultRequest", "default"),
    ("defaultRequest", "max"),
    ("default", "max"),
)
"""Pairs of fields; a quantity in the first must not exceed the one in the second."""

Nanos = Mapping[str, dict[str, int]]


def _type(name: str) -> str | None:
    if name in {CONTAINER, POD, CLAIM} or ("/" in name and names.label_key(name) is None):
        return None
    return f"must be {CONTAINER}, {POD} or {CLAIM}, or have a domain: example.com/name"


def _resources_fit_type(item: Record, path: str, problems: Problems) -> None:
    if item.get("type") not in (CONTAINER, POD):
        return
    for field in _QUANTITIES:
        for resource in entries_of(item.get(field)):
            message = container_resource(resource)
            if message is not None:
                where = key_at(at(path, field), resource)
                problems.add(where, f"the resource {message}", resource)


def _fields_fit_type(item: Record, path: str, problems: Problems) -> None:
    if item.get("type") == POD:
        for field in ("default", "defaultRequest"):
            if item.get(field):
                problems.add(at(path, field), "may not be specified when `type` is 'Pod'")
    bounds = entries_of(item.get("min")) | entries_of(item.get("max"))
    if item.get("type") == CLAIM and _STORAGE not in bounds:
        message = "either minimum or maximum storage value is required, but neither was provided"
        problems.add(path, message)


def _bounds_are_in_order(item: Record, path: str, problems: Problems) -> None:
    """Check the order of the stated bounds; defaults derived from them are then in order, too."""
    sent = {field: dict(_nanos(item, field)) for field in _QUANTITIES}
    for low, high in _LOWER_THAN:
        for resource, least in sent[low].items():
            if least > sent[high].get(resource, least):
                where = key_at(at(path, low), resource)
                problems.add(where, f"must not be greater than {high}")
    _ratios_are_possible(sent, path, problems)
    _strict_are_equal(item, sent, path, problems)


def _ratios_are_possible(sent: Nanos, path: str, problems: Problems) -> None:
    for resource, ratio in sent["maxLimitRequestRatio"].items():
        where = key_at(at(path, "maxLimitRequestRatio"), resource)
        low, high = sent["min"].get(resource), sent["max"].get(resource)
        if ratio < NANO:
            problems.add(where, "must be at least 1")
        elif low and high is not None and ratio * low > high * NANO:
            problems.add(where, "is greater than max/min")


def _strict_are_equal(item: Record, sent: Nanos, path: str, problems: Problems) -> None:
    """Check that resources that cannot be overcommitted have equal default requests and limits."""
    limits = sent["max"] if item.get("type") == CONTAINER else {}
    for resource, limit in (limits | sent["default"]).items():
        if sent["defaultRequest"].get(resource, limit) != limit and not may_be_overcommitted(
            resource
        ):
            where = key_at(at(path, "defaultRequest"), resource)
            problems.add(
                where, "must be equal to default for a resource that can't be overcommitted"
            )


def _nanos(item: Record, field: str) -> Iterator[tuple[str, int]]:
    for resource, sent in entries_of(item.get(field)).items():
        nanos = nanos_or_none(sent)
        if nanos is not None:
            yield resource, nanos


def _types_differ(spec: Record, path: str, problems: Problems) -> None:
    seen = set()
    for index, item in enumerate(items_of(spec.get("limits"))):
        type_ = entries_of(item).get("type")
        if isinstance(type_, str) and type_ in seen:
            problems.add(f"{at(path, 'limits')}[{index}].type", "is there already", type_)
        seen.add(type_ if isinstance(type_, str) else None)


_QUANTITIES = ("default", "defaultRequest", "min", "max", "maxLimitRequestRatio")

LIMIT_RANGE_SPEC = record(
    {
        "limits": list_of(
            record(
                {
                    "type": text(_type),
                    **{field: quantities(names.label_key) for field in _QUANTITIES},
                },
                required=("type",),
                closed=False,
                also=(_resources_fit_type, _fields_fit_type, _bounds_are_in_order),
            )
        )
    },
    required=("limits",),
    closed=False,
    also=(_types_differ,),
)
