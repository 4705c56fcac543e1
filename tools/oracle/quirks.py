"""Known deviations of kube-scheduler's code from Kubernetes' documented rules.

Moorage has both, by a setting. A deviation is stated by rewriting a case: to the rewritten case,
kube-scheduler's code gives the answer that the documented rule gives to the original.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches

Case = dict[str, Any]
Rewrite = Callable[[Case], Case | None]

NO_NAMESPACE = "no-namespace"
"""Stands in a list that would be empty, and would so mean the pod's own namespace."""
SKIPPED = "nominated-anti-affinity-not-seen-after-skip"
"""The name of the deviation for the anti-affinity of nominated pods."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_POD_LEVEL = ("cpu", "memory")


def documented(case: Case) -> tuple[list[str], Case] | None:
    """Return the names of all deviations that concern a case and the case rewritten, or None."""
    names = []
    for name, rewrite in REWRITES.items():
        rewritten = rewrite(case)
        if rewritten is not None:
            names.append(name)
            case = rewritten
    return (names, case) if names else None


def without_nominated_terms(case: Case) -> Case | None:
    """Return a case without the required anti-affinity of nominated pods, or None if none has any.

    kube-scheduler does not see it if PreFilter of InterPodAffinity skips a pod, for which the
    placed pods alone decide.
    """
    rewritten = deepcopy(case)
    changed = False
    for pod in rewritten["pods"]:
        affinity = pod["spec"].get("affinity") or {}
        if not pod["spec"].get("nodeName") and affinity.get("podAntiAffinity"):
            affinity["podAntiAffinity"].pop(_REQUIRED, None)
            changed = True
    return rewritten if changed else None


def _with_listed_namespaces(case: Case) -> Case | None:
    """List the namespaces that the incoming pod's negative namespace selectors select.

    kube-scheduler also evaluates such a selector against an empty set of labels, which it matches.
    """
    rewritten = deepcopy(case)
    negative = [term for term in _terms_of(rewritten["pod"]) if _is_negative(term)]
    for term in negative:
        selected = _selected(case, term.pop("namespaceSelector"))
        term["namespaces"] = [*(term.get("namespaces") or ()), *selected] or [NO_NAMESPACE]
    return rewritten if negative else None


def _is_negative(term: Mapping[str, Any]) -> bool:
    selector = term.get("namespaceSelector") or {}
    asks = selector.get("matchExpressions") or selector.get("matchLabels")
    return bool(asks) and _selects(selector, {})


def _selected(case: Case, selector: Mapping[str, Any]) -> list[str]:
    metadata = [namespace["metadata"] for namespace in case["namespaces"]]
    return [item["name"] for item in metadata if _selects(selector, item.get("labels") or {})]


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    present = {name: value for name, value in selector.items() if value is not None}
    return matches(msgspec.convert(present, LabelSelector), labels)


def _terms_of(pod: Case) -> Iterator[dict[str, Any]]:
    affinity = pod["spec"].get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for terms in (affinity.get(kind) or {}).values():
            for term in terms or ():
                yield term.get("podAffinityTerm", term)


def _with_requests_in_containers(case: Case) -> Case | None:
    """Move pod-level requests into a container, where the score of NodeResourcesFit sees them."""
    resources = case["pod"]["spec"].get("resources") or {}
    asked = resources.get("requests") or {}
    moved = {name: value for name, value in asked.items() if name in _POD_LEVEL}
    if not moved:
        return None
    rewritten = deepcopy(case)
    spec = rewritten["pod"]["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    for number, container in enumerate(containers):
        given = moved if number == 0 else dict.fromkeys(moved, "0")
        own = container.get("resources") or {}
        limits = {k: v for k, v in (own.get("limits") or {}).items() if k not in moved}
        requests = {**(own.get("requests") or {}), **given}
        container["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}
    return rewritten


REWRITES: Mapping[str, Rewrite] = {
    "incoming-namespaceSelector-negative-matches-all": _with_listed_namespaces,
    "fit-score-ignores-pod-level-requests": _with_requests_in_containers,
}
"""The deviations by the names that conformance vectors give them."""
