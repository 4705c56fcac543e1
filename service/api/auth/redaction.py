"""Redact the parts of a cluster that a caller may not see.

Placing needs knowledge of the whole cluster, but an answer need not show it. Every caller sees
nodes, and otherwise only objects in namespaces that it may read. A reason that names a pod of
another namespace says "a pod of another tenant" instead. A caller that may read the whole cluster
gets answers unchanged.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from service.api.http.context import ApiRequest
from service.api.http.permissions import require
from service.api.http.problems import GrantsChanged
from service.api.reads.stored import Wanted
from service.engine import PROVISION
from service.engine.explain.explanation import Explanation, Summary
from service.engine.plugins import inter_pod_affinity, node_ports
from service.engine.rules.culprits import Culprit
from service.engine.rules.exemptions import Exemption
from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.core.access import Principal
from service.model.core.errors import BindingRefused, Forbidden
from service.model.core.primitives import CLUSTER_KIND
from service.model.log.commit import ObjectRow
from service.model.log.pages import ObjectPage
from service.model.registry.kinds import EVERYBODYS, sees
from service.scheduler.decide.status.references import without_references
from service.scheduler.protocol.answers import CapacityAnswer, ViolationItem, ViolationsAnswer
from service.scheduler.protocol.placements import (
    GroupFailure,
    PlacementAnswer,
    PlacementResult,
    Proposal,
    ProposedVictims,
)
from service.scheduler.protocol.plans import (
    Counted,
    ObjectiveTotal,
    ObjectiveTotals,
    PlanAnswer,
    Planned,
    PlanTotals,
    Unplaced,
)
from service.scheduler.protocol.repairs import RepairsAnswer

CONSTRAINTS_SHOWN_MAX = 100
"""The maximum number of topology spread constraints in the totals of a plan."""

V = TypeVar("V", bound=ProposedVictims)

Visibility = frozenset[str] | None
"""The namespaces of a cluster that a caller may read, or None for the whole cluster."""

Visible = Callable[[], Awaitable[Visibility]]
"""Returns what a caller may see at present."""

Current = Callable[[Principal], Awaitable[Principal | None]]
"""Returns a principal with its current grants, or None if it no longer exists."""

OTHER = "a pod of another tenant"
"""The replacement for a reference to a hidden pod.

`service.scheduler.decide.status.references` describes how messages refer to objects.
"""

A_VOLUME = "volume"
"""Replaces the names of PersistentVolumes for callers who may not read the whole cluster."""

_NAMESPACE = "Namespace"

_MAY_REFER = (b"<", b"\\u003c", b"\\u003C")
"""The bytes that begin a reference in JSON; bodies without any of them are not decoded."""
_SHARED = (
    inter_pod_affinity.EXISTING,
    inter_pod_affinity.EXISTING_FULL,
    inter_pod_affinity.ANTI_AFFINITY,
    inter_pod_affinity.FULL,
    node_ports.REASON,
)
"""Reasons that may be due to hidden pods."""
_PERHAPS = f" (it may be {OTHER})"


class Lists(Protocol):
    """Reads lists of objects of a kind."""

    def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the objects in batches, ordered by namespace and name."""
        ...


def visibility_of(request: ApiRequest) -> Visibility:
    """Return what the caller of a request may see of the cluster in its path."""
    caller = request.context.caller()
    return visibility_for(caller.principal, caller.cluster)


def visibility_for(principal: Principal, cluster: str) -> Visibility:
    """Return what a principal may see of a cluster."""
    return principal.namespaces("read", cluster)


def watch_scope(request: ApiRequest, current: Current) -> Visible:
    """Return a function that checks, for each batch of changes, what a watcher may see.

    A list plus the changes after it yields the current state only for a fixed set of namespaces, so
    a watch ends when the namespaces that its caller may read change.

    Raises (when called):
        Forbidden: the caller may no longer read anything of the cluster.
        GrantsChanged: the caller may now read other namespaces.
        StorageUnavailable: the caller's grants cannot be read.
    """
    caller = request.context.caller()
    principal, cluster = caller.principal, caller.cluster
    first = principal.namespaces("read", cluster)

    async def visible() -> Visibility:
        now = await current(principal)
        if now is None or not now.may_somewhere("read", cluster):
            raise Forbidden(f"{principal.name} may no longer read on the cluster {cluster}.")
        if now.grants != principal.grants and now.namespaces("read", cluster) != first:
            raise GrantsChanged(f"{principal.name} may read other namespaces now: list again.")
        return first

    return visible


def require_read(request: ApiRequest, kind: str, namespace: str, name: str) -> None:
    """Check that the caller may read an object; the namespace is "" if the path names none.

    Raises:
        Forbidden: the object is in, or is, a namespace that the caller may not read, or is visible
            only to callers who may read the whole cluster; whether or not it exists.
    """
    if kind not in EVERYBODYS:
        where = name if kind == _NAMESPACE else namespace or None
        caller = request.context.caller()
        require(caller.principal, "read", caller.cluster, where)


