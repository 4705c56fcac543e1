"""What a plugin is: the state that it reads, filter, score, reasons, and the changes that may help.

Each plugin is one module of `service.engine.plugins`, and all that is known of it is there; the list is in that package.
Plugins know nothing of each other. Placements, refusals, explanations, timings and queueing hints go over the plugins
of a profile (`service.engine.pipeline`) and name none.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
from mypy_extensions import mypyc_attr
from typing_extensions import override

from service.engine.cluster_events import ANY_CHANGE, Change, ClusterEvent, Pair
from service.engine.state.classes import PodClass
from service.engine.state.columns import ALL, Ints, Mask, Rows
from service.engine.state.nodes import NodeTable
from service.engine.state.rank_bits import SIGN_BIT
from service.engine.state.rules import NodeRules
from service.engine.state.topology import TopologyKey
from service.engine.state.vetoes import Vetoes
from service.engine.state.views import Weighed
from service.model.config import ClusterConfig, SchedulerProfile
from service.model.objects import Pod

MAX_NODE_SCORE: Final = 100

Resources = tuple[tuple[str, int], ...]
"""Resources with the weights that they have in a score."""
DEFAULT_RESOURCES: Resources = (("cpu", 1), ("memory", 1))


class Failure(NamedTuple):
    """One reason, on the nodes that fail for it."""

    reason: str
    nodes: Mask
    unresolvable: Mask | bool
    """Where removing pods could not help (Kubernetes' UnschedulableAndUnresolvable)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Plugin:
    """One plugin as one profile has it. Subclasses of `NodePlugin` and `RelationPlugin` are what there is.

    It is no ABC: compiled ones share what they remember of their subclasses, so that a class of Python that inherits from
    one is an instance of its siblings, too.
    """

    name: ClassVar[str]
    filters: ClassVar[bool] = False
    weight: ClassVar[int] = 0
    """In the sum of scores, unless a profile gives another; 0: it does not score."""
    narrows: ClassVar[bool] = False
    """Whether it leaves only the nodes that a pod's rules name (`NodeRules.named`), by `narrowed`."""
    conflict: ClassVar[str] = ""
    """The reason where no node is left of those."""
    events: ClassVar[frozenset[Change]] = ANY_CHANGE
    """What may turn a rejection; see `helps`."""
    takes_arguments: ClassVar[bool] = False
    """Whether profiles may give it `pluginConfig`; see `configured`."""

    @classmethod
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        """The plugin as this profile has it."""
        return cls.configured(profile.arguments.get(cls.name, {}))

    @classmethod
    def configured(cls, arguments: Mapping[str, object]) -> Self:
        """The plugin with the `args` of its `pluginConfig`. Raises ValueError for what it does not understand."""
        return cls()

    # What people ask: straight from the columns, nothing cached

    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """Every reason on every node; masks of the shape (nodes,)."""
        raise NotImplementedError

    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        """Shape (nodes,): the nodes that placements let through; None where pods of the class are not looked at."""
        raise NotImplementedError

    def has_score_for(self, pod_class: PodClass) -> bool:
        """False where Kubernetes skips the score without looking at a node."""
        raise NotImplementedError

    def normalized_scores(
        self, nodes: NodeTable, pod_class: PodClass, infeasible: Ints
    ) -> Ints | None:
        """Shape (nodes,): 0 to 100, where `infeasible` is 0 and not -1; None where Kubernetes skips the score."""
        raise NotImplementedError

    def narrowed(self, pod_class: PodClass) -> frozenset[str] | None:
        """The names of the only nodes that it leaves, before any is looked at (PreFilter); None: it leaves all."""
        return None

    # Queueing hints

    @classmethod
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Whether an event, of those in `events`, can turn a rejection for these reasons.

        A needless yes costs one attempt, a wrong no leaves the pod waiting.
        """
        return True

    @classmethod
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        """Labels of which an event has one at least (`labels_of`) if it helps; None: any event may."""
        return None

    @classmethod
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        """The labels that an event is about, for `topics`; None: it may concern anybody."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class NodePlugin(Plugin):
    """Looks at one node at a time, so that what it says is kept per rules and node.

    It reads the columns of nodes and the pod's rules on them. A subclass gives `admits` if it filters, `scores` if it
    scores; all else has a form that follows from these, and may be given in a quicker one.
    """

    reads_usage: ClassVar[bool] = False
    """Whether it reads what is placed on a node, and not the node alone: it is then asked more often."""
    normalizes: ClassVar[bool] = False
    """Whether its scores mean something only beside those of the other feasible nodes; see `normalize`.

    Not together with `reads_usage`."""
    reason: ClassVar[str] = ""
    """Why a node is refused, unless `node_failures` says it otherwise."""

    def applies(self, rules: NodeRules) -> bool:
        """False where the filter passes every node."""
        return True

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        """Shape (rows,): the nodes that pass."""
        raise NotImplementedError

    def admits_one(self, nodes: NodeTable, rules: NodeRules, slot: int) -> bool:
        """`admits` for one node."""
        return bool(self.admits(nodes, rules, np.array([slot]))[0])

    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Every reason on every node; masks of the shape (nodes,)."""
        failing = ~self.admits(nodes, rules, ALL)
        return [Failure(self.reason, failing, unresolvable=not self.reads_usage)]

    def scores_for(self, rules: NodeRules) -> bool:
        """False where Kubernetes skips the score."""
        return True

    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Shape (rows,): 0 to 100, or any amounts that `normalize` makes such; None where the score is skipped."""
        raise NotImplementedError

    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        """`scores` for one node, in plain integers; asked only of plugins that read usage."""
        scores = self.scores(nodes, rules, np.array([slot]))
        return 0 if scores is None else int(scores[0])

    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        """Shape (nodes,): 0 to 100; nodes whose rank is negative don't count."""
        return raw

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        return self.node_failures(nodes, pod_class.template.rules)

    @override
    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        return self.admits(nodes, pod_class.template.rules, ALL)

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return self.scores_for(pod_class.template.rules)

    @override
    def normalized_scores(
        self, nodes: NodeTable, pod_class: PodClass, infeasible: Ints
    ) -> Ints | None:
        rules = pod_class.template.rules
        if not self.scores_for(rules):
            return None
        scores = self.scores(nodes, rules, ALL)
        if scores is None or not self.normalizes:
            return scores
        return self.normalize(scores, infeasible)


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


@mypyc_attr(allow_interpreted_subclasses=True)
class RelativeScore:
    """The score of one pod by its relations to others, in the forms in which it may be had."""

    terms: tuple[Weighed, ...] = ()
    """If the score of a node is but where its sum of these lies between the least and the greatest of the candidates,
    by `RelationPlugin.scale`; else empty."""

    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """The scores where all that counts is a key of few domains; None where it is not."""
        raise NotImplementedError

    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """Shape (nodes,): 0 to 100, times a weight; nodes of negative rank don't count. None: all are 0."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class RelationPlugin(Plugin):
    """Looks at the other pods, by counters, so that it is asked for each placement."""

    def concerns(self, pod_class: PodClass) -> bool:
        """False where the filter passes every node, so that it costs nothing."""
        raise NotImplementedError

    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """What each rule excludes; one that pods of the `expected` classes may still meet is taken as met."""
        raise NotImplementedError

    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        """None where Kubernetes skips the score."""
        raise NotImplementedError

    def scale(self, above: int, span: int) -> int:
        """The score, 0 to 100, of a node whose sum of `RelativeScore.terms` is so far above the least.

        `span` is how far the greatest sum of the feasible nodes is above the least. Among the plugins of a profile at
        most one has such terms.
        """
        raise NotImplementedError

    @override
    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        if not self.concerns(pod_class):
            return None
        passing = np.ones(nodes.size, dtype=np.bool_)
        for vetoes in self.vetoes(nodes, pod_class):
            passing &= vetoes.nodes == 0
        return passing

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return True

    @override
    def normalized_scores(
        self, nodes: NodeTable, pod_class: PodClass, infeasible: Ints
    ) -> Ints | None:
        scoring = self.scoring(nodes, pod_class)
        if scoring is None:
            return None
        scores = scoring.on_nodes(infeasible, 1)
        return np.zeros(nodes.size, dtype=np.int64) if scores is None else scores
