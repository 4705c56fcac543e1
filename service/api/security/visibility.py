"""What a caller may see of a cluster, and answers without the rest.

Placing takes knowledge of the whole cluster; what is told of it does not have to. Nodes are everybody's; of all
else a caller sees what is in the namespaces that it may read. Where a reason names a pod of another namespace
it says "a pod of another tenant" instead. Who may read all of a cluster is answered as if this module were not here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from service.api.bodies.requests import AnyRequest
from service.api.openapi.access import caller_of, require
from service.api.problems import GrantsChanged
from service.api.reading.reads import Wanted
from service.engine.plugins import inter_pod_affinity, node_ports
from service.engine.questions.explanation import Explanation, Summary
from service.model.config import ClusterConfig, parse_config
from service.model.errors import BindingRefused, Forbidden
from service.model.log import CLUSTER_KIND, ObjectPage, ObjectRow
from service.model.principals import Principal
from service.scheduler.decide.references import without_references
from service.scheduler.protocol.answers import ViolationItem, ViolationsAnswer
from service.scheduler.protocol.placements import GroupFailure, PlacementAnswer, PlacementResult

Visibility = frozenset[str] | None
"""The namespaces of a cluster that a caller may read; None: all, and everything."""

Visible = Callable[[], Awaitable[Visibility]]
"""What somebody may see at this moment."""

Current = Callable[[Principal], Awaitable[Principal | None]]
"""Somebody with the grants of this moment; None: nobody who is known any longer."""

OTHER = "a pod of another tenant"
"""What a reference to a pod that is not shown becomes; see `service.scheduler.decide.references`."""

_EVERYBODYS = frozenset({"Node", CLUSTER_KIND})
_NAMESPACE = "Namespace"

_MAY_REFER = (b"<", b"\\u003c", b"\\u003C")
"""What JSON with a reference has, from whatever client it came back; other manifests need not be decoded."""
_SHARED = (inter_pod_affinity.EXISTING, inter_pod_affinity.ANTI_AFFINITY, node_ports.REASON)
"""Reasons that rest on pods which need not be the caller's own."""
_PERHAPS = f" (it may be {OTHER})"


class Lists(Protocol):
    """Where objects of a kind are listed."""

    def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """The objects in batches, by namespace and name."""
        ...


def visibility_of(request: AnyRequest) -> Visibility:
    """What the caller of a request may see of the cluster in its path."""
    return caller_of(request.scope).namespaces("read", request.path_params["cluster"])


def sight_of(request: AnyRequest, current: Current) -> Visible:
    """What a watcher may see, to be asked for each batch of changes.

    A list and the changes after it make the present state for one set of namespaces only, so the watch of whom
    other grants were given ends.

    Raises (when asked):
        Forbidden: the caller may no longer read anything of the cluster.
        GrantsChanged: it may read other namespaces now.
        StorageUnavailable: it is not known what it may read.
    """
    principal, cluster = caller_of(request.scope), request.path_params["cluster"]
    first = principal.namespaces("read", cluster)

    async def visible() -> Visibility:
        now = await current(principal)
        if now is None or not now.may_somewhere("read", cluster):
            raise Forbidden(f"{principal.name} may no longer read on the cluster {cluster}.")
        if now.grants != principal.grants and now.namespaces("read", cluster) != first:
            raise GrantsChanged(f"{principal.name} may read other namespaces now: list again.")
        return first

    return visible


def require_sight(request: AnyRequest, kind: str, name: str) -> None:
    """See that the caller may read an object whose path names no namespace.

    Raises:
        Forbidden: it is a namespace that the caller may not read, whether it exists or not.
    """
    if kind == _NAMESPACE:
        require(caller_of(request.scope), "read", request.path_params["cluster"], name)


def sees(visibility: Visibility, kind: str, namespace: str, name: str) -> bool:
    """Whether an object is shown."""
    if visibility is None or kind in _EVERYBODYS:
        return True
    return (name if kind == _NAMESPACE else namespace) in visibility


def seen_rows(visibility: Visibility, rows: list[ObjectRow]) -> list[ObjectRow]:
    """Those rows that are shown, as they are shown."""
    if visibility is None:
        return rows
    return [
        replace(row, body=seen_body(visibility, row.kind, row.body))
        for row in rows
        if sees(visibility, row.kind, row.namespace, row.name)
    ]


async def seen_batches(
    lists: Lists, cluster: str, kind: str, wanted: Wanted, visibility: Visibility
) -> AsyncIterator[ObjectPage]:
    """The objects of a list that are shown, in batches.

    Namespaces are read one by one, so that neither the time nor the number of batches tells of others'.
    """
    if visibility is None or kind in _EVERYBODYS:
        parts: Sequence[Wanted] = [wanted]
    else:
        parts = _parts(kind, wanted, visibility)
    for part in parts:
        async for page in lists.batches(cluster, kind, part):
            yield ObjectPage(page.head, seen_rows(visibility, page.rows))


def seen_body(visibility: Visibility, kind: str, body: bytes) -> bytes:
    """An object's manifest without what it says of others' pods; of a configuration, of others' namespaces."""
    if visibility is None:
        return body
    if kind == CLUSTER_KIND:
        return _seen_settings(visibility, body)
    if kind not in ("Pod", "Event") or not any(each in body for each in _MAY_REFER):
        return body
    fields = msgspec.json.decode(body)
    told = [fields] if kind == "Event" else _conditions(fields)
    for each in told:
        each["message"] = _nameless(each["message"], visibility)
    return msgspec.json.encode(fields)