def redact_rows(visibility: Visibility, rows: list[ObjectRow]) -> list[ObjectRow]:
    """Return the visible rows, with bodies redacted by `redact_body`."""
    if visibility is None:
        return rows
    return [
        replace(row, body=redact_body(visibility, row.kind, row.body))
        for row in rows
        if sees(visibility, row.kind, row.namespace, row.name)
    ]


async def redacted_batches(
    lists: Lists, cluster: str, kind: str, wanted: Wanted, visibility: Visibility
) -> AsyncIterator[ObjectPage]:
    """Yield the visible objects of a list, in batches.

    Namespaces are read one by one, so that neither time nor the number of batches hints at objects
    in other namespaces.
    """
    for part in visible_parts(kind, wanted, visibility):
        async for page in lists.batches(cluster, kind, part):
            yield ObjectPage(page.head, redact_rows(visibility, page.rows))


def visible_parts(kind: str, wanted: Wanted, visibility: Visibility) -> Sequence[Wanted]:
    """Return the parts of a list to read one by one: one per namespace unless all are visible."""
    if visibility is None or kind in EVERYBODYS:
        return [wanted]
    return _parts(kind, wanted, visibility)


def redact_body(visibility: Visibility, kind: str, body: bytes) -> bytes:
    """Return an object's manifest without references to hidden pods.

    A cluster's configuration is returned without hidden namespaces.
    """
    if visibility is None:
        return body
    if kind == CLUSTER_KIND:
        return _redact_settings(visibility, body)
    if kind not in ("Pod", "Event") or not any(marker in body for marker in _MAY_REFER):
        return body
    fields = msgspec.json.decode(body)
    parts = [fields] if kind == "Event" else _conditions(fields)
    for part in parts:
        part["message"] = _redact_message(part["message"], visibility)
    return msgspec.json.encode(fields)


def visible_tag(visibility: Visibility, tag: str) -> str:
    """Return the entity tag of an answer that depends on the visible namespaces.

    It is weak for callers who do not see everything, so that no If-Match succeeds with it.
    """
    if visibility is None:
        return tag
    names = ",".join(sorted(visibility)).encode()
    return f'W/"{tag.removeprefix("W/").strip(chr(34))}-{sha256(names).hexdigest()[:16]}"'


def redact_config(visibility: Visibility, config: ClusterConfig) -> ClusterConfig:
    """Return a configuration whose lists of namespaces name only visible ones."""
    if visibility is None:
        return config
    return replace(
        config,
        daemon_namespaces=tuple(
            namespace for namespace in config.daemon_namespaces if namespace in visibility
        ),
        trusted_namespaces=tuple(
            namespace for namespace in config.trusted_namespaces if namespace in visibility
        ),
    )


def redact_violations(visibility: Visibility, answer: ViolationsAnswer) -> ViolationsAnswer:
    """Return the violations of visible pods; conflicting hidden pods are only counted."""
    if visibility is None:
        return answer
    shown = [violation for violation in answer.items if violation.namespace in visibility]
    return replace(answer, items=[redact_violation(visibility, violation) for violation in shown])


def redact_violation(visibility: Visibility, item: ViolationItem) -> ViolationItem:
    """Return a violation that names visible conflicting pods and counts hidden ones."""
    if visibility is None:
        return item
    named = [pod for pod in item.conflicts_with if pod.namespace in visibility]
    others = len(item.conflicts_with) - len(named)
    if not others:
        return item
    more = f", and {others - 1} more" if others > 1 else ""
    return replace(item, conflicts_with=named, reason=f"{item.reason}: {OTHER}{more}")


def redact_placement(visibility: Visibility, answer: PlacementAnswer) -> PlacementAnswer:
    """Return the results of a placement, without names of hidden pods."""
    if visibility is None:
        return answer
    group = answer.group
    return replace(
        answer,
        results=[_seen_result(visibility, result) for result in answer.results],
        group=group and _seen_group(visibility, group),
    )


