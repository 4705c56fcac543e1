"""Parse kube-scheduler's requests to an extender, and build answers from decisions."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from service.api.http.body import converted
from service.api.resources.extender.schemas import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderFilterResult,
    ExtenderNodes,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    Victims,
)
from service.engine.explain.explanation import Explanation
from service.model.cluster.extender_messages import EXTENDER_SCORE_MAX
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.strict_json import decode_strict
from service.model.pods.pod_manifest import parse_pod
from service.model.pods.template_cache import TemplateCache
from service.scheduler.protocol.intents import NO_VERDICTS, BindPod, FindVictims, PlacePods
from service.scheduler.protocol.placements import PlacementResult, VictimsAnswer

T = TypeVar("T", ExtenderArgs, ExtenderBindingArgs, ExtenderPreemptionArgs)

UNKNOWN_NODE = "the node is not known to Moorage"
NOT_NAMED = "the node is none of those that the pod may be on"


def parse_extender(body: bytes, type_: type[T]) -> T:
    """Decode the message in a body.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is missing or has the wrong type.
    """
    return converted(decode_strict(body), type_)


def candidates_in(args: ExtenderArgs) -> Sequence[str]:
    """Return the names of the candidates, which are sent either as whole nodes or as names.

    Raises:
        InvalidManifest: there are neither, or both, or a node has no name.
    """
    if (args.nodes is None) == (args.node_names is None):
        raise InvalidManifest([FieldError("", "must have exactly one of Nodes and NodeNames")])
    if args.node_names is not None:
        return args.node_names
    assert args.nodes is not None
    return [_name_of(node, index) for index, node in enumerate(args.nodes.items or [])]


def _name_of(node: dict[str, object], index: int) -> str:
    metadata = node.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise InvalidManifest([FieldError(f"Nodes.items[{index}].metadata.name", "is missing")])
    return name


def fit_query(args: ExtenderArgs | ExtenderPreemptionArgs, templates: TemplateCache) -> PlacePods:
    """Build a dry-run placement that evaluates whether the pod fits each node.

    The pod's status, which the kubelet and kube-scheduler report, is ignored.

    Raises:
        InvalidManifest: the pod is invalid.
    """
    manifest = {name: value for name, value in args.pod.items() if name != "status"}
    try:
        pod = parse_pod(msgspec.json.encode(manifest), templates, to_place=True)
    except InvalidManifest as error:
        raise error.under("Pod") from None
    return PlacePods(
        pods=(pod,),
        path="pod",
        dry_run=True,
        explain="Full",
        without_groups=True,
        extender_verdicts=NO_VERDICTS,
    )


def victims_query(args: ExtenderPreemptionArgs, templates: TemplateCache) -> FindVictims:
    """Build a query for the nodes where evictions could make room for the pod.

    Raises:
        InvalidManifest: the pod is invalid, or there are both maps of nodes, or neither.
    """
    if (args.node_name_to_victims is None) == (args.node_name_to_meta_victims is None):
        message = "must have exactly one of NodeNameToVictims and NodeNameToMetaVictims"
        raise InvalidManifest([FieldError("", message)])
    return FindVictims(placement=fit_query(args, templates))


def preemption_result(
    args: ExtenderPreemptionArgs, answer: VictimsAnswer, visible: frozenset[str] | None
) -> ExtenderPreemptionResult:
    """Return the victims on each of kube-scheduler's nodes, if the caller may read all of them.

    A victim that kube-scheduler did not name may have just moved to the node. A victim that
    kube-scheduler does not know makes its whole attempt fail (HTTPExtender.convertPodUIDToPod), and
    nothing may wake the pod after that. Nodes with such victims are therefore omitted if any others
    remain.
    """
    asked = args.node_name_to_victims or args.node_name_to_meta_victims or {}
    candidates = {
        name: victims
        for name, victims in answer.nodes.items()
        if name in asked and (visible is None or victims.namespaces <= visible)
    }
    agreed = {
        name: victims
        for name, victims in candidates.items()
        if _named_in(asked[name]).issuperset(victims.uids)
    }
    return ExtenderPreemptionResult(
        node_name_to_meta_victims={
            name: MetaVictims(
                pods=[MetaPod(uid=uid) for uid in victims.uids],
                num_pdb_violations=victims.budget_violations,
            )
            for name, victims in (agreed or candidates).items()
        }
    )


def _named_in(victims: Victims | MetaVictims | None) -> set[str]:
    """Return the uids of the victims that kube-scheduler chose."""
    if victims is None:
        return set()
    if isinstance(victims, MetaVictims):
        return {pod.uid for pod in victims.pods or ()}
    stated = [pod.get("metadata") for pod in victims.pods or ()]
    uids = [metadata.get("uid") for metadata in stated if isinstance(metadata, dict)]
    return {uid for uid in uids if isinstance(uid, str)}


def binding_intent(args: ExtenderBindingArgs) -> BindPod:
    """Build a binding intent from the arguments of the bind verb."""
    return BindPod(
        namespace=args.pod_namespace,
        name=args.pod_name,
        node_name=args.node,
        uid=args.pod_uid or None,
    )


def filter_result(
    args: ExtenderArgs, names: Sequence[str], result: PlacementResult
) -> ExtenderFilterResult:
    """Return the candidates that remain, in the order sent, and reasons against the others."""
    explanation = result.explanation
    reason = _held_back(result)
    if reason is not None or not isinstance(explanation, Explanation):
        refused = dict.fromkeys(names, reason or result.message or result.outcome)
        return _answer(args, names, set(), {}, refused)
    left = set(explanation.feasible).intersection(names)
    lost = {name for nodes in explanation.unresolvable.values() for name in nodes}
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for name in names:
        if name in left:
            continue
        reasons = _reasons(explanation, name)
        into = unresolvable if name in lost or not reasons else failed
        into[name] = ", ".join(reasons) or _without_reasons(explanation)
    return _answer(args, names, left, failed, unresolvable)


def refusal_result(error: str) -> ExtenderFilterResult:
    """Return an answer that reports why the pod cannot be evaluated."""
    return ExtenderFilterResult(failed_nodes={}, failed_and_unresolvable_nodes={}, error=error)


def _held_back(result: PlacementResult) -> str | None:
    """Return why the pod is held back by its own state (denied or gated), or None."""
    if result.outcome == "Denied":
        return result.message
    explanation = result.explanation
    waits = result.outcome == "Unschedulable" and isinstance(explanation, Explanation)
    return result.message if waits and explanation.feasible else None


def _reasons(explanation: Explanation, name: str) -> list[str]:
    return [reason for by_node in explanation.filters.values() for reason in by_node.get(name, ())]


def _without_reasons(explanation: Explanation) -> str:
    """Explain why a node that passes all filters is still excluded."""
    if explanation.prefilter is not None:
        return ", ".join(explanation.prefilter.reasons)
    return UNKNOWN_NODE if explanation.prefilter_nodes is msgspec.UNSET else NOT_NAMED


def _answer(
    args: ExtenderArgs,
    names: Sequence[str],
    left: set[str],
    failed: dict[str, str],
    unresolvable: dict[str, str],
) -> ExtenderFilterResult:
    nodes, node_names = None, None
    if args.node_names is not None:
        node_names = [name for name in names if name in left]
    elif args.nodes is not None:
        sent = zip(names, args.nodes.items or [], strict=True)
        nodes = ExtenderNodes(items=[node for name, node in sent if name in left])
    return ExtenderFilterResult(
        nodes=nodes,
        node_names=node_names,
        failed_nodes=failed,
        failed_and_unresolvable_nodes=unresolvable,
    )


def priorities(names: Sequence[str], result: PlacementResult) -> list[HostPriority]:
    """Return the candidates' scores, scaled so that the best one has 10 and the worst one 0.

    Moorage's total scores often differ little between nodes; as fractions of the highest total,
    nearly all would be equal. Infeasible candidates have 0.
    """
    explanation = result.explanation
    total = explanation.total if isinstance(explanation, Explanation) else {}
    known = [total[name] for name in names if name in total]
    least, most = min(known, default=0), max(known, default=0)
    return [
        HostPriority(host=name, score=_stretched(total[name], least, most) if name in total else 0)
        for name in names
    ]


def _stretched(score: int, least: int, most: int) -> int:
    if most == least:
        return EXTENDER_SCORE_MAX
    return (score - least) * EXTENDER_SCORE_MAX // (most - least)
