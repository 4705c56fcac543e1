"""How long pods tolerate NoExecute taints.

The rules and messages are those of Kubernetes' `pkg/controller/tainteviction` and
`plugin/pkg/admission/defaulttolerationseconds`, v1.35.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from service.engine.state.nodes.taints import tolerates
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import Taint
from service.model.nodes.condition_taints import NOT_READY, UNREACHABLE
from service.model.nodes.node import Node
from service.model.pods.pod import Pod, Toleration

AT_ONCE = datetime.min.replace(tzinfo=UTC)

Tolerated = Sequence[tuple[Taint, Toleration]]
"""NoExecute taints, each with its first matching toleration."""


def evicting_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints with the effect NoExecute."""
    return tuple(taint for taint in taints if taint.effect == "NoExecute")


def with_defaults(
    tolerations: tuple[Toleration, ...], config: ClusterConfig
) -> tuple[Toleration, ...]:
    """Add default tolerations for nodes that are not ready or unreachable, if a pod has none.

    Kubernetes' admission stores them in the pod; Moorage adds them when evaluating taints.
    """
    return _with_defaults(
        tolerations,
        config.default_not_ready_toleration_seconds,
        config.default_unreachable_toleration_seconds,
    )


def _with_defaults(
    tolerations: tuple[Toleration, ...], not_ready: int, unreachable: int
) -> tuple[Toleration, ...]:
    seconds = {NOT_READY: not_ready, UNREACHABLE: unreachable}
    added = (
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=time)
        for key, time in seconds.items()
        if not any(t.key in ("", key) and t.effect in ("", "NoExecute") for t in tolerations)
    )
    return (*tolerations, *added)


def first_tolerations(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> Tolerated | None:
    """Return the first matching toleration of each taint, or None if a taint is not tolerated."""
    tolerated = []
    for taint in taints:
        toleration = next(
            (candidate for candidate in tolerations if tolerates(candidate, taint)), None
        )
        if toleration is None:
            return None
        tolerated.append((taint, toleration))
    return tolerated


def leaves_at(tolerated: Tolerated | None, since: datetime | None = None) -> datetime | None:
    """Return when a pod has to leave, which is when the first of its tolerations expires.

    Args:
        tolerated: taints and tolerations, as `first_tolerations` returns them.
        since: when the pod was placed, if that may have been after the taints.

    Returns:
        `AT_ONCE` if a taint is not tolerated at all, or None if the pod may stay forever.
    """
    if tolerated is None:
        return AT_ONCE
    ends = []
    for taint, toleration in tolerated:
        seconds = toleration.toleration_seconds
        if seconds is None:
            continue
        if seconds <= 0:
            return AT_ONCE
        begin = added_at(taint)
        if begin is not None:
            begin = begin if since is None else max(begin, since)
            ends.append(begin + timedelta(seconds=seconds))
    return min(ends, default=None)


def may_have_to_leave(pod: Pod, node: Node, config: ClusterConfig) -> bool:
    """Return whether a placed pod will be evicted for its node's taints, now or later."""
    taints = evicting_taints(node.taints)
    if not taints or pod.terminating or pod.finished:
        return False
    seconds = (
        config.default_not_ready_toleration_seconds,
        config.default_unreachable_toleration_seconds,
    )
    return _leaves(pod.spec.tolerations, taints, seconds)


@lru_cache(maxsize=4_096)
def _leaves(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], seconds: tuple[int, int]
) -> bool:
    tolerated = first_tolerations(taints, _with_defaults(tolerations, *seconds))
    return tolerated is None or any(
        toleration.toleration_seconds is not None for _, toleration in tolerated
    )


def added_at(taint: Taint) -> datetime | None:
    """Return when a taint was added, or None if not recorded."""
    return None if taint.time_added is None else parse_time(taint.time_added)


@lru_cache(maxsize=4_096)
def parse_time(time: str) -> datetime:
    """Parse a valid RFC 3339 time."""
    return datetime.fromisoformat(time)


def in_whole_seconds(time: datetime) -> str:
    """Format a time in RFC 3339, rounded up to whole seconds so that grace periods never shrink."""
    whole = time.astimezone(UTC).replace(microsecond=0)
    return (whole if whole == time else whole + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
