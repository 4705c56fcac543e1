"""All plugins put together: the fields of a conformance vector's `expect`."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.reference import data, fit, interpod, node_plugins, spread, volumes
from tests.reference.admission import admit
from tests.reference.view import Manifest, View, spec_of

FILTERS: dict[str, Callable[[View, Manifest], node_plugins.Rejections]] = {
    "NodeUnschedulable": node_plugins.filter_unschedulable,
    "NodeName": node_plugins.filter_node_name,
    "TaintToleration": node_plugins.filter_taints,
    "NodeAffinity": node_plugins.filter_node_affinity,
    "DataAffinity": data.filter_data,
    "NodePorts": node_plugins.filter_ports,
    "NodeResourcesFit": fit.filter_fit,
    "VolumeRestrictions": volumes.filter_restrictions,
    "NodeVolumeLimits": volumes.filter_limits,
    "VolumeBinding": volumes.filter_binding,
    "VolumeZone": volumes.filter_zone,
    "PodTopologySpread": spread.filter_spread,
    "InterPodAffinity": interpod.filter_interpod,
}
"""The filters in their order: the first that rejects a node gives the reasons in the message."""


def filters_of(
    view: View,
) -> dict[str, Callable[[View, Manifest], node_plugins.Rejections]]:
    """The filters of the version that the cluster follows, in its order."""
    kubernetes, filters = view.settings.kubernetes, dict(FILTERS)
    if kubernetes == "1.37":
        filters = {"NodeName": filters.pop("NodeName"), **filters}
    if kubernetes != "1.35":
        filters["NodeDeclaredFeatures"] = node_plugins.filter_declared_features
    return filters


SCORES: dict[str, tuple[int, Callable[[View, Manifest, list[str]], node_plugins.Scores | None]]] = {
    "DataAffinity": (2, data.score_data),
    "ImageLocality": (1, node_plugins.score_images),
    "InterPodAffinity": (2, interpod.score_interpod),
    "NodeAffinity": (2, node_plugins.score_node_affinity),
    "NodeResourcesBalancedAllocation": (1, fit.score_balance),
    "NodeResourcesFit": (1, fit.score_fit),
    "PodTopologySpread": (2, spread.score_spread),
    "TaintToleration": (3, node_plugins.score_taints),
    "VolumeBinding": (1, volumes.score_storage),
}
"""Weight and function."""

UNREPORTED = {"DataAffinity", "VolumeBinding"}
"""Plugins that are never in `scoreSkipped`."""

CONFLICT = "pod affinity terms conflict"
NARROWED = "node(s) didn't satisfy plugin(s) [{}]"


def evaluate(
    config: Manifest,
    namespaces: Iterable[Manifest],
    nodes: Iterable[Manifest],
    pods: Iterable[Manifest],
    pod: Manifest,
    objects: Iterable[Manifest] = (),
) -> dict[str, Any]:
    """The full answer for `pod` on a cluster given as manifests; `pods` are those placed,
    `objects` what there is besides.

    With `preAdmission` in the config all pods are as submitted, and are admitted first.
    """
    if config.get("preAdmission"):
        pods, pod = [admit(each) for each in pods], admit(pod)
    return evaluate_view(View(config, namespaces, nodes, pods, objects), pod)


def evaluate_view(view: View, pod: Manifest) -> dict[str, Any]:
    return evaluate_settled(view, settled(view, pod))


def settled(view: View, pod: Manifest) -> Manifest:
    """The pod with each constraint `FallbackWhenFull` hard if that leaves a node, in their order."""
    for index, each in enumerate(spec_of(pod).get("topologySpreadConstraints") or []):
        if each.get("whenUnsatisfiable") == "FallbackWhenFull":
            hard = _constrained(pod, index, "DoNotSchedule")
            is_hard = evaluate_settled(view, _softened(hard))["feasible"]
            pod = hard if is_hard else _constrained(pod, index, "ScheduleAnyway")
    return pod


def _softened(pod: Manifest) -> Manifest:
    """The pod with each constraint that may fall back soft."""
    for index, each in enumerate(spec_of(pod)["topologySpreadConstraints"]):
        if each.get("whenUnsatisfiable") == "FallbackWhenFull":
            pod = _constrained(pod, index, "ScheduleAnyway")
    return pod


def _constrained(pod: Manifest, index: int, when: str) -> Manifest:
    constraints = list(spec_of(pod)["topologySpreadConstraints"])
    constraints[index] = constraints[index] | {"whenUnsatisfiable": when}
    return pod | {"spec": spec_of(pod) | {"topologySpreadConstraints": constraints}}


def evaluate_settled(view: View, pod: Manifest) -> dict[str, Any]:
    if not view.nodes:
        return answer(message="no nodes available to schedule pods")
    narrowing = narrowing_plugins(view, pod)
    rejection = data.prefilter(view, pod) or volumes.prefilter(view, pod)
    if narrowing and not set.intersection(*narrowing.values()):
        own = not narrowing.get("NodeAffinity", True)
        together = f"{NARROWED.format(' '.join(narrowing))} simultaneously"
        rejection = "NodeAffinity", CONFLICT if own else together
    if rejection is not None:
        return reject(view, *rejection)
    result = evaluate_nodes(view, pod, narrowing)
    if narrowing:
        result["prefilterNodes"] = sorted(set.intersection(*narrowing.values()))
    bindings = volumes.bindings_of(view, pod, result["feasible"])
    if bindings is not None:
        result["bindings"] = bindings
    return result


def narrowing_plugins(view: View, pod: Manifest) -> dict[str, set[str]]:
    """The plugins that leave only nodes of certain names, by name, and these nodes."""
    narrowing = {"NodeAffinity": node_plugins.named_nodes(pod)}
    if view.settings.kubernetes == "1.37" and spec_of(pod).get("nodeName"):
        narrowing["NodeName"] = {spec_of(pod)["nodeName"]}
    return {plugin: names for plugin, names in narrowing.items() if names is not None}


def reject(view: View, plugin: str, reason: str) -> dict[str, Any]:
    """The answer where a plugin rejects the pod before any node is looked at."""
    code = "UnschedulableAndUnresolvable"
    return answer(
        prefilter={"plugin": plugin, "code": code, "reasons": [reason]},
        message=f"0/{len(view.nodes)} nodes are available: {reason}.",
    )


def evaluate_nodes(view: View, pod: Manifest, narrowing: dict[str, set[str]]) -> dict[str, Any]:
    verdicts = verdicts_of(view, pod)
    for name in view.nodes:
        beside = view.reserving(name, pod)
        told = {} if beside is None else verdicts_of(beside, pod)
        if any(name in rejected for rejected in told.values()):
            verdicts = told_anew(filters_of(view), verdicts, name, told)
    rejected_nodes = {name for rejected in verdicts.values() for name in rejected}
    feasible = sorted(view.nodes.keys() - rejected_nodes)
    unresolvable = {
        plugin: sorted(name for name, verdict in rejected.items() if verdict.unresolvable)
        for plugin, rejected in verdicts.items()
    }
    return answer(
        filters={
            plugin: {name: verdict.reasons for name, verdict in rejected.items()}
            for plugin, rejected in verdicts.items()
        },
        unresolvable={plugin: names for plugin, names in unresolvable.items() if names},
        feasible=feasible,
        message=None if feasible else explain_refusal(view, verdicts, narrowing),
        **(score(view, pod, feasible) if feasible else {}),
    )


Verdicts = dict[str, node_plugins.Rejections]


def verdicts_of(view: View, pod: Manifest) -> Verdicts:
    filters = filters_of(view)
    return {plugin: rejected for plugin, f in filters.items() if (rejected := f(view, pod))}


def told_anew(filters: Iterable[str], verdicts: Verdicts, name: str, told: Verdicts) -> Verdicts:
    """The verdicts, with those of one node replaced."""
    answer: Verdicts = {}
    for plugin in filters:
        rejected = dict(verdicts.get(plugin, {}))
        rejected.pop(name, None)
        if name in told.get(plugin, {}):
            rejected[name] = told[plugin][name]
        if rejected:
            answer[plugin] = rejected
    return answer


def explain_refusal(
    view: View,
    verdicts: dict[str, node_plugins.Rejections],
    narrowing: dict[str, set[str]],
) -> str:
    """Each node contributes the reasons of its first failing plugin."""
    histogram: dict[str, int] = {}
    for name in view.nodes:
        if any(name not in names for names in narrowing.values()):
            reasons = [NARROWED.format(" ".join(narrowing))]
        else:
            reasons = next(each[name].reasons for each in verdicts.values() if name in each)
        for reason in reasons:
            histogram[reason] = histogram.get(reason, 0) + 1
    reasons = sorted(f"{count} {reason}" for reason, count in histogram.items())
    return f"0/{len(view.nodes)} nodes are available: {', '.join(reasons)}."


def score(view: View, pod: Manifest, feasible: list[str]) -> dict[str, Any]:
    given = {plugin: f(view, pod, feasible) for plugin, (_, f) in SCORES.items()}
    scores = {plugin: each for plugin, each in given.items() if each is not None}
    total = {
        name: sum(SCORES[plugin][0] * each[name] for plugin, each in scores.items())
        for name in feasible
    }
    return {
        "scores": scores,
        "scoreSkipped": sorted(given.keys() - scores.keys() - UNREPORTED),
        "total": total,
        "best": [name for name in feasible if total[name] == max(total.values())],
    }


def answer(**fields: Any) -> dict[str, Any]:
    """Every field of `expect`; what is not given is empty."""
    empty: dict[str, Any] = {
        "prefilter": None,
        "filters": {},
        "unresolvable": {},
        "feasible": [],
        "scores": {},
        "scoreSkipped": [],
        "total": {},
        "best": [],
        "message": None,
    }
    return empty | fields
