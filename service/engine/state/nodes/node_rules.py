"""The part of a pod that is judged by one node alone: requests, ports, tolerations, selectors.

Many pods, and many templates, share one `NodeRules`. Masks and scores over nodes that depend on
nothing else are cached for each `NodeRules` (`service.engine.ranking.rank_cache`).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from service.engine.state.nodes.node_table import (
    AMOUNT_MAX,
    HostPort,
    NodeTable,
    image_name,
)
from service.model.objects.pod_resource_requests import (
    PodRequests,
    host_ports,
    placed_requests,
    pod_requests,
)
from service.model.objects.pods_and_nodes import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodResize,
    PodSpec,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
)

NODE_NAME_FIELD = "metadata.name"


class RequiredNodes(NamedTuple):
    """A nodeSelector and the required node affinities, which must all hold.

    If nothing is required, `selector` and `affinities` are empty.
    """

    selector: tuple[tuple[str, str], ...]
    affinities: tuple[NodeSelector, ...]
    empty_term_matches_all: bool

    @property
    def anything(self) -> bool:
        return bool(self.selector or self.affinities)


class NamedDataSet(NamedTuple):
    """A data set that a pod names."""

    name: str
    nodes: NodeSelector | None
    """The nodes that have it, or None if there is no data set of the name."""


class DataRules(NamedTuple):
    """The data sets that a pod names, and where they are now."""

    required: tuple[NamedDataSet, ...]
    preferred: tuple[tuple[int, NamedDataSet], ...]
    """Each with its weight."""

    def found(self) -> tuple[NamedDataSet, ...]:
        """Return all data sets that the pod names."""
        return (*self.required, *(each for _, each in self.preferred))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeRules:
    """The rules of a pod on a node; interned, so it is compared by identity."""

    needs: "PodResources"
    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    """None if the list is absent; the score is then skipped."""
    node_name: str | None
    enforced: RequiredNodes
    """The required terms that the profile adds (NodeAffinityArgs.addedAffinity)."""
    static_key: Hashable
    """Equal for rules that differ only in amounts and ports, not in what they ask of the node
    itself."""
    named: frozenset[str] | None = None
    """The only nodes that `required` names, or None if it names none."""
    anywhere: "NodeRules | None" = None
    """These rules without the named nodes, which all pods of one DaemonSet share, or None if no
    node is named."""
    data: DataRules | None = None
    """None for pods that name no data."""


class ProfileRules(NamedTuple):
    """The rules that a profile has for its pods besides their own."""

    affinity: NodeAffinity | None = None
    """Node affinity that all pods of the profile have in addition."""
    constraints: tuple[TopologySpreadConstraint, ...] = ()
    """Spread constraints of those pods that have none of their own."""
    constraints_need_keys: bool = True
    """Whether these leave nodes without any of their keys out of the scores."""


class PodUsage(NamedTuple):
    """The amounts that a placed pod takes of its node."""

    amounts: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    """cpu (milli-units) and memory (bytes) as scores see them: with defaults for containers that
    request none."""

    @classmethod
    def of(cls, spec: PodSpec, resize: PodResize | None = None) -> Self:
        """Compute the use of a placed pod; an in-place resize that is under way raises it."""
        return cls.by(placed_requests(spec, resize))

    @classmethod
    def by(cls, requests: PodRequests) -> Self:
        return cls(tuple(_bounded(requests.amounts).items()), _scored(requests))


def _bounded(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: min(amount, AMOUNT_MAX) for name, amount in amounts.items()}


def _scored(requests: PodRequests) -> tuple[int, int]:
    return min(requests.nonzero_cpu, AMOUNT_MAX), min(requests.nonzero_memory, AMOUNT_MAX)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PodResources:
    """The needs that follow from a spec's containers alone, which many specs have in common.

    Everything except `use` is for pods that are still to be placed.
    """

    use: PodUsage
    amounts: tuple[tuple[str, int], ...]
    """The requested amounts above zero: cpu in milli-units, all else in whole units."""
    requests_cpu_or_memory: bool
    """Whether cpu or memory is requested above zero; if not, balanced allocation is skipped."""
    cpu: int
    memory: int
    scored: tuple[int, int]
    """cpu (milli-units) and memory (bytes), with defaults for containers that request none."""
    ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    """The images with their tags, one for each container and init container."""


class Identity(NamedTuple):
    """What tells one `NodeRules` from another."""

    amounts: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    ports: tuple[HostPort, ...]
    static_key: Hashable


class RulesInterner:
    """Keeps one `NodeRules` for each distinct value, and one `PodResources`, as long as something uses it."""

    def __init__(
        self,
        nodes: NodeTable,
        *,
        empty_term_matches_all: bool,
        dropped: Callable[[NodeRules, bool], None],
    ) -> None:
        """`dropped` hears of rules that nothing uses any more, and whether no others have their `static_key`."""
        self._nodes = nodes
        self._dropped = dropped
        self._rules: dict[Identity, NodeRules] = {}
        self._identities: dict[NodeRules, Identity] = {}
        self._users: Counter[NodeRules] = Counter()
        self._static_keys: Counter[Hashable] = Counter()
        self._needs: dict[bytes, PodResources] = {}
        self._needs_identities: dict[PodResources, bytes] = {}
        self._needs_users: Counter[PodResources] = Counter()
        self._unrestricted = RequiredNodes((), (), empty_term_matches_all)

    def rules_of(
        self,
        pod: Pod,
        needs: PodResources,
        added: NodeAffinity | None = None,
        data: DataRules | None = None,
    ) -> NodeRules:
        """Return the rules of a pod, with one user more; `release` takes that user away.

        `needs` are those of the pod's spec; `added` is what its profile asks of nodes for all pods;
        `data` are the data sets that the pod names.
        """
        asked = self._terms_of(pod, added, data)
        named, rest = _split_names(asked.required)
        if named is None:
            return self._interned(needs, asked)
        anywhere = self._interned(needs, asked.requiring(rest))
        return _compile(needs, asked, anywhere.static_key, named, anywhere)

    def _terms_of(
        self, pod: Pod, added: NodeAffinity | None, data: DataRules | None
    ) -> "_NodeTerms":
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        return _NodeTerms(
            spec.tolerations,
            self._required(spec.node_selector, affinity),
            _preferred(affinity, added),
            self._required(None, added),
            pod.required_node_name,
            data,
        )

    def _required(
        self, labels: dict[str, str] | None, affinity: NodeAffinity | None
    ) -> RequiredNodes:
        if not labels and affinity is None:
            return self._unrestricted
        return RequiredNodes(
            tuple(sorted(labels.items())) if labels else (),
            _required_selectors(affinity) if affinity is not None else (),
            self._unrestricted.empty_term_matches_all,
        )

    def _interned(self, needs: PodResources, asked: "_NodeTerms") -> NodeRules:
        static_key = (needs.images, msgspec.json.encode(asked))
        identity = Identity(needs.amounts, needs.scored, needs.ports, static_key)
        rules = self._rules.get(identity)
        if rules is None:
            rules = self._rules[identity] = _compile(needs, asked, static_key)
            self._identities[rules] = identity
            self._static_keys[static_key] += 1
            self._nodes.hold_keys(asked.label_keys())
        self._users[rules] += 1
        return rules

    def hold_needs(self, spec: PodSpec) -> PodResources:
        """Return what the containers of a spec need, with one user more; `release_needs` takes that away."""
        identity = msgspec.json.encode(
            (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        )
        found = self._needs.get(identity)
        if found is None:
            found = self._needs[identity] = _needs(spec)
            self._needs_identities[found] = identity
        self._needs_users[found] += 1
        return found

    def release_needs(self, needs: PodResources) -> None:
        """Note that one user less has the needs; forget those that nothing uses."""
        self._needs_users[needs] -= 1
        if not self._needs_users[needs]:
            del self._needs_users[needs]
            del self._needs[self._needs_identities.pop(needs)]

    def release(self, rules: NodeRules) -> None:
        """Note that one user less has the rules; forget rules that nothing uses."""
        rules = rules.anywhere or rules
        self._users[rules] -= 1
        if self._users[rules]:
            return
        del self._users[rules]
        identity = self._identities.pop(rules)
        del self._rules[identity]
        self._static_keys[identity.static_key] -= 1
        is_last = not self._static_keys[identity.static_key]
        if is_last:
            del self._static_keys[identity.static_key]
        self._nodes.release_keys(
            label_keys(rules.required, rules.preferred, rules.enforced, rules.data)
        )
        self._dropped(rules, is_last)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the kind and about the size in bytes of each thing that is kept."""
        for identity in self._rules:
            size = size_of_rules(identity.static_key)
            yield "rules", size + AMOUNT_BYTES * len(identity.amounts)
        for encoded in self._needs:
            yield "needs", RULES_BYTES + 2 * len(encoded)


