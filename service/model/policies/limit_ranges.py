"""Applies LimitRanges to pods: default requests and limits of containers, and their bounds.

Source: `plugin/pkg/admission/limitranger`, `SetDefaults_LimitRangeItem` and the messages of both,
v1.35. `service.model.policies.limit_rules` has the validation rules.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from service.model.core.kind import KindSpec
from service.model.core.primitives import Partial, Quantities
from service.model.core.quantity import NANO, parse_quantity
from service.model.core.validators import entries_of, items_of, key_at
from service.model.pods.pod import Container, PodSpec
from service.model.pods.requests import exact_limits, exact_requests
from service.model.policies.limit_rules import CLAIM, CONTAINER, LIMIT_RANGE_SPEC, POD
from service.model.policies.quota import format_amount

Json = dict[str, object]
Stated = tuple[tuple[str, str | int | float], ...]


class LimitRangeItem(Partial, frozen=True, kw_only=True):
    """Defaults and bounds for one type of objects."""

    type: str
    """Container, Pod or PersistentVolumeClaim."""
    default: Quantities | None = None
    """The limits of containers that state none."""
    default_request: Quantities | None = None
    """The requests of containers that state none."""
    min: Quantities | None = None
    """The least that may be requested."""
    max: Quantities | None = None
    """The highest limit."""
    max_limit_request_ratio: Quantities | None = None
    """How many times the request a limit may be at most."""

    @property
    def limits(self) -> Quantities:
        """The limits of containers that state none: `default`, or `max` if absent."""
        return {**(self.max or {}), **(self.default or {})}

    @property
    def requests(self) -> Quantities:
        """The requests of containers that state none: the default, else the limit, else `min`."""
        return {**(self.min or {}), **self.limits, **(self.default_request or {})}


class LimitRangeSpec(Partial, frozen=True, kw_only=True):
    """What holds for the objects of the namespace."""

    limits: tuple[LimitRangeItem, ...] = ()
    """Defaults and bounds, by the type of objects."""


class LimitRangeBody(Partial, frozen=True, kw_only=True):
    """The fields of a limit range that admission reads."""

    spec: LimitRangeSpec = LimitRangeSpec()
    """What holds for the objects of the namespace."""


LIMIT_RANGE = KindSpec(
    kind="LimitRange",
    plural="limitranges",
    body=LimitRangeBody,
    fields={"spec": LIMIT_RANGE_SPEC},
    changed_by="configure",
    short_names=("limits",),
    description="Limit ranges: what containers of the namespace ask for that do not say it, and how "
    "much containers, pods and claims may ask for. They hold for objects that are created.",
    example={
        "metadata": {"name": "usual", "namespace": "shop"},
        "spec": {
            "limits": [
                {"type": "Container", "defaultRequest": {"cpu": "250m", "memory": "64Mi"}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}},
            ]
        },
    },
)


class ContainerDefaults(msgspec.Struct, frozen=True):
    """The default requests and limits for containers that state none."""

    limits: Stated
    requests: Stated

    def amend(self, spec: Json) -> None:
        """Apply the defaults to the containers of a valid spec, in place; idempotent."""
        for field in ("containers", "initContainers"):
            for entry in items_of(spec.get(field)):
                container = entries_of(entry)
                sent = entries_of(container.get("resources"))
                own = {name: entries_of(sent.get(name)) for name in ("limits", "requests")}
                full = {
                    "limits": dict(self.limits) | own["limits"],
                    "requests": dict(self.requests) | own["requests"],
                }
                if full != own:
                    container["resources"] = sent | {n: q for n, q in full.items() if q}


def defaults_of(body: LimitRangeBody) -> ContainerDefaults | None:
    """Return the defaults that a limit range sets on containers, or None."""
    items = [item for item in body.spec.limits if item.type == CONTAINER]
    limits = {name: sent for item in items for name, sent in item.limits.items()}
    requests = {name: sent for item in items for name, sent in item.requests.items()}
    if not limits and not requests:
        return None
    return ContainerDefaults(tuple(limits.items()), tuple(requests.items()))


def violations(spec: PodSpec, body: LimitRangeBody) -> list[str]:
    """Return an error message, with the pod's field, for each bound that a pod violates."""
    return [
        message
        for item in body.spec.limits
        for use in _uses(spec, item.type)
        for message in (*_too_little(use, item), *_too_much(use, item), *_too_far_apart(use, item))
    ]


