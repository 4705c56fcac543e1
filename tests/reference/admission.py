"""What the API server does to a pod at its creation, as far as placing depends on it."""

from fractions import Fraction
from functools import reduce

from tests.reference.resources import Amounts, amounts, larger, plus
from tests.reference.view import (
    PREFERRED,
    REQUIRED,
    Labels,
    Manifest,
    affinity_of,
    labels_of,
    spec_of,
)


def admit(pod: Manifest) -> Manifest:
    """The pod with `matchLabelKeys` and `mismatchLabelKeys` merged into its selectors."""
    spec = dict(spec_of(pod))
    affinity = dict(spec.get("affinity") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity_of(pod, kind):
            affinity[kind] = admit_terms(affinity_of(pod, kind), labels_of(pod))
    if affinity:
        spec["affinity"] = affinity
    return pod | {"spec": spec}


def admit_terms(affinity: Manifest, labels: Labels) -> Manifest:
    admitted = dict(affinity)
    for variant in REQUIRED:
        if affinity.get(variant):
            admitted[variant] = [merge_label_keys(term, labels) for term in affinity[variant]]
    if affinity.get(PREFERRED):
        admitted[PREFERRED] = [
            each | {"podAffinityTerm": merge_label_keys(each["podAffinityTerm"], labels)}
            for each in affinity[PREFERRED]
        ]
    return admitted


def merge_label_keys(term: Manifest, labels: Labels) -> Manifest:
    """Keys that the pod lacks are ignored; without a selector there is nothing to merge into."""
    selector = term.get("labelSelector")
    if selector is None:
        return term
    merged = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or []
        if key in labels
    ]
    expressions = selector.get("matchExpressions") or []
    fresh = [each for each in merged if each not in expressions]
    if not fresh:
        return term
    return term | {"labelSelector": selector | {"matchExpressions": expressions + fresh}}


# Runtime classes


def merge_class(pod: Manifest, runtime_class: Manifest | None) -> Manifest | str:
    """The pod with what its runtime class adds, or the part of the spec for which it is refused."""
    spec, declared = dict(spec_of(pod)), runtime_class or {}
    fixed = (declared.get("overhead") or {}).get("podFixed")
    if spec.get("overhead") is not None and amounts(spec["overhead"]) != amounts(fixed):
        return "spec.overhead"
    scheduling, own = declared.get("scheduling") or {}, spec.get("nodeSelector") or {}
    selector = scheduling.get("nodeSelector") or {}
    for key, value in selector.items():
        if key in own and own[key] != value:
            return f"spec.nodeSelector[{key}]"
    tolerations = [*(spec.get("tolerations") or []), *(scheduling.get("tolerations") or [])]
    merged = {
        "overhead": fixed,
        "nodeSelector": own | selector,
        "tolerations": without_redundant(tolerations) if "scheduling" in declared else tolerations,
    }
    return pod | {"spec": spec | {name: value for name, value in merged.items() if value}}


def without_redundant(tolerations: list[Manifest]) -> list[Manifest]:
    """Leave out tolerations that another one covers; the first stays of those that say the same."""
    distinct = [each for i, each in enumerate(tolerations) if each not in tolerations[:i]]
    return [
        each
        for each in distinct
        if not any(other != each and is_superset(other, each) for other in distinct)
    ]


def is_superset(one: Manifest, other: Manifest) -> bool:
    """Whether a toleration tolerates whatever another one does, found by trying."""
    return all(tolerates(one, taint) for taint in TAINTS if tolerates(other, taint))


TAINTS = [
    (key, value, effect, second)
    for key in ("dedicated", "gpu", "other")
    for value in ("a", "b", "other")
    for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
    for second in range(4)
]
"""Taints, each at a second after it came."""


def tolerates(toleration: Manifest, taint: tuple[str, str, str, int]) -> bool:
    """Whether a taint is tolerated so long."""
    key, value, effect, second = taint
    if toleration.get("key") and toleration["key"] != key:
        return False
    if toleration.get("operator") != "Exists" and toleration.get("value") != value:
        return False
    if toleration.get("effect") and toleration["effect"] != effect:
        return False
    return effect != "NoExecute" or second <= toleration.get("tolerationSeconds", 3)


