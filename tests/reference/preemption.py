"""DefaultPreemption: whom to remove from which node so that a pod fits, tried out node by node."""

from collections.abc import Iterable
from copy import copy
from typing import Any

from tests.reference import node_plugins
from tests.reference.pipeline import evaluate_view, filters_of
from tests.reference.selectors import is_empty_selector, selector_matches
from tests.reference.view import (
    Manifest,
    Verdict,
    View,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    priority_of,
    spec_of,
    status_of,
)

NEVER = "preemption: not eligible due to preemptionPolicy=Never."
UNDER_WAY = "preemption: not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
RELATIONS = ("VolumeRestrictions", "PodTopologySpread", "InterPodAffinity")
"""The filters for which all nodes matter, and not one alone."""
OFFSET = 2**31

Answer = dict[str, Any]


def evaluate_preemption(view: View, pod: Manifest, budgets: list[Manifest]) -> Answer:
    """The answer of `evaluate_view`, and whom to evict if the pod fits nowhere."""
    answer = evaluate_view(view, pod)
    told = {"preemption": None, "why": None, "fullMessage": answer["message"]}
    if answer["feasible"] or not view.nodes:
        return answer | told
    message = answer["message"]
    if answer["prefilter"] is not None:
        return answer | told | {"fullMessage": f"{message} not found"}
    found = preempt(view, pod, budgets, answer)
    is_newest = view.settings.kubernetes == "1.37"
    if isinstance(found, str):
        claims = "" if is_newest else " no new claims to deallocate,"
        full = f"{message}{claims} {found}"
        return answer | told | {"why": found, "fullMessage": full}
    best = choose(found)
    names = {
        node: {"victims": [key_of(each) for each in victims], "pdbViolations": violations}
        for node, (victims, violations) in found.items()
    }
    if is_newest:
        victims, place = (
            len(found[best[0]][0]),
            f"found a potential placement for pod on node {best[0]}",
        )
        message += f" preemption: {place}, preempting {victims} victims"
    preemption = {"candidates": names, "chosen": best, "message": message}
    return answer | told | {"preemption": preemption, "fullMessage": message}


Candidate = tuple[list[Manifest], int]
"""Victims, the most important first, and how many of them violate a budget."""


def preempt(
    view: View, pod: Manifest, budgets: list[Manifest], answer: Answer
) -> dict[str, Candidate] | str:
    """The candidates by node, or why there are none."""
    tried = tried_nodes(view, answer)
    if spec_of(pod).get("preemptionPolicy") == "Never":
        return NEVER
    if is_under_way(view, pod, answer):
        return UNDER_WAY
    candidates: dict[str, Candidate] = {}
    reasons: list[str] = [NOT_HELPFUL] * (len(view.nodes) - len(tried))
    for name in tried:
        found = dry_run(view, pod, budgets, name)
        if isinstance(found, list):
            reasons += found
        else:
            candidates[name] = found
    if candidates:
        return candidates
    counted = sorted(f"{reasons.count(each)} {each}" for each in set(reasons))
    return f"preemption: 0/{len(view.nodes)} nodes are available: {', '.join(counted)}."


def tried_nodes(view: View, answer: Answer) -> list[str]:
    """The nodes whose first failing plugin says that removing pods may help."""
    names = answer.get("prefilterNodes", view.nodes)
    return [name for name in view.nodes if name in names and is_resolvable(answer, name)]


def is_resolvable(answer: Answer, node_name: str) -> bool:
    first = next(plugin for plugin, nodes in answer["filters"].items() if node_name in nodes)
    return node_name not in answer["unresolvable"].get(first, [])


def is_under_way(view: View, pod: Manifest, answer: Answer) -> bool:
    """Whether pods are just leaving the node that earlier preemption has nominated."""
    name = status_of(pod).get("nominatedNodeName")
    if name not in tried_nodes(view, answer):
        return False
    return any(
        priority_of(each) < priority_of(pod) and is_terminating(each) and is_preempted(each)
        for each in view.pods_on[name]
    )


def is_preempted(pod: Manifest) -> bool:
    conditions = status_of(pod).get("conditions") or []
    target = next((each for each in conditions if each["type"] == "DisruptionTarget"), {})
    return (target.get("status"), target.get("reason")) == ("True", "PreemptionByScheduler")


