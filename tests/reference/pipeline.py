"""All plugins put together: the fields of a conformance vector's `expect`."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.reference import fit, interpod, node_plugins, spread
from tests.reference.admission import admit
from tests.reference.view import Manifest, View

FILTERS: dict[str, Callable[[View, Manifest], node_plugins.Rejections]] = {
    "NodeUnschedulable": node_plugins.filter_unschedulable,
    "NodeName": node_plugins.filter_node_name,
    "TaintToleration": node_plugins.filter_taints,
    "NodeAffinity": node_plugins.filter_node_affinity,
    "NodePorts": node_plugins.filter_ports,
    "NodeResourcesFit": fit.filter_fit,
    "PodTopologySpread": spread.filter_spread,
    "InterPodAffinity": interpod.filter_interpod,
}
"""In their order: the first that rejects a node gives the reasons in the message."""

SCORES: dict[str, tuple[int, Callable[[View, Manifest, list[str]], node_plugins.Scores | None]]] = {
    "ImageLocality": (1, node_plugins.score_images),
    "InterPodAffinity": (2, interpod.score_interpod),
    "NodeAffinity": (2, node_plugins.score_node_affinity),
    "NodeResourcesBalancedAllocation": (1, fit.score_balance),
    "NodeResourcesFit": (1, fit.score_fit),
    "PodTopologySpread": (2, spread.score_spread),
    "TaintToleration": (3, node_plugins.score_taints),
}
"""Weight and function."""

CONFLICT = "pod affinity terms conflict"
NARROWED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def evaluate(
    config: Manifest,
    namespaces: Iterable[Manifest],
    nodes: Iterable[Manifest],
    pods: Iterable[Manifest],
    pod: Manifest,
) -> dict[str, Any]:
    """The full answer for `pod` on a cluster given as manifests; `pods` are those placed.

    With `preAdmission` in the config all pods are as submitted, and are admitted first.
    """
    if config.get("preAdmission"):
        pods, pod = [admit(each) for each in pods], admit(pod)
    return evaluate_view(View(config, namespaces, nodes, pods), pod)


def evaluate_view(view: View, pod: Manifest) -> dict[str, Any]:
    if not view.nodes:
        return answer(message="no nodes available to schedule pods")
    candidates = node_plugins.named_nodes(pod)
    if candidates is not None and not candidates:
        rejection = {
            "plugin": "NodeAffinity",
            "code": "UnschedulableAndUnresolvable",
            "reasons": [CONFLICT],
        }
        message = f"0/{len(view.nodes)} nodes are available: {CONFLICT}."
        return answer(prefilter=rejection, message=message)
    result = evaluate_nodes(view, pod, candidates)
    if candidates is not None:
        result["prefilterNodes"] = sorted(candidates)
    return result


def evaluate_nodes(view: View, pod: Manifest, candidates: set[str] | None) -> dict[str, Any]:
    verdicts = {plugin: rejected for plugin, f in FILTERS.items() if (rejected := f(view, pod))}
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
        message=None if feasible else explain_refusal(view, verdicts, candidates),
        **(score(view, pod, feasible) if feasible else {}),
    )


def explain_refusal(
    view: View, verdicts: dict[str, node_plugins.Rejections], candidates: set[str] | None
) -> str:
    """Each node contributes the reasons of its first failing plugin."""
    histogram: dict[str, int] = {}
    for name in view.nodes:
        if candidates is not None and name not in candidates:
            reasons = [NARROWED]
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
        "scoreSkipped": sorted(given.keys() - scores.keys()),
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
