"""The plugin interface: filters, scores, reasons, preemption support, and queueing hints.

Each plugin is one module of `service.engine.plugins` and contains everything about it; the list is
in that package. Plugins are independent of each other. Placements, refusals, explanations, timings,
and queueing hints iterate over the plugins of a profile (`service.engine.profiles.profile`) and
refer to none by name.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
from mypy_extensions import mypyc_attr
from typing_extensions import override

from service.engine.framework.events import ANY_CHANGE, Change, ClusterEvent, Pair
from service.engine.state.nodes.columns import ALL, Ints, Mask, Rows
from service.engine.state.nodes.counters import WeightedTerm
from service.engine.state.nodes.node_rules import NodeRules, ProfileRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import SIGN_BIT
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.model.cluster import plugin_args
from service.model.cluster.cluster_config import ClusterConfig, ResourceWeight, SchedulerProfile
from service.model.cluster.plugin_rules import Arguments
from service.model.cluster.versions.version import SchedulerVersion
from service.model.pods.pod import Pod

MAX_NODE_SCORE: Final = 100

Resources = tuple[tuple[str, int], ...]
"""Resources with their weights in a score."""


def resources_of(weights: Iterable[ResourceWeight]) -> Resources:
    """Convert resource weights to the form that scores use."""
    return tuple((weight.name, weight.weight) for weight in weights)


DEFAULT_RESOURCES = resources_of(plugin_args.DEFAULT_RESOURCES)


class Failure(NamedTuple):
    """One reason for refusal, with the nodes that fail for it."""

    reason: str
    nodes: Mask
    unresolvable: Mask | bool
    """The nodes where removing pods cannot help (Kubernetes' UnschedulableAndUnresolvable): a mask
    of the shape (nodes,), or one value for all nodes."""


class Headroom(NamedTuple):
    """The amount of one thing left on each node with the pod placed there; negative if refused.

    Pods that leave a node free the amount that they take.
    """

    reason: str
    """The reason for refusing the node."""
    spare: Ints
    """The amount left if all pods stay, shape (nodes,)."""
    resource: str = ""
    """The resource that pods' requests take, or "" if `taken` decides."""
    taken: Callable[[PodClass], int] | None = None
    """Returns the amount that a pod of a class takes. If this is None and `resource` is "", pods
    take nothing."""
    taken_in_code: Callable[[PodClass], int] | None = None
    """Returns what kube-scheduler's preemption lets a pod of a class give back, or None if that is
    what it takes."""
    counted: Mask | None = None
    """The nodes whose pods count, shape (nodes,), or None for all."""
    is_given: bool = False
    """Whether placed pods provide this instead of taking it, so that it shrinks when they leave."""


class Headrooms(NamedTuple):
    """The headrooms that decide a filter's verdict on every node, in the order of its reasons."""

    rooms: tuple[Headroom, ...] = ()
    unsure: Mask | None = None
    """The nodes that the headrooms do not decide and that the filter must check, shape (nodes,), or
    None if there are none."""
    first_only: bool = False
    """Whether the filter reports only the first of several reasons on a node."""


class Blame(NamedTuple):
    """Placed pods, on any nodes of a domain, that make one rule refuse a node."""

    rule: Hashable
    """The rule, which blames the same pods for all nodes of a domain."""
    key: TopologyKey
    domain: int | None
    """The domain in which pods are blamed, or None for all nodes that have the key."""
    taken: Callable[[PodClass], int]
    """Returns nonzero for the classes whose pods are blamed."""
    may_stay: int | None = 0
    """The number of these pods that the rule tolerates, or None if that depends on which pods
    leave."""
    counted: Mask | None = None
    """The nodes whose pods count, shape (nodes,), or None for all."""
    reason: str = ""
    """Why the rule refuses the node, as reported in the filter's failures, or "" for all of the
    filter's reasons."""


def permanent_headrooms(failures: Sequence[Failure]) -> Headrooms:
    """Return the headrooms of a filter that refuses the same nodes no matter which pods leave."""
    return Headrooms(
        tuple(Headroom(failure.reason, -failure.nodes.astype(np.int64)) for failure in failures)
    )


class PreFilterResult(NamedTuple):
    """A plugin's verdict on a pod before any node is examined."""

    names: frozenset[str] | None = None
    """The only nodes that the plugin allows, or None for all."""
    reason: str | None = None
    """Why the plugin rejects the pod on every node, or None."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Plugin:
    """A plugin as configured by one profile; either a `NodePlugin` or a `RelationPlugin`.

    It is not an ABC: compiled ABCs share the cache of their subclasses, so that instances of an
    interpreted subclass would also count as instances of its siblings.
    """

    name: ClassVar[str]
    filters: ClassVar[bool] = False
    weight: ClassVar[int] = 0
    """The default weight in the sum of scores, which a profile may override; 0 if the plugin does
    not score."""
    is_unnamed_if_skipped: ClassVar[bool] = False
    """Whether explanations omit the plugin from the list of skipped scoring plugins, because
    Kubernetes does not have it, or adds 0 to every node instead of skipping it."""
    prefilters: ClassVar[bool] = False
    """Whether `prefilter` may reject a pod, or allow only some nodes, before any node is
    examined."""
    judges_room: ClassVar[bool] = False
    """Whether the plugin refuses nodes with too little of a resource for the pod's requests, so
    that room can be reserved for a pod that has waited long."""
    binds_claims: ClassVar[bool] = False
    """Whether placing a pod that passes this filter binds volumes to its claims."""
    allocates_devices: ClassVar[bool] = False
    """Whether placing a pod that passes this filter allocates devices to its claims."""
    narrows: ClassVar[bool] = False
    """Whether the plugin allows only the nodes that a pod's rules name (`NodeRules.named`)."""
    events: ClassVar[frozenset[Change]] = ANY_CHANGE
    """The events that may change a rejection; `helps` examines each of them further."""
    arguments: ClassVar[type[Arguments] | None] = None
    """The type of the plugin's `args` in a profile's `pluginConfig`, which `of` reads, or None
    without arguments."""

    @classmethod
    def is_in(cls, version: SchedulerVersion) -> bool:
        """Return whether kube-scheduler of a version has the plugin.

        Profiles of clusters that follow another version cannot name it.
        """
        return True

    @classmethod
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        """Return the plugin as configured by a profile.

        Arguments come from the profile's `arguments_of`, or else from the cluster's settings.
        """
        return cls()

    def added_to(self, rules: ProfileRules) -> ProfileRules:
        """Return a profile's rules, extended by those that this plugin's arguments define."""
        return rules

    # For explanations: read directly from the columns, without caches.

    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """Return all reasons with the nodes that fail for each; masks have the shape (nodes,)."""
        raise NotImplementedError

    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        """Return the nodes that pass the filter in placements, shape (nodes,), bool.

        Returns None if the filter does not apply to pods of the class.
        """
        raise NotImplementedError

    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms | None:
        """Return the headrooms that decide the verdict on all nodes as pods leave, or None.

        Without them, preemption removes pods node by node, which is slow.
        """
        return None

    def blames(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> list[Blame] | None:
        """Return the placed pods that make the filter refuse a node, as one `Blame` per rule.

        Returns None if only pods on the node itself can be to blame; pods elsewhere then stay.
        """
        return None

    def admits_at(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> bool:
        """Return whether one node passes the filter."""
        raise NotImplementedError

    def has_score_for(self, pod_class: PodClass) -> bool:
        """Return whether Kubernetes computes the score instead of skipping the plugin."""
        raise NotImplementedError

    def normalized_scores(
        self, nodes: NodeTable, pod_class: PodClass, infeasible: Ints
    ) -> Ints | None:
        """Return scores from 0 to 100 for the feasible nodes, shape (nodes,), int64.

        `infeasible` is 0 for feasible nodes and -1 for others. Returns None if Kubernetes skips the
        score.
        """
        raise NotImplementedError

    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        """Return the verdict on pods of a class before any node is examined, or None.

        If it rejects a pod, the filter must refuse all nodes too, because placements call only the
        filter.
        """
        return None

    # Queueing hints

    @classmethod
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Return whether an event listed in `events` can change a rejection for these reasons.

        A needless True costs one attempt; a wrong False leaves the pod waiting.
        """
        return True

    @classmethod
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        """Return labels such that `labels_of` returns one of them for every event that can help.

        Returns None if any event may help.
        """
        return None

    @classmethod
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        """Return the labels that an event concerns, to compare with `topics`, or None for any."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class NodePlugin(Plugin):
    """A plugin that judges each node by itself, so that results are cached by rules and node.

    It reads the columns of nodes and the pod's rules on nodes. A subclass implements `admits` if it
    filters, and `scores` if it scores; everything else is derived from these, and may be overridden
    with a faster form.
    """

    reads_usage: ClassVar[bool] = False
    """Whether the plugin reads the pods placed on a node, and not only the node itself; it is then
    called more often."""
    normalizes: ClassVar[bool] = False
    """Whether scores depend on those of the other feasible nodes, so that `normalize` must be
    called. It cannot be combined with `reads_usage`."""
    reason: ClassVar[str] = ""
    """The reason for refusing a node, unless `node_failures` gives others."""

    def applies(self, rules: NodeRules) -> bool:
        """Return whether the filter may reject a node; if not, it is skipped."""
        return True

    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        """Return the nodes that pass, shape (rows,), bool."""
        raise NotImplementedError

    def admits_one(self, nodes: NodeTable, rules: NodeRules, slot: int) -> bool:
        """Return whether one node passes; override this to avoid one-element arrays."""
        return bool(self.admits(nodes, rules, np.array([slot]))[0])

    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Return all reasons with the nodes that fail for each; masks have the shape (nodes,)."""
        failing = ~self.admits(nodes, rules, ALL)
        return [Failure(self.reason, failing, unresolvable=not self.reads_usage)]

    def scores_for(self, rules: NodeRules) -> bool:
        """Return whether Kubernetes computes the score for pods with these rules."""
        return True

    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Return scores from 0 to 100, or raw scores for `normalize`; shape (rows,), int64.

        Returns None if the score is skipped.
        """
        raise NotImplementedError

    def score(self, nodes: NodeTable, rules: NodeRules, slot: int) -> int:
        """Return the score of one node; called only for plugins that read usage."""
        scores = self.scores(nodes, rules, np.array([slot]))
        return 0 if scores is None else int(scores[0])

    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        """Scale raw scores to 0 to 100, shape (nodes,), int64, ignoring nodes of negative rank."""
        return raw

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        return self.node_failures(nodes, pod_class.template.rules)

    @override
    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        return self.admits(nodes, pod_class.template.rules, ALL)

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms | None:
        rules = pod_class.template.rules
        if not self.applies(rules):
            return Headrooms()
        if self.reads_usage:
            return None
        return permanent_headrooms(self.node_failures(nodes, rules))

    @override
    def admits_at(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> bool:
        rules = pod_class.template.rules
        return not self.applies(rules) or self.admits_one(nodes, rules, slot)

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
    """The score of each domain of a key with few domains; last, that of nodes without the key."""

    key: TopologyKey
    scores: list[int]

    def at(self, slot: int) -> int:
        """Return the score of one node."""
        return self.scores[self.key.cells[slot]]


Vacant = Callable[[TopologyKey], list[bool]]
"""Returns, for each domain of a key with few domains, whether it has no feasible node; the last
entry is for nodes without the key."""

Scale = Callable[[int, int], int]
"""Maps a raw score's distance from the lowest, and the distance between highest and lowest, to a
weighted score."""

FAR = 2**61
"""A number that exceeds every raw score."""


class Bounds(NamedTuple):
    """The lowest and highest raw scores of the nodes that count."""

    least: int
    greatest: int
    others: Ints | None
    """The nodes that do not count, shape (nodes,), int64: -1 for these, else 0; None if the raw
    scores of all nodes are within the bounds."""

    def capped(self, raw: Ints) -> Ints:
        """Cap raw scores, shape (nodes,), at the highest one that counts."""
        return raw if self.others is None else np.minimum(raw, self.greatest)

    def above(self, raw: Ints) -> Ints:
        """Return how far raw scores exceed the lowest, shape (nodes,), int64.

        It is 0 for nodes that do not count.
        """
        above = raw - self.least if self.least else raw
        return above if self.others is None else above & ~self.others


def bounds_of(raw: Ints, ranks: Ints) -> Bounds | None:
    """Return the bounds over the nodes with non-negative rank, or None if there are none."""
    if not len(raw):
        return None
    low, high = raw.argmin(), raw.argmax()
    if ranks[low] >= 0 and ranks[high] >= 0:
        return Bounds(int(raw[low]), int(raw[high]), None)
    others = ranks >> SIGN_BIT
    offset = others & FAR
    least, greatest = int((raw + offset).min()), int((raw - offset).max())
    return None if least > greatest else Bounds(least, greatest, others)


@mypyc_attr(allow_interpreted_subclasses=True)
class RelativeScore:
    """A pod's score based on its relations to other pods, in every available form."""

    terms: tuple[WeightedTerm, ...] = ()
    """The terms, or empty if `RelationPlugin.scale` does not apply. `scale` computes a node's score
    from its sum of these terms, relative to the lowest and highest sums of the candidates."""

    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """Return the scores by domain, or None if more than one key with few domains is needed."""
        raise NotImplementedError

    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """Return scores from 0 to 100 times `weight`, shape (nodes,), int64, or None if all are 0.

        Nodes of negative rank do not count.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class RelationPlugin(Plugin):
    """A plugin whose verdict depends on other pods, read through counters.

    It is called for each placement.
    """

    def applies(self, pod_class: PodClass) -> bool:
        """Return whether the filter or score can ever affect pods of the class.

        This is decided once per class, by its template, volumes, and devices; if it is False, the
        plugin is skipped.
        """
        return True

    def concerns(self, pod_class: PodClass) -> bool:
        """Return whether the filter may currently reject a node for pods of the class."""
        raise NotImplementedError

    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """Return the vetoes of each rule.

        A rule that pods of the `expected` classes may still satisfy counts as satisfied.
        """
        raise NotImplementedError

    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        """Return the score of pods of a class, or None if Kubernetes skips it."""
        raise NotImplementedError

    def scale(self, above: int, span: int) -> int:
        """Return a node's score, from 0 to 100, based on its sum of `RelativeScore.terms`.

        At most one plugin of a profile has such terms.

        Args:
            above: the difference between the node's sum and the least one.
            span: the difference between the greatest sum of the feasible nodes and the least one.
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
    def admits_at(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> bool:
        return not self.concerns(pod_class) or not any(
            vetoes.at(slot) for vetoes in self.vetoes(nodes, pod_class)
        )

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
