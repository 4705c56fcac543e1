"""The stored eviction state, and the per-minute limit on the service's own evictions."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from service.model.cluster.cluster_config import ClusterConfig
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import EvictionsAt, EvictionState

MINUTE = timedelta(minutes=1)


def eviction_state(replica: Replica) -> EvictionState:
    """Return the stored eviction state, or an empty one."""
    stored = replica.get(EvictionState.kind, EvictionState.namespace, EvictionState.name)
    if stored is None:
        return EvictionState()
    assert isinstance(stored.manifest, EvictionState)
    return stored.manifest


def recent_evictions(state: EvictionState, now: datetime) -> list[EvictionsAt]:
    """Return the evictions of the last minute, which count against the budget."""
    return [evictions for evictions in state.recent if evictions.at > now - MINUTE]


def budget_left(config: ClusterConfig, recent: Iterable[EvictionsAt]) -> int:
    """Return how many more pods the budget lets the service evict now."""
    return config.evictions_per_minute - sum(evictions.pods for evictions in recent)


def seconds_until_allowed(replica: Replica, pods: int, now: datetime) -> float | None:
    """Return the seconds until the budget may allow this many evictions, or None if it does now."""
    recent = recent_evictions(eviction_state(replica), now)
    if pods <= budget_left(replica.config, recent):
        return None
    if not recent:
        return MINUTE.total_seconds()
    return max((recent[0].at + MINUTE - now).total_seconds(), 0.0)


def spend(replica: Replica, pods: int, now: datetime) -> None:
    """Record the eviction of this many pods."""
    state = eviction_state(replica)
    recent = (*recent_evictions(state, now), EvictionsAt(at=now, pods=pods))
    replica.put(replace(state, recent=recent))


def needs_eviction_checks(replica: Replica) -> bool:
    """Return whether any pod of the cluster may have to be evicted, or any timer stopped."""
    return bool(eviction_state(replica).timers) or replica.cluster.has_execution_rules
