"""Prints placements and explanations for people: node scores and reasons for refusals."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from moorage.cli.render.output import Output

Explanation = Mapping[str, Any]

NODES_SHOWN = 10
"""The maximum number of feasible nodes listed, the best first. If more nodes than this were
refused, the refusals are grouped by reason."""

AVAILABILITY = re.compile(r"0/\d+ nodes are available: (?P<reasons>.+)\.", re.DOTALL)
NEXT_REASON = re.compile(r", (?=\d+ )")

HEADINGS = {
    "DynamicResources": "Devices",
    "ImageLocality": "Images",
    "InterPodAffinity": "PodAffinity",
    "NodeResourcesBalancedAllocation": "Balance",
    "NodeResourcesFit": "Fit",
    "PodTopologySpread": "Spread",
    "TaintToleration": "Taints",
}
"""Short names of scoring plugins, so that score tables fit a terminal."""

PLACED = frozenset({"Placed", "AlreadyPlaced"})


def print_results(output: Output, results: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each pod, then the requested explanations."""
    output.table(
        ("pod", "outcome", "node", "score", "message"),
        (
            (
                _name(result),
                result["outcome"],
                result.get("nodeName"),
                result.get("score"),
                _why(result),
            )
            for result in results
        ),
    )
    for result in results:
        if result.get("explanation"):
            output.line()
            output.prose(f"{_name(result)}: {_verdict(result)}", style="bold")
            print_explanation(output, result["explanation"], chosen=result.get("nodeName"))


