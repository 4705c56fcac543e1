"""Validation of resources and quantities in containers, pods, and nodes.

Source: `pkg/apis/core/validation`, v1.35, except that pod-level requests may be below the
containers' sum and cpu may be finer than 1m.
"""

from service.model.core import names
from service.model.core.quantity import INT64_MAX, NANO, InvalidQuantity, amount, parse_quantity
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    TextCheck,
    anything,
    at,
    entries_of,
    key_at,
    record,
)

PAGES_NEED_COMPUTE = "must request cpu or memory, too, if it requests huge pages"
NATIVE_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
"""The resources that Kubernetes tracks natively on every node."""
OPPORTUNITY = frozenset({"opportunity.cpu", "opportunity.memory", "opportunity.nodes"})
"""The resources of opportunity cost: capacity that exclusive pods deny to other pods."""
COMPUTE = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
EPHEMERAL = frozenset(
    {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}
)
_CHARGED = COMPUTE | EPHEMERAL | OPPORTUNITY | {"pods", "count/pods"}
_PAGES = "hugepages-"
HUGE_PAGES = (_PAGES, "requests.hugepages-")


def quantity(value: object, path: str, problems: Problems) -> None:
    """Accept a quantity of at least 0."""
    try:
        nanos = parse_quantity(value if isinstance(value, str | int | float) else "")
    except InvalidQuantity as error:
        problems.add(path, str(error), value)
        return
    if nanos < 0:
        problems.add(path, "must be greater than or equal to 0", value)


def quantities(key: TextCheck, *, null_is_zero: bool = False) -> Rule:
    """Return a rule for a map from resource name to quantity.

    With `null_is_zero` a quantity may be null, which Kubernetes decodes as 0.
    """

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, dict):
            problems.add(path, "must be an object", value)
            return
        for resource, sent in value.items():
            message = key(resource)
            if message is not None:
                problems.add(key_at(path, resource), f"the resource {message}", resource)
            if sent is None and null_is_zero:
                continue
            quantity(sent, key_at(path, resource), problems)
            _fits(resource, sent, key_at(path, resource), problems)

    return rule


def nanos_or_none(value: object) -> int | None:
    """Return a quantity in nanos, or None if it is invalid."""
    try:
        return parse_quantity(value) if isinstance(value, str | int | float) else None
    except InvalidQuantity:
        return None


def _nanos_or_zero(value: object) -> int | None:
    return 0 if value is None else nanos_or_none(value)


def zeros_for_nulls(amounts: object) -> object:
    """Return quantities with zeros in place of nulls, or another value as it is."""
    if not isinstance(amounts, dict):
        return amounts
    return {name: "0" if amount is None else amount for name, amount in amounts.items()}


def _fits(resource: str, sent: object, path: str, problems: Problems) -> None:
    """Add an error if a quantity, in its resource's unit, exceeds 64 bits."""
    nanos = nanos_or_none(sent)
    if nanos is None:
        return
    if amount(resource, nanos) > INT64_MAX:
        problems.add(path, "must be at most 9223372036854775807m (a signed 64-bit integer)", sent)
    if is_extended(resource) and nanos % NANO:
        problems.add(path, "must be an integer", sent)


