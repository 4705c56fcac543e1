"""Placing a pod whose profile names extenders: what is asked of them, and what follows from the answer."""

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from service.engine import Explanation, Placement, Refusal, Summary, explain, place
from service.model.configuration.extenders import Extender
from service.model.errors import Denied
from service.model.manifests.manifest import PodManifest
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.extenders import (
    ASKS_EXTENDERS,
    NOT_ASKED,
    ExtenderQuestion,
    ExtendersToAsk,
    ExtenderVerdict,
)
from service.scheduler.protocol.intents import PlacePods

Shown = Explanation | Summary | None


def extenders_for(context: DecisionContext, pod: Pod) -> tuple[Extender, ...]:
    """The extenders that are to be asked before the pod is placed."""
    return context.replica.config.extenders_for(pod.spec)


def not_asked(context: DecisionContext, pod: Pod) -> Denied | None:
    """Refuse a pod that may not be placed without extenders, where nobody asks them; None: it may."""
    if not extenders_for(context, pod):
        return None
    return Denied(ASKS_EXTENDERS, NOT_ASKED.format(pod.spec.scheduler_name))


def as_extenders_say(
    context: DecisionContext,
    intent: PlacePods,
    manifest: PodManifest,
    found: Placement,
    explanation: Shown,
) -> tuple[Placement | Refusal | Denied, Shown]:
    """Return where a pod goes, or why nowhere, given that it would be placed without extenders.

    A node that was chosen with extenders has still to pass all filters of the profile; if it does
    not any more, or the extenders were not asked yet, they are to be asked.

    Raises:
        ExtendersToAsk: they are to be asked.
    """
    asked = extenders_for(context, manifest.pod)
    if not asked:
        return found, explanation
    if intent.consulted is None:
        denied = Denied(ASKS_EXTENDERS, NOT_ASKED.format(manifest.pod.spec.scheduler_name))
        return denied, explanation
    verdict = intent.consulted.get((manifest.namespace, manifest.name))
    if verdict is None:
        raise _question(context, manifest, asked, found)
    if verdict.node_name is None:
        refusal = _refusal(context, verdict)
        return refusal, _explained(explanation, verdict, refusal)
    kept = place(context.replica.cluster, manifest.pod, verdict.node_name)
    if isinstance(kept, Refusal) or kept.node_name != verdict.node_name:
        raise _question(context, manifest, asked, found)
    kept = kept._replace(score=kept.score + verdict.added.get(kept.node_name, 0))
    return kept, _explained(explanation, verdict, None)


def _question(
    context: DecisionContext,
    manifest: PodManifest,
    extenders: tuple[Extender, ...],
    found: Placement,
) -> ExtendersToAsk:
    totals = explain(context.replica.cluster, manifest.pod).total or {found.node_name: found.score}
    nodes: dict[str, bytes] = {}
    if not all(each.node_cache_capable for each in extenders):
        stored = {name: context.replica.get("Node", "", name) for name in totals}
        nodes = {name: each.manifest.render() for name, each in stored.items() if each is not None}
    question = ExtenderQuestion(
        pod=(manifest.namespace, manifest.name),
        manifest=manifest.render(),
        extenders=extenders,
        totals=totals,
        best=found.node_name,
        nodes=nodes,
    )
    return ExtendersToAsk(question, manifest.pod.spec.scheduler_name)


def _refusal(context: DecisionContext, verdict: ExtenderVerdict) -> Refusal:
    reasons = {
        name: dict(Counter(by_node.values()))
        for name, by_node in verdict.refused.items()
        if by_node
    }
    if verdict.failure is not None:
        return Refusal(verdict.failure, reasons)
    told = sorted(
        f"{count} {reason} (extender {name})"
        for name, each in reasons.items()
        for reason, count in each.items()
    )
    nodes = context.replica.cluster.nodes.count
    left = sum(map(len, verdict.refused.values()))
    message = f"0/{nodes} nodes are available: {left} passed all filters and were refused by extenders: {', '.join(told)}."
    return Refusal(message, reasons)


def _explained(explanation: Shown, verdict: ExtenderVerdict, refusal: Refusal | None) -> Shown:
    """Add what extenders say to an explanation of what plugins say."""
    gone = {name for each in verdict.refused.values() for name in each}
    message = None if refusal is None else refusal.message
    if isinstance(explanation, Summary):
        counted = {name: dict(Counter(each.values())) for name, each in verdict.refused.items()}
        return replace(
            explanation,
            message=message or explanation.message,
            feasible_count=explanation.feasible_count - len(gone) if message is None else 0,
            reasons={**explanation.reasons, **counted},
        )
    if explanation is None:
        return None
    total = _added(explanation.total, gone, verdict.added) if message is None else {}
    top = max(total.values(), default=0)
    refused = {
        name: {node: [reason] for node, reason in each.items()}
        for name, each in verdict.refused.items()
    }
    lost = {name: sorted(each) for name, each in verdict.unresolvable.items() if each}
    return replace(
        explanation,
        filters={**explanation.filters, **refused},
        unresolvable={**explanation.unresolvable, **lost},
        feasible=sorted(total),
        scores={
            plugin: {name: each for name, each in by_node.items() if name in total}
            for plugin, by_node in explanation.scores.items()
        },
        total=total,
        best=sorted(name for name, each in total.items() if each == top),
        message=message or explanation.message,
    )


def _added(total: Mapping[str, int], gone: set[str], added: Mapping[str, int]) -> dict[str, int]:
    return {name: each + added.get(name, 0) for name, each in total.items() if name not in gone}
