"""Who would have to leave a node, and which of the nodes that preemption could help is best."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from service.engine.state.pods.importance import importance, started_at
from service.model.pods.pod import Pod

OFFSET = 2**31
"""Makes every priority positive, so that of sums the one of fewer victims is mostly the smaller one."""


class Removability(NamedTuple):
    """Which pods may leave so that another one fits."""

    priority: int
    """Only pods of lower priority than this may leave."""
    namespaces: Collection[str] | None
    """Only pods in these namespaces may leave; None: those in all."""
    stays: Callable[[Pod], bool] | None = None
    """Says which of them stay all the same; only searches that look at pods one by one ask it."""

    def has(self, pod: Pod) -> bool:
        """Return whether this pod may leave."""
        if pod.priority >= self.priority or not self.allows(pod.namespace):
            return False
        return self.stays is None or not self.stays(pod)

    def allows(self, namespace: str) -> bool:
        """Return whether pods of a namespace may leave."""
        return self.namespaces is None or namespace in self.namespaces


class Victims(NamedTuple):
    """The pods that would leave one node, the most important first."""

    pods: tuple[Pod, ...]
    violations: int
    """How many of them disruption budgets protect."""


class Cost(NamedTuple):
    """What decides between nodes; the least is best."""

    violations: int
    highest_priority: int
    priorities: int
    """The sum over the victims, each with `OFFSET`."""
    victims: int
    earliest_start: int
    """When the first of the victims of the highest priority started, negated, as the latest is best."""


def victims_of(pods: Iterable[Pod], violations: int) -> Victims:
    """Order the pods that would leave a node."""
    return Victims(tuple(sorted(pods, key=importance)), violations)


def cost_of(victims: Victims) -> Cost:
    """Return the cost of making room on a node; there is at least one victim."""
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