def seen_config(visibility: Visibility, config: ClusterConfig) -> ClusterConfig:
    """A configuration whose lists of namespaces name only those that are shown."""
    if visibility is None:
        return config
    return replace(
        config,
        daemon_namespaces=tuple(each for each in config.daemon_namespaces if each in visibility),
        trusted_namespaces=tuple(each for each in config.trusted_namespaces if each in visibility),
    )


def seen_violations(visibility: Visibility, answer: ViolationsAnswer) -> ViolationsAnswer:
    """The violations of pods that are shown; others they conflict with are counted, not named."""
    if visibility is None:
        return answer
    shown = [each for each in answer.items if each.namespace in visibility]
    return replace(answer, items=[_seen_violation(visibility, each) for each in shown])


def seen_placement(visibility: Visibility, answer: PlacementAnswer) -> PlacementAnswer:
    """What became of pods, in words that fit who may not see all pods."""
    if visibility is None:
        return answer
    group = answer.group
    return replace(
        answer,
        results=[_seen_result(visibility, each) for each in answer.results],
        group=group and _seen_group(visibility, group),
    )


def seen_explanation(visibility: Visibility, explanation: Any) -> Any:
    """An explanation, full or in short, in words that fit who may not see all pods."""
    if visibility is None:
        return explanation
    return _seen_explanation(visibility, explanation)


def seen_refusal(visibility: Visibility, error: BindingRefused) -> BindingRefused:
    """Why a pod does not fit a node, in words that fit who may not see all pods."""
    if visibility is None:
        return error
    reasons = {plugin: [_hedged(each) for each in told] for plugin, told in error.reasons.items()}
    return BindingRefused(_seen_words(visibility, error.detail), reasons)


def _parts(kind: str, wanted: Wanted, visibility: frozenset[str]) -> Sequence[Wanted]:
    """A list in one part for each namespace that is shown; that of the namespaces themselves in one."""
    if kind == _NAMESPACE or wanted.namespace is not None:
        return [wanted]
    after = wanted.after
    names = [name for name in sorted(visibility) if after is None or name >= after[0]]
    parts = [
        replace(wanted, namespace=name, after=after if after and after[0] == name else None)
        for name in names
    ]
    # Where nothing is left there is still an answer, and an end: after the last key of all.
    return parts or [replace(wanted, namespace=max(visibility), after=(max(visibility), "~"))]


def _seen_settings(visibility: Visibility, body: bytes) -> bytes:
    """The settings that were given, where `seen_config` would add those that were not."""
    given = msgspec.json.decode(body)
    shown = msgspec.to_builtins(seen_config(visibility, parse_config(given)))
    return msgspec.json.encode({setting: shown[setting] for setting in given})


def _conditions(pod: dict[str, Any]) -> Iterable[dict[str, Any]]:
    status = pod.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    found = conditions if isinstance(conditions, list) else []
    return [
        each for each in found if isinstance(each, dict) and isinstance(each.get("message"), str)
    ]


def _nameless(message: str, visibility: frozenset[str]) -> str:
    """A message that names others' objects only where they are shown."""
    return without_references(message, visibility.__contains__, _of_another)


def _of_another(kind: str) -> str:
    return f"a {kind.lower()} of another tenant"


def _seen_words(visibility: frozenset[str], message: str) -> str:
    """As `_nameless`, for who has asked for a decision: it says as well that reasons may rest on others' pods."""
    return _hedged(_nameless(message, visibility))


def _seen_violation(visibility: frozenset[str], item: ViolationItem) -> ViolationItem:
    named = [each for each in item.conflicts_with if each.namespace in visibility]
    others = len(item.conflicts_with) - len(named)
    if not others:
        return item
    more = f", and {others - 1} more" if others > 1 else ""
    return replace(item, conflicts_with=named, reason=f"{item.reason}: {OTHER}{more}")


def _seen_result(visibility: frozenset[str], result: PlacementResult) -> PlacementResult:
    if result.message is None and result.explanation is None:
        return result
    return replace(
        result,
        message=result.message and _seen_words(visibility, result.message),
        explanation=_seen_explanation(visibility, result.explanation),
    )


def _seen_group(visibility: frozenset[str], group: GroupFailure) -> GroupFailure:
    return replace(group, message=_seen_words(visibility, group.message))


def _seen_explanation(visibility: frozenset[str], explanation: Any) -> Any:
    match explanation:
        case Explanation():
            return replace(
                explanation,
                filters={
                    plugin: {node: [_hedged(each) for each in told] for node, told in nodes.items()}
                    for plugin, nodes in explanation.filters.items()
                },
                message=explanation.message and _seen_words(visibility, explanation.message),
            )
        case Summary():
            return replace(
                explanation,
                reasons={
                    plugin: {_hedged(reason): count for reason, count in counts.items()}
                    for plugin, counts in explanation.reasons.items()
                },
                message=explanation.message and _seen_words(visibility, explanation.message),
            )
        case _:
            return explanation


def _hedged(text: str) -> str:
    for reason in _SHARED:
        text = text.replace(reason, reason + _PERHAPS)
    return text