def dry_run(
    view: View, pod: Manifest, budgets: list[Manifest], node_name: str
) -> Candidate | list[str]:
    """The victims on a node and how many violate a budget, or why nothing helps there."""
    lower = [each for each in view.pods_on[node_name] if priority_of(each) < priority_of(pod)]
    lower.sort(key=importance)
    if not lower:
        return [NO_VICTIMS]
    kept = [each for each in view.pods_on[node_name] if each not in lower]
    rejected = rejection(with_only(view, node_name, kept), pod, node_name)
    if rejected is not None:
        return rejected.reasons
    violating = violating_pods(view, lower, budgets)
    others = [each for each in lower if each not in violating]
    victims = []
    for each in (*violating, *others):
        if rejection(with_only(view, node_name, [*kept, each]), pod, node_name) is None:
            kept.append(each)
        else:
            victims.append(each)
    return sorted(victims, key=importance), sum(each in violating for each in victims)


def with_only(view: View, node_name: str, kept: list[Manifest]) -> View:
    """The node without all others of its pods; by its code, the terminating ones lower counts, too."""
    twin = view.holding(node_name, kept)
    if view.settings.follows_code:
        gone = [each for each in view.pods_on[node_name] if each not in kept]
        twin.uncounted = {node_name: [each for each in gone if is_terminating(each)]}
    return twin


def rejection(view: View, pod: Manifest, node_name: str) -> Verdict | None:
    """Why the node is rejected, beside the pods that are nominated for it and without them."""
    beside = view.reserving(node_name, pod)
    told = None if beside is None else first_rejection(beside, pod, node_name)
    return told or first_rejection(view, pod, node_name)


def first_rejection(view: View, pod: Manifest, node_name: str) -> Verdict | None:
    """What the first filter says that rejects the node."""
    for plugin, judge in filters_of(view).items():
        seen = view if plugin in RELATIONS else alone(view, node_name)
        rejected: node_plugins.Rejections = judge(seen, pod)
        if node_name in rejected:
            return rejected[node_name]
    return None


def alone(view: View, node_name: str) -> View:
    """One node, as if there were no others."""
    twin = copy(view)
    twin.nodes = {node_name: view.nodes[node_name]}
    twin.pods_on = {node_name: view.pods_on[node_name]}
    return twin


def violating_pods(view: View, pods: Iterable[Manifest], budgets: list[Manifest]) -> list[Manifest]:
    """Return the pods, the most important first, for which a budget has nothing left.

    From 1.37 on, such a pod takes nothing of the budgets that follow by name.
    """
    stops = view.settings.kubernetes == "1.37"
    budgets = sorted(budgets, key=name_of) if stops else budgets
    left = [status_of(each).get("disruptionsAllowed", 0) for each in budgets]
    violating = []
    for pod in pods:
        exceeds = False
        for index, budget in enumerate(budgets):
            if protects(budget, pod) and not (stops and exceeds):
                left[index] -= 1
                exceeds |= left[index] < 0
        if exceeds:
            violating.append(pod)
    return violating


def protects(budget: Manifest, pod: Manifest) -> bool:
    selector = spec_of(budget).get("selector")
    return (
        bool(labels_of(pod))
        and namespace_of(budget) == namespace_of(pod)
        and selector is not None
        and not is_empty_selector(selector)
        and selector_matches(selector, labels_of(pod))
        and name_of(pod) not in (status_of(budget).get("disruptedPods") or {})
    )


def choose(candidates: dict[str, Candidate]) -> list[str]:
    """The nodes that all criteria leave."""
    left = sorted(candidates)
    for criterion in (
        lambda victims, violations: violations,
        lambda victims, _: priority_of(victims[0]),
        lambda victims, _: sum(priority_of(each) + OFFSET for each in victims),
        lambda victims, _: len(victims),
    ):
        least = min(criterion(*candidates[each]) for each in left)
        left = [each for each in left if criterion(*candidates[each]) == least]
    latest = max(earliest_start(candidates[each][0]) for each in left)
    return [each for each in left if earliest_start(candidates[each][0]) == latest]


def earliest_start(victims: list[Manifest]) -> str:
    """Among the victims of the highest priority."""
    highest = priority_of(victims[0])
    return min(started(each) for each in victims if priority_of(each) == highest)


def importance(pod: Manifest) -> tuple[int, str, str]:
    """Sorts the most important first."""
    return -priority_of(pod), started(pod), key_of(pod)


def started(pod: Manifest) -> str:
    """When it started, or else when it was made."""
    return status_of(pod).get("startTime") or pod["metadata"]["creationTimestamp"]


def key_of(pod: Manifest) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"
