"""Quantities and what pods request, in exact fractions; rounding up happens once per pod."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil

from tests.reference.view import Manifest, spec_of, status_of

QUANTITY = re.compile(r"([+-]?[0-9.]+)([eE][+-]?[0-9]+|[A-Za-z]*)")
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
POD_LEVEL = ("cpu", "memory")
DEFAULT_REQUESTS = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 1024 * 1024)}
"""What a container without a request counts in NodeResourcesFit's score."""

OLDEST = "1.35"

Amounts = dict[str, Fraction]
Whole = dict[str, int]


@lru_cache(maxsize=10_000)
def quantity(text: str | float) -> Fraction:
    """`1.5`, `100m`, `2Gi`, `1e9`, …"""
    found = QUANTITY.fullmatch(str(text))
    assert found, text
    number, suffix = found.groups()
    if suffix in DECIMAL:
        return Fraction(number) * Fraction(10) ** DECIMAL[suffix]
    if suffix in BINARY:
        return Fraction(number) * 1024 ** BINARY[suffix]
    return Fraction(number + suffix)


def amounts(quantities: Manifest | None) -> Amounts:
    return {name: quantity(each) for name, each in (quantities or {}).items()}


def whole(sums: Amounts) -> Whole:
    """Rounded up: cpu to millis, everything else to units."""
    return {name: ceil(each * 1000 if name == "cpu" else each) for name, each in sums.items()}


def plus(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, Fraction()) + other.get(name, Fraction()) for name in one | other}


def larger(*several: Amounts) -> Amounts:
    names = {name for each in several for name in each}
    return {name: max(each[name] for each in several if name in each) for name in names}


def requests_of(owner: Manifest) -> Amounts:
    """Return the requests of a container, a container status or a pod spec."""
    return amounts((owner.get("resources") or {}).get("requests"))


def status_of_container(pod: Manifest, container: Manifest) -> Manifest:
    fields = ("containerStatuses", "initContainerStatuses")
    both = [each for field in fields for each in status_of(pod).get(field) or []]
    return next((each for each in both if each.get("name") == container.get("name")), {})


def is_infeasible(pod: Manifest) -> bool:
    """The first condition of that type decides."""
    conditions = status_of(pod).get("conditions") or []
    pending = next((each for each in conditions if each["type"] == "PodResizePending"), {})
    return pending.get("reason") == "Infeasible"


def is_sidecar(container: Manifest) -> bool:
    return container.get("restartPolicy") == "Always"


Own = Callable[[Manifest], Amounts]
"""What one container counts."""


def largest_of(pod: Manifest) -> Own:
    """Up to 1.36: of each container the largest of what is asked, in use and allocated."""
    ordinary = [each for each in spec_of(pod).get("initContainers") or [] if not is_sidecar(each)]

    def own(container: Manifest) -> Amounts:
        asked, status = requests_of(container), status_of_container(pod, container)
        if container in ordinary or status.get("resources") is None:
            return asked
        held = larger({}, requests_of(status), amounts(status.get("allocatedResources")))
        return held if is_infeasible(pod) else larger(asked, held)

    return own


def allocated_to(pod: Manifest) -> Own:
    def own(container: Manifest) -> Amounts:
        given = status_of_container(pod, container).get("allocatedResources")
        if given is not None:
            return amounts(given)
        return {} if is_infeasible(pod) else requests_of(container)

    return own


def used_by(pod: Manifest) -> Own:
    def own(container: Manifest) -> Amounts:
        used = (status_of_container(pod, container).get("resources") or {}).get("requests")
        return allocated_to(pod)(container) if used is None else amounts(used)

    return own


def summed(pod: Manifest, own: Own, missing: Amounts) -> Amounts:
    """What the containers of a pod need together at most, one after the other and beside sidecars."""
    running: Amounts = {}
    for container in spec_of(pod).get("containers") or []:
        running = plus(running, missing | own(container))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec_of(pod).get("initContainers") or []:
        asked = missing | own(container)
        if is_sidecar(container):
            running, sidecars = plus(running, asked), plus(sidecars, asked)
            starting = larger(starting, sidecars)
        else:
            starting = larger(starting, plus(sidecars, asked))
    return larger(running, starting)


def pod_amounts(
    pod: Manifest, *, placed: bool, missing: Amounts, kubernetes: str = OLDEST, quota: bool = False
) -> Amounts:
    """All requests of a pod; `missing` stands in, container by container, for absent ones.

    Quotas do not see what the status says of the pod as a whole.
    """
    status = status_of(pod) if placed else {}
    reads_level = kubernetes != OLDEST and not quota
    used, given = status.get("resources"), status.get("allocatedResources")
    if not placed:
        total = summed(pod, requests_of, missing)
    elif kubernetes in (OLDEST, "1.36"):
        total = summed(pod, largest_of(pod), missing)
    else:
        several = [] if is_infeasible(pod) else [summed(pod, requests_of, missing)]
        if reads_level and used and used.get("requests") is not None and given is not None:
            several += [amounts(given), amounts(used["requests"])]
        else:
            several += [summed(pod, own, missing) for own in (allocated_to(pod), used_by(pod))]
        total = larger(*several)
    level = pod_level(requests_of(spec_of(pod)))
    if level and reads_level and used is not None:
        held = pod_level(larger(amounts(used.get("requests")), amounts(given)))
        now = held if is_infeasible(pod) else larger(level, held)
        level = now if kubernetes == "1.37" else {each: now.get(each, Fraction()) for each in level}
    return plus(total | level, amounts(spec_of(pod).get("overhead")))


def pod_level(requested: Amounts) -> Amounts:
    """What can be asked for the pod as a whole; it replaces what the containers add up to."""
    return {
        name: amount
        for name, amount in requested.items()
        if name in POD_LEVEL or name.startswith("hugepages-")
    }


def requests(pod: Manifest, *, placed: bool = False, kubernetes: str = OLDEST) -> Whole:
    return whole(pod_amounts(pod, placed=placed, missing={}, kubernetes=kubernetes))


def nonzero_requests(pod: Manifest, *, placed: bool = False, kubernetes: str = OLDEST) -> Whole:
    """Requests for scoring: a container's absent cpu or memory counts a small default.

    A placed pod with pod-level requests gets the default only for what no level mentions.
    """
    missing = DEFAULT_REQUESTS
    if placed and pod_level(requests_of(spec_of(pod))):
        mentioned = pod_amounts(pod, placed=True, missing={}, kubernetes=kubernetes)
        missing = {name: each for name, each in missing.items() if name not in mentioned}
    return whole(pod_amounts(pod, placed=placed, missing=missing, kubernetes=kubernetes))


def without_pod_level(pod: Manifest) -> Manifest:
    """The pod as kube-scheduler's code scores its fit."""
    spec = {name: each for name, each in spec_of(pod).items() if name != "resources"}
    return pod | {"spec": spec}
