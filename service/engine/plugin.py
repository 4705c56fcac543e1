"""What plugins share: the shapes of their answers. Plugins know nothing of each other."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np

from service.engine.state.columns import Ints, Mask, Rows
from service.engine.state.nodes import NodeTable
from service.engine.state.ranks import SIGN_BIT
from service.engine.state.rules import NodeRules
from service.engine.state.topology import TopologyKey

MAX_NODE_SCORE: Final = 100


class Failure(NamedTuple):
    """One reason, on the nodes that fail for it."""

    reason: str
    nodes: Mask
    unresolvable: Mask | bool
    """Where removing pods could not help (Kubernetes' UnschedulableAndUnresolvable)."""


class NodeFilter(Protocol):
    """A filter that looks at one node alone, so that its mask is cached per rules and node."""

    name: str

    def applies(self, rules: NodeRules) -> bool:
        """False where it passes every node."""
        ...

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        """Shape (rows,): the nodes that pass."""
        ...

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Every reason on every node; masks of the shape (nodes,)."""
        ...


class NodeScore(ABC):
    """A score that looks at one node alone and is not normalised over the feasible ones."""

    name: str

    @abstractmethod
    def applies(self, rules: NodeRules) -> bool:
        """False where Kubernetes skips the score."""

    @abstractmethod
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        """Shape (rows,): 0 to 100."""

    @abstractmethod
    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        """The same for one node, in plain integers."""


class RawScore(Protocol):
    """A score from the node alone that is then normalised over the feasible nodes."""

    name: str

    def raw(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Shape (rows,), before normalisation; None where Kubernetes skips the score."""
        ...

    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        """Shape (nodes,): 0 to 100; nodes whose rank is negative don't count."""
        ...


class DomainScores(NamedTuple):
    """A score per domain of a key of few domains; the last entry is of nodes without it."""

    key: TopologyKey
    scores: list[int]

    def at(self, slot: int) -> int:
        """Of one node."""
        return self.scores[self.key.cells[slot]]

    def weighed(self, weight: int) -> "DomainScores":
        return DomainScores(self.key, [weight * each for each in self.scores])


Vacant = Callable[[TopologyKey], list[bool]]
"""Per domain of a key of few: whether no feasible node is in it; last, of those without it."""

Scale = Callable[[int, int], int]
"""Given how far above the least raw score a node is, and how far the greatest is: the node's weighed score."""

FAR = 2**61
"""Beyond every score before normalisation."""


class Bounds(NamedTuple):
    """The least and the greatest raw score of the nodes that count."""

    least: int
    greatest: int
    others: Ints | None
    """Shape (nodes,): -1 for nodes that don't count, else 0; None if all are within the bounds."""

    def capped(self, raw: Ints) -> Ints:
        """Shape (nodes,): at most the greatest on every node."""
        return raw if self.others is None else np.minimum(raw, self.greatest)

    def above(self, raw: Ints) -> Ints:
        """Shape (nodes,): how far above the least, within the bounds on every node."""
        above = raw - self.least if self.least else raw
        return above if self.others is None else above & ~self.others


def bounds_of(raw: Ints, ranks: Ints) -> Bounds | None:
    """The bounds over the nodes whose rank is not negative; None if there is none."""
    if not len(raw):
        return None
    low, high = raw.argmin(), raw.argmax()
    if ranks[low] >= 0 and ranks[high] >= 0:
        return Bounds(int(raw[low]), int(raw[high]), None)
    others = ranks >> SIGN_BIT
    aside = others & FAR
    least, greatest = int((raw + aside).min()), int((raw - aside).max())
    return None if least > greatest else Bounds(least, greatest, others)
