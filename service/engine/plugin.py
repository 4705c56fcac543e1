"""What plugins share: the shapes of their answers. Plugins know nothing of each other."""

from typing import NamedTuple, Protocol

from service.engine.columns import Ints, Mask, Rows
from service.engine.nodes import NodeTable
from service.engine.rules import NodeRules

MAX_NODE_SCORE = 100


class Failure(NamedTuple):
    """One reason, on the nodes that fail for it."""

    reason: str
    nodes: Mask
    unresolvable: Mask | bool
    """Where removing pods could not help (Kubernetes' UnschedulableAndUnresolvable)."""


class NodeFilter(Protocol):
    """A filter that looks at one node alone, so that its mask is cached per rules and node."""

    name: str

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        """Shape (rows,): the nodes that pass."""
        ...

    def failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Every reason on every node; masks of the shape (nodes,)."""
        ...


class NodeScore(Protocol):
    """A score that looks at one node alone and is not normalised over the feasible ones."""

    name: str

    def applies(self, rules: NodeRules) -> bool:
        """False where Kubernetes skips the score."""
        ...

    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        """Shape (rows,): 0 to 100."""
        ...

    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        """The same for one node, in plain integers."""
        ...


class RawScore(Protocol):
    """A score from the node alone that is then normalised over the feasible nodes."""

    name: str

    def raw(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Shape (rows,), before normalisation; None where Kubernetes skips the score."""
        ...

    def normalize(self, raw: Ints, infeasible: Ints) -> Ints:
        """Shape (nodes,): 0 to 100; `infeasible` is -1 for nodes that don't count, else 0."""
        ...


FAR = 2**61
"""Beyond every score before normalisation."""


def bounds_of(raw: Ints, infeasible: Ints) -> tuple[int, int] | None:
    """The least and the greatest over the feasible nodes; None if there is none."""
    if not len(raw):
        return None
    aside = infeasible & FAR
    least, greatest = int((raw + aside).min()), int((raw - aside).max())
    return None if least > greatest else (least, greatest)
