"""The answer to how many more pods of a template fit."""

from typing import Any

import msgspec

from service.scheduler.protocol.answers import Answer


class CapacityAnswer(Answer, frozen=True, kw_only=True):
    """How many more pods like one fit, as everything is now."""

    fits: int
    """So many pods got nodes, one after the other."""
    limited: bool
    """Whether the next one was refused; if not, the search ended before, and more may fit."""
    reason: str | None
    """Why the next one was refused: Unschedulable, or the rule that denies it a node, in CamelCase; null if
    it was not refused."""
    message: str | None
    """A sentence for people that says the same."""
    domains: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """How many each domain of `topologyKey` got, if it got any; absent if no key was given."""
    without_key: int | msgspec.UnsetType = msgspec.UNSET
    """How many are on nodes without the key; absent if no key was given."""
    explanation: Any = msgspec.UNSET
    """What keeps the next one from the nodes, as asked for with `explain`; absent for None, and if not the
    nodes refuse it."""
