"""Quantities and what pods request, in exact fractions; rounding up happens once per pod."""

import re
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


def container_requests(pod: Manifest, container: Manifest, statuses: list[Manifest]) -> Amounts:
    """With an in-place resize status: the largest of what is asked, in use and allocated."""
    asked = requests_of(container)
    status = next((each for each in statuses if each.get("name") == container.get("name")), None)
    if status is None or status.get("resources") is None:
        return asked
    held = larger(requests_of(status), amounts(status.get("allocatedResources")))
    conditions = status_of(pod).get("conditions") or []
    infeasible = any(
        each["type"] == "PodResizePending" and each.get("reason") == "Infeasible"
        for each in conditions
    )
    return held if infeasible else larger(asked, held)


def pod_amounts(pod: Manifest, *, placed: bool, missing: Amounts) -> Amounts:
    """All requests of a pod; `missing` stands in, container by container, for absent ones."""
    status = status_of(pod) if placed else {}
    spec = spec_of(pod)

    def own(container: Manifest, statuses: str) -> Amounts:
        return missing | container_requests(pod, container, status.get(statuses) or [])

    running: Amounts = {}
    for container in spec.get("containers") or []:
        running = plus(running, own(container, "containerStatuses"))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            asked = own(container, "initContainerStatuses")
            running, sidecars = plus(running, asked), plus(sidecars, asked)
            starting = larger(starting, sidecars)
        else:
            asked = missing | requests_of(container)
            starting = larger(starting, plus(sidecars, asked))
    total = larger(running, starting) | pod_level_requests(pod)
    return plus(total, amounts(spec.get("overhead")))


def pod_level_requests(pod: Manifest) -> Amounts:
    """These replace what the containers add up to."""
    return {
        name: amount
        for name, amount in requests_of(spec_of(pod)).items()
        if name in POD_LEVEL or name.startswith("hugepages-")
    }


def requests(pod: Manifest, *, placed: bool = False) -> Whole:
    return whole(pod_amounts(pod, placed=placed, missing={}))


def nonzero_requests(pod: Manifest, *, placed: bool = False) -> Whole:
    """Requests for scoring: a container's absent cpu or memory counts a small default.

    A placed pod with pod-level requests gets the default only for what no level mentions.
    """
    missing = DEFAULT_REQUESTS
    if placed and pod_level_requests(pod):
        mentioned = pod_amounts(pod, placed=True, missing={})
        missing = {name: each for name, each in missing.items() if name not in mentioned}
    return whole(pod_amounts(pod, placed=placed, missing=missing))