def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended one, with a domain prefix of its own."""
    return "/" in resource and "kubernetes.io/" not in resource


def is_pod_level(resource: str) -> bool:
    """Return whether a resource can be requested for the pod as a whole."""
    return resource in {"cpu", "memory"} or resource.startswith(_PAGES)


def is_charged(resource: str) -> bool:
    """Return whether quotas charge pods for a resource."""
    if resource.startswith(HUGE_PAGES) or resource in _CHARGED:
        return True
    return resource.startswith("requests.") and is_extended(resource.removeprefix("requests."))


def may_be_overcommitted(resource: str) -> bool:
    """Return whether limits on a resource may exceed its requests."""
    return not is_extended(resource) and not resource.startswith(_PAGES)


def container_resource(name: str) -> str | None:
    """Check the name of a resource that a container requests."""
    if name in NATIVE_RESOURCES or name.startswith(_PAGES):
        return names.label_key(name)
    if "/" not in name:
        return "must be a standard resource for containers, or have a domain: example.com/name"
    if name.startswith("requests."):
        return "must not start with requests."
    return names.label_key(name)


def pod_resource(name: str) -> str | None:
    """Check the name of a resource that is requested at pod level."""
    return None if is_pod_level(name) else "must be cpu, memory or hugepages-<size>"


def _requests_within_limits(resources: Record, path: str, problems: Problems) -> None:
    limits = entries_of(resources.get("limits"))
    for resource, sent in entries_of(resources.get("requests")).items():
        nanos, limit = _nanos_or_zero(sent), _nanos_or_zero(limits.get(resource))
        strict = not may_be_overcommitted(resource)
        where = key_at(at(path, "requests"), resource)
        if nanos is None:
            continue
        if resource not in limits:
            if strict:
                missing = key_at(at(path, "limits"), resource)
                problems.add(missing, "must be set for a resource that can't be overcommitted")
        elif limit is not None and strict and nanos != limit:
            problems.add(where, f"must be equal to the {resource} limit", sent)
        elif limit is not None and nanos > limit:
            problems.add(where, f"must be less than or equal to the {resource} limit", sent)


def _whole_pages(quantities: Record, path: str, problems: Problems) -> None:
    """Check that huge pages are requested as multiples of the size that their name states."""
    for resource, sent in quantities.items():
        nanos = nanos_or_none(sent)
        if not resource.startswith(_PAGES) or nanos is None:
            continue
        size = nanos_or_none(resource.removeprefix(_PAGES)) or 0
        is_whole = size > 0 and size % NANO == 0 and -(-nanos // NANO) % (size // NANO) == 0
        if not is_whole:
            problems.add(key_at(path, resource), f"must be a multiple of {resource}", sent)


def lacks_compute(*lists: Record) -> bool:
    """Return whether quantities by resource name have huge pages, but neither cpu nor memory."""
    resources = {resource for quantities in lists for resource in quantities}
    has_pages = any(resource.startswith(_PAGES) for resource in resources)
    return has_pages and resources.isdisjoint(("cpu", "memory"))


def _pages_of_requirements(resources: Record, path: str, problems: Problems) -> None:
    for field in ("requests", "limits"):
        _whole_pages(entries_of(resources.get(field)), at(path, field), problems)


def _pages_with_compute(resources: Record, path: str, problems: Problems) -> None:
    if lacks_compute(entries_of(resources.get("requests")), entries_of(resources.get("limits"))):
        problems.add(path, PAGES_NEED_COMPUTE)


def _no_claims(resources: Record, path: str, problems: Problems) -> None:
    if resources.get("claims") is not None:
        problems.add(at(path, "claims"), "can't be set for the pod as a whole")


def _requirements(key: TextCheck, *, pod_level: bool) -> Rule:
    level = _no_claims if pod_level else _pages_with_compute
    checks = (_requests_within_limits, _pages_of_requirements, level)
    amounts = quantities(key, null_is_zero=True)
    fields = {"requests": amounts, "limits": amounts, "claims": anything}
    return record(fields, also=checks)


def overhead(value: object, path: str, problems: Problems) -> None:
    """Accept a pod's overhead, which Kubernetes validates like the limits of a container."""
    CONTAINER_QUANTITIES(value, path, problems)
    _whole_pages(entries_of(value), path, problems)
    if lacks_compute(entries_of(value)):
        problems.add(path, PAGES_NEED_COMPUTE)


CONTAINER_RESOURCES = _requirements(container_resource, pod_level=False)
POD_RESOURCES = _requirements(pod_resource, pod_level=True)
CONTAINER_QUANTITIES = quantities(container_resource, null_is_zero=True)
NODE_RESOURCES = quantities(names.label_key)