def _required_selectors(affinity: NodeAffinity) -> tuple[NodeSelector, ...]:
    lists = (
        affinity.required_during_scheduling_required_during_execution,
        affinity.required_during_scheduling_ignored_during_execution,
    )
    return tuple([selector for selector in lists if selector is not None])


def _preferred(
    affinity: NodeAffinity | None, added: NodeAffinity | None
) -> tuple[PreferredSchedulingTerm, ...] | None:
    own = more = None
    if affinity is not None:
        own = affinity.preferred_during_scheduling_ignored_during_execution
    if added is not None:
        more = added.preferred_during_scheduling_ignored_during_execution
    return own if more is None else (*(own or ()), *more)


def _needs(spec: PodSpec) -> PodResources:
    containers = (*spec.init_containers, *spec.containers)
    requests = pod_requests(spec)
    amounts = _bounded(requests.amounts)
    # Placed and incoming pods get different defaults only if the pod as a whole has requests.
    return PodResources(
        use=PodUsage.by(requests) if spec.resources is None else PodUsage.of(spec),
        amounts=tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0)),
        requests_cpu_or_memory=bool(amounts.get("cpu") or amounts.get("memory")),
        cpu=amounts.get("cpu", 0),
        memory=amounts.get("memory", 0),
        scored=_scored(requests),
        ports=tuple(sorted(host_ports(spec))),
        images=tuple(
            image_name(container.image) if container.image else "" for container in containers
        ),
    )