def redact_plan(visibility: Visibility, planned: Planned, steps_max: int) -> PlanAnswer:
    """Return a plan's first steps, without those of hidden pods."""
    steps, unplaced = planned.steps, planned.unplaced
    compared, differences = planned.compared, planned.differences
    if visibility is not None:
        shown = visibility | {msgspec.UNSET}  # Steps about nodes have no namespace.
        steps = [step for step in steps if step.namespace in shown]
        unplaced = [pod for pod in unplaced if pod.namespace in visibility]
        if differences is not None:
            differences = [change for change in differences if change.namespace in visibility]
    listed = unplaced[:steps_max]
    if visibility is not None:
        listed = [_seen_unplaced(visibility, pod) for pod in listed]
    return PlanAnswer(
        revision=planned.revision,
        status=planned.status,
        kubernetes=planned.kubernetes,
        complete=planned.complete,
        changed=planned.changed,
        steps=steps[:steps_max],
        steps_total=len(steps),
        unplaced=listed,
        unplaced_total=len(unplaced),
        other_steps=len(planned.steps) - len(steps) or msgspec.UNSET,
        other_unplaced=len(planned.unplaced) - len(unplaced) or msgspec.UNSET,
        compared=msgspec.UNSET if compared is None else _seen_total(visibility, compared),
        differences=msgspec.UNSET if differences is None else differences[:steps_max],
        differences_total=msgspec.UNSET if differences is None else len(differences),
        repairs=msgspec.UNSET if planned.repairs is None else planned.repairs,
        unfinished=planned.unfinished or msgspec.UNSET,
        before=_seen_totals(visibility, planned.before),
        after=_seen_totals(visibility, planned.after),
    )


def _seen_unplaced(visibility: frozenset[str], pod: Unplaced) -> Unplaced:
    return replace(
        pod,
        message=_redact_reason(visibility, pod.message),
        explanation=_seen_explanation(visibility, pod.explanation),
    )


def _seen_total(visibility: Visibility, by_namespace: Mapping[str, int]) -> int:
    """Return the total over visible namespaces and over nodes (""), which all may see."""
    return sum(
        count
        for namespace, count in by_namespace.items()
        if visibility is None or not namespace or namespace in visibility
    )


def _seen_totals(visibility: Visibility, counted: Counted) -> PlanTotals:
    total = partial(_seen_total, visibility)
    skew = [
        constraint
        for constraint in counted.skew or ()
        if visibility is None or constraint.namespace in visibility
    ]
    return PlanTotals(
        nodes=counted.nodes,
        pods=total(counted.pods),
        resources=counted.resources,
        violations=msgspec.UNSET if counted.violations is None else total(counted.violations),
        skew=msgspec.UNSET if counted.skew is None else skew[:CONSTRAINTS_SHOWN_MAX],
        objectives=msgspec.UNSET
        if counted.objectives is None
        else [_redact_objective(visibility, objective) for objective in counted.objectives],
    )


def _redact_objective(visibility: Visibility, totals: ObjectiveTotals) -> ObjectiveTotal:
    total = partial(_seen_total, visibility)
    return ObjectiveTotal(
        objective=totals.objective,
        value=total(totals.value),
        tie_break=msgspec.UNSET if totals.tie_break is None else total(totals.tie_break),
    )


def redact_repairs(visibility: Visibility, answer: RepairsAnswer) -> RepairsAnswer:
    """Return a pod's repairs, with reasons that do not name hidden pods.

    Repairs only remove visible pods: no others were searched for.
    """
    if visibility is None or answer.message is None:
        return answer
    return replace(answer, message=_redact_reason(visibility, answer.message))


def redact_capacity(visibility: Visibility, answer: CapacityAnswer) -> CapacityAnswer:
    """Return a capacity whose limiting reason does not name hidden pods."""
    if visibility is None or answer.message is None:
        return answer
    return replace(
        answer,
        message=_redact_reason(visibility, answer.message),
        explanation=_seen_explanation(visibility, answer.explanation),
    )


def redact_explanation(visibility: Visibility, explanation: Any) -> Any:
    """Return a full or short explanation, without names of hidden pods."""
    if visibility is None:
        return explanation
    return _seen_explanation(visibility, explanation)


def redact_refusal(visibility: Visibility, error: BindingRefused) -> BindingRefused:
    """Return the refusal of a binding, without names of hidden pods."""
    if visibility is None:
        return error
    reasons = {
        plugin: [_hedged(reason) for reason in texts] for plugin, texts in error.reasons.items()
    }
    return BindingRefused(_redact_reason(visibility, error.detail), reasons)


def _parts(kind: str, wanted: Wanted, visibility: frozenset[str]) -> Sequence[Wanted]:
    """Split a list into one part for each visible namespace; a list of namespaces has one part."""
    if kind == _NAMESPACE or wanted.namespace is not None:
        return [wanted]
    after = wanted.after
    names = [name for name in sorted(visibility) if after is None or name >= after[0]]
    parts = [
        replace(wanted, namespace=name, after=after if after and after[0] == name else None)
        for name in names
    ]
    # If no part is left, a part that starts after the last possible key gives an empty answer.
    return parts or [replace(wanted, namespace=max(visibility), after=(max(visibility), "~"))]


def _redact_settings(visibility: Visibility, body: bytes) -> bytes:
    """Return the given settings as `redact_config` shows them, without adding defaults."""
    given = msgspec.json.decode(body)
    shown = msgspec.to_builtins(redact_config(visibility, parse_config(given)))
    return msgspec.json.encode({setting: shown[setting] for setting in given})


