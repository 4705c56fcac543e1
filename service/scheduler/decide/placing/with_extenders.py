"""Places a pod whose profile has extenders: builds their question, and applies their verdict."""

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from service.engine import Explanation, Placement, Refusal, Summary, explain, place
from service.model.cluster.extender_config import Extender
from service.model.core.errors import Denied
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.extenders import (
    ASKS_EXTENDERS,
    NOT_ASKED,
    ExtenderQuestion,
    ExtendersRequired,
    ExtenderVerdict,
)
from service.scheduler.protocol.intents import PlacePods

Shown = Explanation | Summary | None


def extenders_for(context: DecisionContext, pod: Pod) -> tuple[Extender, ...]:
    """Return the extenders to query before placing the pod."""
    return context.replica.config.extenders_for(pod.spec)


def not_asked(context: DecisionContext, pod: Pod) -> Denied | None:
    """Return the refusal of a pod that needs extenders where none are queried, or None."""
    if not extenders_for(context, pod):
        return None
    return Denied(ASKS_EXTENDERS, NOT_ASKED.format(pod.spec.scheduler_name))


def by_extender_verdict(
    context: DecisionContext,
    intent: PlacePods,
    manifest: PodManifest,
    placement: Placement,
    explanation: Shown,
) -> tuple[Placement | Refusal | Denied, Shown]:
    """Place a pod by its extenders' verdict, or return the refusal.

    The node chosen with extenders still has to pass all filters of the profile. If the node fails
    them, or the extenders have not been queried yet, ExtendersRequired is raised.

    Raises:
        ExtendersRequired: the extenders have to be queried.
    """
    extenders = extenders_for(context, manifest.pod)
    if not extenders:
        return placement, explanation
    if intent.extender_verdicts is None:
        denied = Denied(ASKS_EXTENDERS, NOT_ASKED.format(manifest.pod.spec.scheduler_name))
        return denied, explanation
    verdict = intent.extender_verdicts.get((manifest.namespace, manifest.name))
    if verdict is None:
        raise _question(context, manifest, extenders, placement)
    if verdict.node_name is None:
        refusal = _refusal(context, verdict)
        return refusal, _explained(explanation, verdict, refusal)
    chosen = place(context.replica.cluster, manifest.pod, verdict.node_name)
    if isinstance(chosen, Refusal) or chosen.node_name != verdict.node_name:
        raise _question(context, manifest, extenders, placement)
    chosen = chosen._replace(score=chosen.score + verdict.added.get(chosen.node_name, 0))
    return chosen, _explained(explanation, verdict, None)


def _question(
    context: DecisionContext,
    manifest: PodManifest,
    extenders: tuple[Extender, ...],
    placement: Placement,
) -> ExtendersRequired:
    totals = explain(context.replica.cluster, manifest.pod).total or {
        placement.node_name: placement.score
    }
    nodes: dict[str, bytes] = {}
    if not all(extender.node_cache_capable for extender in extenders):
        stored = {name: context.replica.get("Node", "", name) for name in totals}
        nodes = {name: node.manifest.render() for name, node in stored.items() if node is not None}
    question = ExtenderQuestion(
        pod=(manifest.namespace, manifest.name),
        manifest=manifest.render(),
        extenders=extenders,
        totals=totals,
        best=placement.node_name,
        nodes=nodes,
    )
    return ExtendersRequired(question, manifest.pod.spec.scheduler_name)


def _refusal(context: DecisionContext, verdict: ExtenderVerdict) -> Refusal:
    reasons = {
        name: dict(Counter(by_node.values()))
        for name, by_node in verdict.refused.items()
        if by_node
    }
    if verdict.failure is not None:
        return Refusal(verdict.failure, reasons)
    messages = sorted(
        f"{count} {reason} (extender {name})"
        for name, counts in reasons.items()
        for reason, count in counts.items()
    )
    nodes = context.replica.cluster.nodes.count
    passed = sum(map(len, verdict.refused.values()))
    message = f"0/{nodes} nodes are available: {passed} passed all filters and were refused by extenders: {', '.join(messages)}."
    return Refusal(message, reasons)


def _explained(explanation: Shown, verdict: ExtenderVerdict, refusal: Refusal | None) -> Shown:
    """Add an extender verdict to an explanation of the plugins' results."""
    excluded = {name for refused_nodes in verdict.refused.values() for name in refused_nodes}
    message = None if refusal is None else refusal.message
    if isinstance(explanation, Summary):
        counted = {
            name: dict(Counter(refused_nodes.values()))
            for name, refused_nodes in verdict.refused.items()
        }
        return replace(
            explanation,
            message=message or explanation.message,
            feasible_count=explanation.feasible_count - len(excluded) if message is None else 0,
            reasons={**explanation.reasons, **counted},
        )
    if explanation is None:
        return None
    total = _added(explanation.total, excluded, verdict.added) if message is None else {}
    top = max(total.values(), default=0)
    refused = {
        name: {node: [reason] for node, reason in reasons.items()}
        for name, reasons in verdict.refused.items()
    }
    lost = {name: sorted(nodes) for name, nodes in verdict.unresolvable.items() if nodes}
    return replace(
        explanation,
        filters={**explanation.filters, **refused},
        unresolvable={**explanation.unresolvable, **lost},
        feasible=sorted(total),
        scores={
            plugin: {name: score for name, score in by_node.items() if name in total}
            for plugin, by_node in explanation.scores.items()
        },
        total=total,
        best=sorted(name for name, score in total.items() if score == top),
        message=message or explanation.message,
    )


def _added(
    total: Mapping[str, int], excluded: set[str], added: Mapping[str, int]
) -> dict[str, int]:
    return {
        name: score + added.get(name, 0) for name, score in total.items() if name not in excluded
    }
