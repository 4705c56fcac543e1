"""The pods to evict from a node, and the cost for comparing nodes."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from service.engine.state.pods.importance import importance, started_at
from service.model.pods.pod import Pod

OFFSET = 2**31
"""Added to every priority to make it positive, so that fewer victims usually have a smaller sum."""


class Removability(NamedTuple):
    """The conditions for evicting pods to make room for another pod."""

    priority: int
    """The priority below which pods may leave."""
    namespaces: Collection[str] | None
    """The namespaces whose pods may leave, or None for all."""
    stays: Callable[[Pod], bool] | None = None
    """Exempts additional pods; only searches that examine pods one by one call it."""

    def has(self, pod: Pod) -> bool:
        """Return whether this pod may leave."""
        if pod.priority >= self.priority or not self.allows(pod.namespace):
            return False
        return self.stays is None or not self.stays(pod)

    def allows(self, namespace: str) -> bool:
        """Return whether pods of a namespace may leave."""
        return self.namespaces is None or namespace in self.namespaces


class Victims(NamedTuple):
    """The pods that would leave a node, most important first."""

    pods: tuple[Pod, ...]
    violations: int
    """The number of evictions that violate a disruption budget."""


class Cost(NamedTuple):
    """The criteria for choosing between nodes, in order; the lowest cost is best."""

    violations: int
    highest_priority: int
    priorities: int
    """The sum of the victims' priorities, each plus `OFFSET`."""
    victims: int
    earliest_start: int
    """The negated earliest start of the victims with the highest priority, since the latest is
    best."""


def victims_of(pods: Iterable[Pod], violations: int) -> Victims:
    """Sort the pods that would leave a node by importance."""
    return Victims(tuple(sorted(pods, key=importance)), violations)


def cost_of(victims: Victims) -> Cost:
    """Return the cost of evicting victims; there must be at least one."""
    pods = victims.pods
    highest = pods[0].priority
    return Cost(
        violations=victims.violations,
        highest_priority=highest,
        priorities=sum(pod.priority + OFFSET for pod in pods),
        victims=len(pods),
        earliest_start=-_earliest(pods, highest),
    )


def _earliest(pods: Sequence[Pod], priority: int) -> int:
    return min(started_at(pod) for pod in pods if pod.priority == priority)