def _conditions(pod: dict[str, Any]) -> Iterable[dict[str, Any]]:
    status = pod.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    entries = conditions if isinstance(conditions, list) else []
    return [
        condition
        for condition in entries
        if isinstance(condition, dict) and isinstance(condition.get("message"), str)
    ]


def _redact_message(message: str, visibility: frozenset[str]) -> str:
    """Return the message without names of hidden objects."""
    return without_references(message, visibility.__contains__, _of_another)


def _of_another(kind: str) -> str:
    return f"a {kind.lower()} of another tenant"


def _redact_reason(visibility: frozenset[str], message: str) -> str:
    """Return the redacted message, noting that some reasons may be due to hidden pods."""
    return _hedged(_redact_message(message, visibility))


def _seen_result(visibility: frozenset[str], result: PlacementResult) -> PlacementResult:
    if result.message is None and result.explanation is None:
        return result
    return replace(
        result,
        message=result.message and _redact_reason(visibility, result.message),
        explanation=_seen_explanation(visibility, result.explanation),
        preemption=_redact_proposal(visibility, result.preemption)
        if isinstance(result.preemption, Proposal)
        else result.preemption,
    )


def _redact_proposal(visibility: frozenset[str], proposal: Proposal) -> Proposal:
    """Return a proposal in which hidden victims are only counted."""
    seen = _seen_victims(visibility, proposal)
    if not isinstance(proposal.candidates, dict):
        return seen
    candidates = {
        name: _seen_victims(visibility, candidate)
        for name, candidate in proposal.candidates.items()
    }
    return replace(seen, candidates=candidates)


def _seen_victims(visibility: frozenset[str], proposed: V) -> V:
    shown = [victim for victim in proposed.victims if victim.namespace in visibility]
    others = len(proposed.victims) - len(shown)
    return replace(proposed, victims=shown, other_victims=others) if others else proposed


def _seen_group(visibility: frozenset[str], group: GroupFailure) -> GroupFailure:
    return replace(group, message=_redact_reason(visibility, group.message))


def _seen_explanation(visibility: frozenset[str], explanation: Any) -> Any:
    match explanation:
        case Explanation():
            return replace(
                explanation,
                bindings=_redact_bindings(explanation.bindings),
                filters={
                    plugin: {
                        node: [_hedged(reason) for reason in texts] for node, texts in nodes.items()
                    }
                    for plugin, nodes in explanation.filters.items()
                },
                message=explanation.message and _redact_reason(visibility, explanation.message),
                exemptions=_redact_exemptions(visibility, explanation.exemptions),
                culprits=_redact_culprits(visibility, explanation.culprits),
            )
        case Summary():
            return replace(
                explanation,
                reasons={
                    plugin: {_hedged(reason): count for reason, count in counts.items()}
                    for plugin, counts in explanation.reasons.items()
                },
                message=explanation.message and _redact_reason(visibility, explanation.message),
                exemptions=_redact_exemptions(visibility, explanation.exemptions),
            )
        case _:
            return explanation


def _redact_bindings(
    bindings: dict[str, dict[str, str]] | msgspec.UnsetType,
) -> dict[str, dict[str, str]] | msgspec.UnsetType:
    """Return each node's bindings of claims, without the volumes' names."""
    if bindings is msgspec.UNSET:
        return bindings
    return {
        node: {claim: name if name == PROVISION else A_VOLUME for claim, name in claims.items()}
        for node, claims in bindings.items()
    }


def _redact_exemptions(
    visibility: frozenset[str], listed: list[Exemption] | msgspec.UnsetType
) -> list[Exemption] | msgspec.UnsetType:
    """Return the exemptions of the pod itself and those of visible pods."""
    if listed is msgspec.UNSET:
        return listed
    shown = [exemption for exemption in listed if exemption.owner_namespace in (None, *visibility)]
    return shown or msgspec.UNSET


def _redact_culprits(
    visibility: frozenset[str], culprits: list[Culprit] | msgspec.UnsetType
) -> list[Culprit] | msgspec.UnsetType:
    """Return the culprits; hidden pods are only counted."""
    if culprits is msgspec.UNSET:
        return culprits
    return [_seen_culprit(visibility, culprit) for culprit in culprits]


def _seen_culprit(visibility: frozenset[str], culprit: Culprit) -> Culprit:
    shown = [pod for pod in culprit.pods if pod.namespace in visibility]
    others = culprit.other_pods + len(culprit.pods) - len(shown)
    return replace(culprit, reason=_hedged(culprit.reason), pods=shown, other_pods=others)


def _hedged(text: str) -> str:
    for reason in _SHARED:
        text = text.replace(reason, reason + _PERHAPS)
    return text