def print_results_over_clusters(output: Output, results: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each pod, with its cluster or why each cluster refused it."""
    output.table(
        ("pod", "outcome", "cluster", "node", "message"),
        (
            (
                _name(result),
                result["outcome"],
                result.get("cluster"),
                result.get("nodeName"),
                "; ".join(
                    f"{refusal['cluster']}: {refusal['message']}" for refusal in result["refusals"]
                ),
            )
            for result in results
        ),
    )


def print_explanation(output: Output, explanation: Explanation, chosen: str | None = None) -> None:
    """Print a full explanation (node scores, and refused nodes with reasons), or a summary."""
    if "feasible" not in explanation:
        _print_summary(output, explanation)
        _print_exemptions(output, explanation)
        _print_origin(output, explanation)
        return
    if explanation.get("prefilter"):
        prefilter = explanation["prefilter"]
        output.prose(f"  {prefilter['plugin']}: {', '.join(prefilter['reasons'])}")
    _print_scores(output, explanation, chosen)
    if "culprits" in explanation:
        _print_culprits(output, explanation["culprits"])
    else:
        _print_refused(output, explanation)
    _print_exemptions(output, explanation)
    _print_origin(output, explanation)


def print_in_short(output: Output, explanation: Explanation, chosen: str | None) -> None:
    """Print a pod's node and its fit there, or why the pod waits, grouped by reason."""
    feasible = explanation.get("feasible") or ()
    if chosen is not None:
        score = (explanation.get("total") or {}).get(chosen)
        suffix = f", score {score}" if score is not None else ""
        now = "1 node is" if len(feasible) == 1 else f"{len(feasible)} nodes are"
        output.prose(f"  on {chosen}{suffix}; {now} feasible now")
        return
    if feasible:
        output.prose(f"  not placed yet, but {len(feasible)} nodes are feasible now")
        return
    if explanation.get("message"):
        output.prose(f"  {explanation['message']}")
    grouped = Counter(_first_failures(explanation).values())
    rows = [(f"  {count}", *why) for why, count in grouped.most_common(NODES_SHOWN)]
    if rows:
        output.table(("  refused nodes", "plugin", "reason"), rows)


def count_outcomes(results: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count the results by outcome."""
    return Counter(result["outcome"] for result in results)


def reasons_of_refusals(results: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count the pods that were not placed, by the reason for their refusal."""
    return Counter(
        _without_counts(_why(result) or result["outcome"])
        for result in results
        if result["outcome"] not in PLACED
    )


def describe_outcomes(counts: Mapping[str, int]) -> str:
    """Format counts as text: `3 placed, 1 unschedulable`."""
    words = (f"{count} {_in_words(outcome)}" for outcome, count in counts.items())
    return ", ".join(words) or "nothing to place"


def _print_summary(output: Output, explanation: Explanation) -> None:
    output.prose(f"  {explanation['feasibleCount']} of {explanation['nodes']} nodes are feasible")
    rows = [
        (f"  {count}", plugin, reason)
        for plugin, reasons in explanation.get("reasons", {}).items()
        for reason, count in reasons.items()
    ]
    if rows:
        output.table(("  nodes", "plugin", "reason"), rows)


def _print_scores(output: Output, explanation: Explanation, chosen: str | None) -> None:
    total = explanation["total"]
    if not total:
        return
    plugins = sorted(explanation["scores"])
    ranked = sorted(total, key=lambda node: (node != chosen, -total[node], node))
    rows = [
        (_marked(node, chosen), total[node], *(explanation["scores"][p].get(node) for p in plugins))
        for node in ranked[:NODES_SHOWN]
    ]
    output.table(("  node", "total", *(HEADINGS.get(p, p) for p in plugins)), rows)
    if len(ranked) > NODES_SHOWN:
        output.prose(f"  and {len(ranked) - NODES_SHOWN} more feasible nodes")


def _print_refused(output: Output, explanation: Explanation) -> None:
    refused = _first_failures(explanation)
    if not refused:
        return
    if len(refused) <= NODES_SHOWN:
        rows: list[Sequence[object]] = [
            (f"  {node}", *why) for node, why in sorted(refused.items())
        ]
        output.table(("  refused node", "plugin", "reason"), rows)
        return
    grouped = Counter(refused.values())
    output.table(
        ("  refused nodes", "plugin", "reason"),
        [(f"  {count}", *why) for why, count in grouped.most_common()],
    )


def _print_culprits(output: Output, culprits: Iterable[Mapping[str, Any]]) -> None:
    """Print what keeps the pod off one node, with a paragraph for each rule."""
    for culprit in culprits:
        output.prose(f"  {culprit['plugin']}: {culprit['reason']}", style="bold")
        for line in _details(culprit):
            output.prose(f"    {line}")


def _details(culprit: Mapping[str, Any]) -> Iterator[str]:
    if culprit["rule"]:
        yield f"rule: {culprit['rule']}"
    if "domain" in culprit:
        yield _domain(culprit["domain"])
    for resource, quantity in culprit.get("missing", {}).items():
        yield f"missing: {quantity} {resource}"
    for pod in culprit["pods"]:
        owned = f", by its own rule {pod['rule']}" if pod["rule"] else ""
        yield f"pod: {_name(pod)}{owned}"
    if culprit["otherPods"]:
        yield f"and {culprit['otherPods']} more pods"


def _domain(domain: Mapping[str, Any]) -> str:
    if domain["value"] is None:
        return f"domain: the node does not have the label {domain['key']}"
    skew = f", skew {domain['skew']} with the pod" if "skew" in domain else ""
    return f"domain: {domain['key']}={domain['value']}, {domain['count']} pods{skew}"


def _print_exemptions(output: Output, explanation: Explanation) -> None:
    rows = [
        (
            f"  {exemption['nodes']}",
            exemption["ownerNamespace"] or "the pod itself",
            exemption["rule"],
            exemption["reason"],
        )
        for exemption in explanation.get("exemptions", ())
    ]
    if rows:
        output.table(("  nodes", "whose rule was left out", "rule", "reason"), rows)


def _print_origin(output: Output, explanation: Explanation) -> None:
    origin = explanation.get("rulesFrom")
    if origin:
        output.prose(f"  rules from annotation {origin['annotation']} ({origin['mode']}):")
        for rule in origin["rules"]:
            output.prose(f"    {rule}")


def _first_failures(explanation: Explanation) -> dict[str, tuple[str, str]]:
    """Return, for each refused node, the first plugin that refuses it and the plugin's reasons.

    The answer lists plugins in filtering order, in which `message` counts the nodes, too.
    """
    failures: dict[str, tuple[str, str]] = {}
    for plugin, refused in explanation["filters"].items():
        for node, reasons in refused.items():
            failures.setdefault(node, (plugin, "; ".join(reasons)))
    return failures


def _marked(node: str, chosen: str | None) -> str:
    return f"* {node}" if node == chosen else f"  {node}"


def _verdict(result: Mapping[str, Any]) -> str:
    node = result.get("nodeName")
    if node:
        return f"{_in_words(result['outcome'])} on {node}"
    return f"{_in_words(result['outcome'])}: {_why(result) or 'no reason given'}"


def _why(result: Mapping[str, Any]) -> str | None:
    parts = [result.get("reason"), result.get("message")]
    return ": ".join(part for part in parts if part) or None


def _without_counts(message: str) -> str:
    """Convert `0/9 nodes are available: 3 a, 6 b.` to `a, b`, so that equal reasons match."""
    match = AVAILABILITY.fullmatch(message)
    if not match:
        return message
    reasons = NEXT_REASON.split(match["reasons"])
    return ", ".join(sorted(reason.lstrip("0123456789 ") for reason in reasons))


def _name(result: Mapping[str, Any]) -> str:
    return f"{result['namespace']}/{result['name']}"


def _in_words(outcome: str) -> str:
    """Convert `AlreadyPlaced` to `already placed`."""
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in outcome)
    return spaced.strip()