RULES_BYTES, AMOUNT_BYTES = 1_024, 128
"""About what rules, and one amount that they ask for, take besides their identity."""


def size_of_rules(static_key: Hashable) -> int:
    """Return about how many bytes rules and their identity take."""
    parts = static_key if isinstance(static_key, tuple) else ()
    return RULES_BYTES + sum(8 * len(part) for part in parts if isinstance(part, bytes))


def label_keys(
    required: RequiredNodes,
    preferred: tuple[PreferredSchedulingTerm, ...] | None,
    enforced: RequiredNodes,
    data: DataRules | None,
) -> tuple[str, ...]:
    """Return the labels of nodes that rules read, each once."""
    terms: list[NodeSelectorTerm | None] = [each.preference for each in preferred or ()]
    for found in () if data is None else data.found():
        terms += found.nodes.node_selector_terms if found.nodes is not None else ()
    names: dict[str, None] = {}
    for each in (required, enforced):
        names.update(dict.fromkeys(name for name, _ in each.selector))
        for affinity in each.affinities:
            terms += affinity.node_selector_terms
    for term in terms:
        for requirement in (term.match_expressions if term else None) or ():
            names[requirement.key] = None
    return tuple(names)


class _NodeTerms(NamedTuple):
    """The rules on nodes of a pod, and those that its profile has for all pods."""

    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    enforced: RequiredNodes
    node_name: str | None
    data: DataRules | None

    def label_keys(self) -> tuple[str, ...]:
        """Return the labels of nodes that the rules read."""
        return label_keys(self.required, self.preferred, self.enforced, self.data)

    def requiring(self, required: RequiredNodes) -> "_NodeTerms":
        """Return a copy with other requirements."""
        return self._replace(required=required)


def _split_names(required: RequiredNodes) -> tuple[frozenset[str] | None, RequiredNodes]:
    """Split the nodes that affinities of one term name (None: all) from other requirements."""
    named: frozenset[str] | None = None
    others = []
    for affinity in required.affinities:
        names, other = _split_name(affinity)
        if names is not None:
            named = names if named is None else named & names
        if other is not None:
            others.append(other)
    if named is None:
        return None, required
    return named, RequiredNodes(required.selector, tuple(others), required.empty_term_matches_all)


def _split_name(affinity: NodeSelector) -> tuple[frozenset[str] | None, NodeSelector | None]:
    terms = affinity.node_selector_terms
    term = terms[0] if len(terms) == 1 else None
    names = names_in(term)
    if term is None or names is None:
        return None, affinity
    rest = tuple(field for field in term.match_fields or () if not _names_nodes(field))
    if not rest and not term.match_expressions:
        return names, None
    other = replace(term, match_fields=rest)
    return names, replace(affinity, node_selector_terms=(other,))


def names_in(term: NodeSelectorTerm | None) -> frozenset[str] | None:
    """Return the nodes to which a term restricts pods by name, or None if it names none."""
    fields = (term.match_fields if term else None) or ()
    names = [frozenset(field.values or ()) for field in fields if _names_nodes(field)]
    return frozenset.intersection(*names) if names else None


def _names_nodes(requirement: NodeSelectorRequirement) -> bool:
    """Return whether the requirement holds only on the nodes that its values name."""
    return requirement.key == NODE_NAME_FIELD and requirement.operator == "In"


def _compile(
    needs: PodResources,
    asked: _NodeTerms,
    static_key: Hashable,
    named: frozenset[str] | None = None,
    anywhere: NodeRules | None = None,
) -> NodeRules:
    return NodeRules(
        needs=needs,
        tolerations=asked.tolerations,
        required=asked.required,
        preferred=asked.preferred,
        node_name=asked.node_name,
        enforced=asked.enforced,
        static_key=static_key,
        named=named,
        anywhere=anywhere,
        data=asked.data,
    )