def claim_violations(requests: Quantities, body: LimitRangeBody) -> list[str]:
    """Return an error message for each bound that a claim violates."""
    stated = _Stated(requests)
    use = _Use(CLAIM, "spec.resources.", stated, _Stated({}))
    messages: list[str] = []
    for item in body.spec.limits:
        if item.type == CLAIM:
            messages += _too_little(use, item)
            messages += _too_large(use, item)
    return messages


class _Stated:
    """Quantities in nanos, and as sent."""

    def __init__(self, sent: Quantities) -> None:
        self.nanos = {name: parse_quantity(text) for name, text in sent.items()}
        self.text = {name: str(text) for name, text in sent.items()}


class _Use(msgspec.Struct, frozen=True):
    """The requests and limits of a container, a pod, or a claim."""

    type: str
    path: str
    """The path of the container's or claim's resources, with a dot; empty for sums over a pod."""
    requests: _Stated
    limits: _Stated

    def told(self, field: str, resource: str, message: str) -> str:
        """Return a message prefixed with its field."""
        where = key_at(f"{self.path}{field}s", resource) if self.path else "spec.containers"
        return f"{where}: {message}"


def _uses(spec: PodSpec, type_: str) -> Iterator[_Use]:
    if type_ == CONTAINER:
        yield from _uses_of_containers("containers", spec.containers)
        yield from _uses_of_containers("initContainers", spec.init_containers)
    elif type_ == POD:
        alone = replace(spec, overhead=None)
        yield _Use(POD, "", _summed(exact_requests(alone)), _summed(exact_limits(alone)))


def _uses_of_containers(field: str, containers: Iterable[Container]) -> Iterator[_Use]:
    for index, container in enumerate(containers):
        requests = container.resources.requests if container.resources else None
        limits = container.resources.limits if container.resources else None
        path = f"spec.{field}[{index}].resources."
        yield _Use(CONTAINER, path, _Stated(requests or {}), _Stated(limits or {}))


def _summed(nanos: Mapping[str, int]) -> _Stated:
    return _Stated({name: format_amount(name, amount) for name, amount in nanos.items()})


def _too_little(use: _Use, item: LimitRangeItem) -> Iterator[str]:
    for name, sent in sorted((item.min or {}).items()):
        rule, bound = f"minimum {name} usage per {use.type} is {sent}", parse_quantity(sent)
        if name not in use.requests.nanos:
            yield use.told("request", name, f"{rule}.  No request is specified")
        elif use.requests.nanos[name] < bound:
            message = f"{rule}, but request is {use.requests.text[name]}"
            yield use.told("request", name, message)
        elif use.limits.nanos.get(name, bound) < bound:
            yield use.told("limit", name, f"{rule}, but limit is {use.limits.text[name]}")


def _too_much(use: _Use, item: LimitRangeItem) -> Iterator[str]:
    for name, sent in sorted((item.max or {}).items()):
        rule, bound = f"maximum {name} usage per {use.type} is {sent}", parse_quantity(sent)
        if name not in use.limits.nanos:
            yield use.told("limit", name, f"{rule}.  No limit is specified")
        elif use.limits.nanos[name] > bound:
            yield use.told("limit", name, f"{rule}, but limit is {use.limits.text[name]}")
        elif use.requests.nanos.get(name, bound) > bound:
            message = f"{rule}, but request is {use.requests.text[name]}"
            yield use.told("request", name, message)


def _too_large(use: _Use, item: LimitRangeItem) -> Iterator[str]:
    """Compare a claim's requests with the maximum, as claims have no limits."""
    for name, sent in sorted((item.max or {}).items()):
        rule, bound = f"maximum {name} usage per {use.type} is {sent}", parse_quantity(sent)
        if name not in use.requests.nanos:
            yield use.told("request", name, f"{rule}.  No request is specified")
        elif use.requests.nanos[name] > bound:
            message = f"{rule}, but request is {use.requests.text[name]}"
            yield use.told("request", name, message)


def _too_far_apart(use: _Use, item: LimitRangeItem) -> Iterator[str]:
    for name, sent in sorted((item.max_limit_request_ratio or {}).items()):
        rule = f"{name} max limit to request ratio per {use.type} is {sent}"
        request, limit = use.requests.nanos.get(name, 0), use.limits.nanos.get(name, 0)
        if not request:
            yield use.told("request", name, f"{rule}, but no request is specified or request is 0")
        elif not limit:
            yield use.told("limit", name, f"{rule}, but no limit is specified or limit is 0")
        elif limit * NANO > request * parse_quantity(sent):
            message = f"{rule}, but provided ratio is {limit / request:f}"
            yield use.told("limit", name, message)
