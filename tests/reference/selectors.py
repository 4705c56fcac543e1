"""Label selectors, node selectors and tolerations, as Kubernetes v1.35 reads them."""

import re

from tests.reference.view import REQUIRED, Labels, Manifest, View, affinity_of, labels_of, name_of

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
INTEGER = re.compile(r"[+-]?[0-9]+")


def requirement_matches(requirement: Manifest, labels: Labels) -> bool:
    """NotIn and DoesNotExist match where the key is absent, In and Exists do not."""
    value = labels.get(requirement["key"])
    values = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(requirement)


def selector_matches(selector: Manifest | None, labels: Labels) -> bool:
    """No selector matches nothing; an empty one everything."""
    if selector is None:
        return False
    equalities = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in equalities) and all(
        requirement_matches(each, labels) for each in selector.get("matchExpressions") or []
    )


def is_empty_selector(selector: Manifest | None) -> bool:
    return selector is not None and not (
        selector.get("matchLabels") or selector.get("matchExpressions")
    )


def parse_integer(text: str) -> int | None:
    """A signed 64-bit decimal, else None."""
    if not INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def is_well_formed(requirement: Manifest) -> bool:
    """Values must be label values, and the one of Gt and Lt an integer, or the term is void."""
    values = requirement.get("values") or []
    if not all(LABEL_VALUE.fullmatch(value) and len(value) <= 63 for value in values):
        return False
    if requirement["operator"] in ("Gt", "Lt"):
        return len(values) == 1 and parse_integer(values[0]) is not None
    return True


def node_requirement_matches(requirement: Manifest, labels: Labels) -> bool:
    if requirement["operator"] not in ("Gt", "Lt"):
        return requirement_matches(requirement, labels)
    have = parse_integer(labels.get(requirement["key"], ""))
    want = int(requirement["values"][0])
    if have is None:
        return False
    return have > want if requirement["operator"] == "Gt" else have < want


def is_empty_term(term: Manifest) -> bool:
    return not (term.get("matchExpressions") or term.get("matchFields"))


def node_term_matches(term: Manifest, node: Manifest) -> bool:
    """A term with at least one requirement: all of them hold, and none is malformed."""
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    return (
        all(is_well_formed(each) for each in expressions)
        and all(node_requirement_matches(each, labels_of(node)) for each in expressions)
        and all(requirement_matches(each, {"metadata.name": name_of(node)}) for each in fields)
    )


def node_selector_matches(view: View, selector: Manifest, node: Manifest) -> bool:
    """Terms are ORed. An empty term matches nothing, or with MatchAll everything; null nothing."""
    for term in selector["nodeSelectorTerms"]:
        if term is None:
            continue
        if is_empty_term(term):
            if view.settings.empty_term_matches_all:
                return True
        elif node_term_matches(term, node):
            return True
    return False


def required_node_selectors(pod: Manifest) -> list[Manifest]:
    """The node selectors of both required variants; all of them have to match."""
    affinity = affinity_of(pod, "nodeAffinity")
    return [affinity[variant] for variant in REQUIRED if affinity.get(variant) is not None]


def node_affinity_matches(view: View, pod: Manifest, node: Manifest) -> bool:
    """`nodeSelector` and required node affinity, which both have to hold."""
    wanted = (pod.get("spec") or {}).get("nodeSelector") or {}
    return all(labels_of(node).get(key) == value for key, value in wanted.items()) and all(
        node_selector_matches(view, selector, node) for selector in required_node_selectors(pod)
    )


def tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    match toleration.get("operator") or "Equal":
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case "Exists":
            return True
    return False


def tolerations_of(pod: Manifest) -> list[Manifest]:
    return (pod.get("spec") or {}).get("tolerations") or []


def taints_of(node: Manifest) -> list[Manifest]:
    return (node.get("spec") or {}).get("taints") or []


def has_untolerated_taint(pod: Manifest, node: Manifest) -> bool:
    """Whether a node has a taint that keeps pods out, NoSchedule or NoExecute, and the pod does not tolerate it."""
    return any(
        taint["effect"] in ("NoSchedule", "NoExecute")
        and not any(tolerates(each, taint) for each in tolerations_of(pod))
        for taint in taints_of(node)
    )
