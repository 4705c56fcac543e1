"""InterPodAffinity: required terms exclude nodes by domain, preferred ones score, both symmetric.

Every question is a read of counters: how many matching pods, or owners of a matching term, the
node's domain holds.
"""

from collections.abc import Sequence

import numpy as np

from service.engine.classes import OwnedTerm, PodClass, Role
from service.engine.columns import Ints, Mask
from service.engine.counters import DomainCounter
from service.engine.nodes import NodeTable
from service.engine.plugin import MAX_NODE_SCORE, Failure, bounds_of
from service.engine.profile import AffinityArguments

NAME = "InterPodAffinity"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity:
    name = NAME

    def __init__(self, arguments: AffinityArguments) -> None:
        self._arguments = arguments

    def concerns(self, pod_class: PodClass) -> bool:
        """False where the filter passes every node, so that it costs nothing."""
        template = pod_class.template
        return bool(template.affinity or template.anti_affinity or _forbidding(pod_class))

    def admits(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> Mask | None:
        """Shape (nodes,): the nodes that pass; None if all do.

        Required affinity to pods of an `expected` class only asks for the topology key.
        """
        mask: Mask | None = None
        if pod_class.template.affinity:
            mask = _affinity(nodes, pod_class, expected)
        for counter in _repelling(pod_class):
            free = ~counter.presence()
            mask = free if mask is None else mask & free
        return mask

    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """One reason a node: affinity before anti-affinity before others' anti-affinity."""
        open_nodes = np.ones(nodes.size, dtype=np.bool_)
        failures = []
        if pod_class.template.affinity:
            passing = _affinity(nodes, pod_class)
            failures.append(Failure(AFFINITY, ~passing, unresolvable=True))
            open_nodes &= passing
        own = [term.counter for term in pod_class.template.anti_affinity]
        others = [term.counter for term in _forbidding(pod_class)]
        for reason, counters in ((ANTI_AFFINITY, own), (EXISTING, others)):
            held = np.zeros(nodes.size, dtype=np.bool_)
            for counter in counters:
                held |= counter.presence()
            failures.append(Failure(reason, held & open_nodes, unresolvable=False))
            open_nodes &= ~held
        return failures

    def raw(self, nodes: NodeTable, pod_class: PodClass) -> Ints | None:
        """Shape (nodes,): the weights of all pods that attract less those that repel.

        None where nothing matched at all, and the score is skipped.
        """
        arguments = self._arguments
        if arguments.ignore_preferred_of_existing and not pod_class.template.preferred:
            return None
        per_node = [
            term.weight * self._counts(term.counter)
            for term in pod_class.template.preferred
            if term.counter.total
        ]
        for owned in _owned_terms(pod_class):
            weight = self._weight(owned)
            if weight and owned.counter.total:
                per_node.append(weight * owned.counter.per_node())
        return sum(per_node[1:], per_node[0]) if per_node else None

    def _counts(self, counter: DomainCounter) -> Ints:
        """Shape (nodes,): matching pods in the node's domain, or 1 for any."""
        if self._arguments.weight_per_term:
            return counter.presence().astype(np.int64)
        return counter.per_node()

    def normalize(self, raw: Ints, infeasible: Ints) -> Ints:
        """Shape (nodes,): 0 to 100 between the least and the greatest; all 0 if they are equal."""
        bounds = bounds_of(raw, infeasible)
        if bounds is None or bounds[0] == bounds[1]:
            return np.zeros_like(raw)
        least, greatest = bounds
        above = (raw - least) & ~infeasible
        if greatest - least > len(raw):
            return _scaled(above, greatest - least)
        return _scaled(np.arange(greatest - least + 1), greatest - least).take(above)

    def _weight(self, term: OwnedTerm) -> int:
        arguments = self._arguments
        match term.role:
            case Role.ATTRACTS_HARD:
                return arguments.hard_weight
            case Role.ATTRACTS:
                return term.weight if arguments.symmetric_affinity else 0
            case Role.REPELS:
                return -term.weight if arguments.symmetric_anti_affinity else 0
            case Role.FORBIDS:
                return 0


def _scaled(above: Ints, span: int) -> Ints:
    """In floating point and cut off, as Kubernetes does."""
    scaled: Ints = (MAX_NODE_SCORE * (above / span)).astype(np.int64)
    return scaled


def _affinity(nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()) -> Mask:
    """All terms met, or the first-pod rule: nobody matches yet and the pod matches itself."""
    terms = pod_class.template.affinity
    nobody = not any(term.counter.total for term in terms)
    first = nobody and pod_class.matches_all(terms)
    mask = nodes.alive
    for term in terms:
        hoped_for = any(each in term.matcher.classes for each in expected)
        keyed_is_enough = first or hoped_for
        mask = mask & (term.counter.key.keyed if keyed_is_enough else term.counter.presence())
    return mask


def _owned_terms(pod_class: PodClass) -> list[OwnedTerm]:
    return [term for entry in pod_class.matched for term in entry.terms]


def _forbidding(pod_class: PodClass) -> list[OwnedTerm]:
    """Required anti-affinity terms of placed pods that match this class."""
    return [
        term
        for entry in pod_class.matched
        for term in entry.terms
        if term.role is Role.FORBIDS and term.counter.total
    ]


def _repelling(pod_class: PodClass) -> list[DomainCounter]:
    own = [term.counter for term in pod_class.template.anti_affinity if term.counter.total]
    return own + [term.counter for term in _forbidding(pod_class)]
