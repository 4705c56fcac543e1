"""What is remembered of evictions, and how many pods the service may evict by itself in a minute."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from service.model.configuration.config import ClusterConfig
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import EvictionsAt, EvictionState

MINUTE = timedelta(minutes=1)


def eviction_state(replica: Replica) -> EvictionState:
    """Return the stored state of evictions, or an empty one if none is stored."""
    stored = replica.get(EvictionState.kind, EvictionState.namespace, EvictionState.name)
    if stored is None:
        return EvictionState()
    assert isinstance(stored.manifest, EvictionState)
    return stored.manifest


def recent_evictions(state: EvictionState, now: datetime) -> list[EvictionsAt]:
    """Return the evictions of the last minute, which the budget counts."""
    return [each for each in state.recent if each.at > now - MINUTE]


def budget_left(config: ClusterConfig, recent: Iterable[EvictionsAt]) -> int:
    """How many more pods may be evicted now."""
    return config.evictions_per_minute - sum(each.pods for each in recent)


def seconds_until_allowed(replica: Replica, pods: int, now: datetime) -> float | None:
    """Return after how many seconds the budget may have room for so many evictions; None: it has now."""
    recent = recent_evictions(eviction_state(replica), now)
    if pods <= budget_left(replica.config, recent):
        return None
    if not recent:
        return MINUTE.total_seconds()
    return max((recent[0].at + MINUTE - now).total_seconds(), 0.0)


def spend(replica: Replica, pods: int, now: datetime) -> None:
    """Remember that so many pods are evicted now."""
    state = eviction_state(replica)
    recent = (*recent_evictions(state, now), EvictionsAt(at=now, pods=pods))
    replica.put(replace(state, recent=recent))


def watches(replica: Replica) -> bool:
    """Whether any pod of a cluster may have to be evicted, or a timer to be stopped."""
    return bool(eviction_state(replica).timers) or replica.cluster.has_execution_rules