# Limit ranges


def with_item_defaults(item: Manifest) -> Manifest:
    """The item of a limit range with the defaults that follow from its bounds."""
    if item["type"] != "Container":
        return item
    limits, requests = dict(item.get("default") or {}), dict(item.get("defaultRequest") or {})
    for resource, most in (item.get("max") or {}).items():
        limits.setdefault(resource, most)
    for source in (limits, item.get("min") or {}):
        for resource, amount in source.items():
            requests.setdefault(resource, amount)
    return item | {"default": limits, "defaultRequest": requests}


def with_container_defaults(pod: Manifest, limit_range: Manifest) -> Manifest:
    """The pod, of which every container states what the limit range has for those that do not."""
    items = [with_item_defaults(each) for each in limit_range["spec"]["limits"]]
    containers = [each for each in items if each["type"] == "Container"]
    spec = dict(spec_of(pod))
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [with_defaults(each, containers) for each in spec[field]]
    return pod | {"spec": spec}


def with_defaults(container: Manifest, items: list[Manifest]) -> Manifest:
    resources = {
        field: dict((container.get("resources") or {}).get(field) or {})
        for field in ("limits", "requests")
    }
    for item in items:
        for field, default in (("limits", "default"), ("requests", "defaultRequest")):
            for resource, amount in item[default].items():
                resources[field].setdefault(resource, amount)
    return container | {"resources": {name: each for name, each in resources.items() if each}}


def limit_violations(pod: Manifest, limit_range: Manifest) -> set[tuple[str, str, str]]:
    """Which bounds a pod exceeds: where, of which resource, and which bound."""
    found = set()
    for item in limit_range["spec"]["limits"]:
        for where, requests, limits in asked(pod, item["type"]):
            found |= {(where, *each) for each in exceeded(item, requests, limits)}
    return found


def asked(pod: Manifest, type_: str) -> list[tuple[str, Amounts, Amounts]]:
    spec = spec_of(pod)
    containers = [
        (f"spec.{field}[{index}]", each)
        for field in ("containers", "initContainers")
        for index, each in enumerate(spec.get(field) or [])
    ]
    if type_ == "Container":
        return [
            (path, stated(each, "requests"), stated(each, "limits")) for path, each in containers
        ]
    return [("spec.containers", total(spec, "requests"), total(spec, "limits"))]


def stated(owner: Manifest, field: str) -> Amounts:
    return amounts((owner.get("resources") or {}).get(field))


def total(spec: Manifest, field: str) -> Amounts:
    """The most that a pod asks for at any time; what it asks for as a whole takes the place of that."""
    inits = spec.get("initContainers") or []
    sidecars = [each.get("restartPolicy") == "Always" for each in inits]
    phases = [
        [*(each for each, stays in zip(inits[:i], sidecars, strict=False) if stays), inits[i]]
        for i in range(len(inits))
    ]
    running = [each for each, stays in zip(inits, sidecars, strict=True) if stays]
    phases.append(running + spec["containers"])
    sums = [reduce(plus, (stated(each, field) for each in phase), {}) for phase in phases]
    return larger(*sums) | stated(spec, field)


def exceeded(item: Manifest, requests: Amounts, limits: Amounts) -> set[tuple[str, str]]:
    least, most = amounts(item.get("min")), amounts(item.get("max"))
    ratios = amounts(item.get("maxLimitRequestRatio"))
    infinite = Fraction(10**30)
    return {
        *(
            (resource, "minimum")
            for resource, bound in least.items()
            if min(requests.get(resource, -1), limits.get(resource, infinite)) < bound
        ),
        *(
            (resource, "maximum")
            for resource, bound in most.items()
            if max(limits.get(resource, infinite), requests.get(resource, 0)) > bound
        ),
        *(
            (resource, "ratio")
            for resource, bound in ratios.items()
            if not requests.get(resource)
            or not limits.get(resource)
            or limits[resource] / requests[resource] > bound
        ),
    }
