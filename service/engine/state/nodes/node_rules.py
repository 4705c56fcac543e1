"""The rules of a pod about single nodes: requests, ports, tolerations, and selectors.

Many pods, and many templates, share one `NodeRules`. Node masks and scores that depend only on
these rules are cached for each `NodeRules` (`service.engine.ranking.rank_cache`).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from service.engine.state.nodes.node_table import AMOUNT_MAX, HostPort, NodeTable, image_name
from service.model.core.primitives import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from service.model.pods.declared_features import required_features
from service.model.pods.pod import (
    NodeAffinity,
    Pod,
    PodResize,
    PodSpec,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
)
from service.model.pods.requests import (
    BY_CONTAINER,
    PodRequests,
    ResizeRules,
    host_ports,
    placed_requests,
    pod_requests,
)

NODE_NAME_FIELD = "metadata.name"


class RequiredNodes(NamedTuple):
    """A pod's nodeSelector and required node affinities, which must all hold.

    `selector` and `affinities` are empty if nothing is required.
    """

    selector: tuple[tuple[str, str], ...]
    affinities: tuple[NodeSelector, ...]
    empty_term_matches_all: bool

    @property
    def restricts(self) -> bool:
        return bool(self.selector or self.affinities)


class NamedDataSet(NamedTuple):
    """A data set that a pod names, with the nodes that have it."""

    name: str
    nodes: NodeSelector | None
    """The nodes that have the data set, or None if it does not exist."""


class DataRules(NamedTuple):
    """The data sets that a pod names, with the nodes that currently have them."""

    required: tuple[NamedDataSet, ...]
    preferred: tuple[tuple[int, NamedDataSet], ...]
    """The preferred data sets, each with its weight."""

    def named(self) -> tuple[NamedDataSet, ...]:
        """Return the required and preferred data sets."""
        return (*self.required, *(data_set for _, data_set in self.preferred))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeRules:
    """A pod's rules about single nodes, interned and therefore compared by identity."""

    needs: "PodResources"
    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    """The preferred terms, or None if the list is absent, in which case scoring is skipped."""
    node_name: str | None
    enforced: RequiredNodes
    """The required terms that the profile adds (NodeAffinityArgs.addedAffinity)."""
    static_key: Hashable
    """A key that is equal for rules that differ only in amounts and ports."""
    named: frozenset[str] | None = None
    """The only nodes that `required` allows by name, or None if it names no nodes."""
    anywhere: "NodeRules | None" = None
    """These rules without the node names, shared by all pods of a DaemonSet, or None if no node is
    named."""
    data: DataRules | None = None
    """The data sets that the pod names, or None if it names none."""
    features: tuple[str, ...] = ()
    """The features that the node must declare, sorted."""


class ProfileRules(NamedTuple):
    """The rules that a profile adds to those of its pods."""

    affinity: NodeAffinity | None = None
    """The node affinity added to all pods of the profile."""
    constraints: tuple[TopologySpreadConstraint, ...] = ()
    """The spread constraints for pods that have none of their own."""
    constraints_need_keys: bool = True
    """Whether nodes that lack a key of these constraints are excluded from scoring."""


class PodUsage(NamedTuple):
    """The amounts that a placed pod uses on its node."""

    amounts: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    """The cpu (milli-units) and memory (bytes) used for scoring, with defaults for containers
    without requests."""

    @classmethod
    def of(
        cls,
        spec: PodSpec,
        resize: PodResize | None = None,
        rules: ResizeRules = BY_CONTAINER,
    ) -> Self:
        """Compute a placed pod's usage, which an in-place resize in progress increases."""
        return cls.by(placed_requests(spec, resize, rules))

    @classmethod
    def by(cls, requests: PodRequests) -> Self:
        return cls(tuple(_cap_amounts(requests.amounts).items()), _scored_amounts(requests))


def _cap_amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: min(amount, AMOUNT_MAX) for name, amount in amounts.items()}


def _scored_amounts(requests: PodRequests) -> tuple[int, int]:
    return min(requests.nonzero_cpu, AMOUNT_MAX), min(requests.nonzero_memory, AMOUNT_MAX)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PodResources:
    """The resources that a spec's containers require, shared by all specs with equal containers.

    All fields except `use` describe pods that are not placed yet.
    """

    use: PodUsage
    amounts: tuple[tuple[str, int], ...]
    """The requested amounts above zero, in milli-units for cpu and whole units for others."""
    requests_cpu_or_memory: bool
    """Whether cpu or memory is requested above zero; if not, balanced allocation is skipped."""
    cpu: int
    memory: int
    scored: tuple[int, int]
    """The cpu (milli-units) and memory (bytes) that NodeResourcesFit scores, with defaults for
    containers without requests."""
    scored_amounts: tuple[tuple[str, int], ...]
    """The amounts above zero that NodeResourcesFit scores, which may lack pod-level requests."""
    ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    """The image of each container and init container, with its tag."""
    volume_images: tuple[str, ...]
    """The image of each volume that mounts one, with its tag."""


class Identity(NamedTuple):
    """The interning key of a `NodeRules`."""

    amounts: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    scored_amounts: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...]
    static_key: Hashable


class RulesInterner:
    """Interns `NodeRules` and `PodResources` with reference counts."""

    def __init__(
        self,
        nodes: NodeTable,
        *,
        empty_term_matches_all: bool,
        known_features: frozenset[str],
        scores_pod_level: bool,
        dropped: Callable[[NodeRules, bool], None],
    ) -> None:
        """Create an interner.

        Args:
            nodes: the nodes whose label keys are held for the rules.
            empty_term_matches_all: whether an empty node selector term matches all nodes.
            known_features: the features that are inferred from pods.
            scores_pod_level: whether NodeResourcesFit scores a pod's pod-level requests.
            dropped: receives released rules and whether their key is unused.
        """
        self._nodes = nodes
        self._known_features = known_features
        self._scores_pod_level = scores_pod_level
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
        """Return a pod's rules, and add a reference that `release` removes.

        Args:
            pod: the pod.
            needs: the resources of the pod's spec.
            added: the node affinity that the pod's profile adds to all pods.
            data: the data sets that the pod names.
        """
        terms = self._terms_of(pod, added, data)
        named, rest = _split_names(terms.required)
        if named is None:
            return self._intern(needs, terms)
        anywhere = self._intern(needs, terms.requiring(rest))
        return _compile(needs, terms, anywhere.static_key, named, anywhere)

    def _terms_of(
        self, pod: Pod, added: NodeAffinity | None, data: DataRules | None
    ) -> "_NodeTerms":
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        return _NodeTerms(
            spec.tolerations,
            self._required_nodes(spec.node_selector, affinity),
            _preferred(affinity, added),
            self._required_nodes(None, added),
            pod.required_node_name,
            data,
            required_features(spec, self._known_features) if self._known_features else (),
        )

    def _required_nodes(
        self, labels: dict[str, str] | None, affinity: NodeAffinity | None
    ) -> RequiredNodes:
        if not labels and affinity is None:
            return self._unrestricted
        return RequiredNodes(
            tuple(sorted(labels.items())) if labels else (),
            _required_selectors(affinity) if affinity is not None else (),
            self._unrestricted.empty_term_matches_all,
        )

    def _intern(self, needs: PodResources, terms: "_NodeTerms") -> NodeRules:
        static_key = (needs.images, needs.volume_images, msgspec.json.encode(terms))
        identity = Identity(
            needs.amounts, needs.scored, needs.scored_amounts, needs.ports, static_key
        )
        rules = self._rules.get(identity)
        if rules is None:
            rules = self._rules[identity] = _compile(needs, terms, static_key)
            self._identities[rules] = identity
            self._static_keys[static_key] += 1
            self._nodes.hold_keys(terms.label_keys())
        self._users[rules] += 1
        return rules

    def hold_needs(self, spec: PodSpec) -> PodResources:
        """Return a spec's resources, and add a reference that `release_needs` removes."""
        identity = msgspec.json.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                _volume_images(spec),
            )
        )
        needs = self._needs.get(identity)
        if needs is None:
            needs = self._needs[identity] = _needs(spec, scores_pod_level=self._scores_pod_level)
            self._needs_identities[needs] = identity
        self._needs_users[needs] += 1
        return needs

    def release_needs(self, needs: PodResources) -> None:
        """Remove a reference to resources, and drop them if it was the last one."""
        self._needs_users[needs] -= 1
        if not self._needs_users[needs]:
            del self._needs_users[needs]
            del self._needs[self._needs_identities.pop(needs)]

    def release(self, rules: NodeRules) -> None:
        """Remove a reference to rules, and drop them if it was the last one."""
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
        """Yield the kind and approximate size in bytes of each interned value."""
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


def _needs(spec: PodSpec, *, scores_pod_level: bool) -> PodResources:
    containers = (*spec.init_containers, *spec.containers)
    requests = scored = pod_requests(spec)
    amounts = _cap_amounts(requests.amounts)
    above_zero = scored_above_zero = _above_zero(amounts)
    if spec.resources is not None and not scores_pod_level:
        scored = pod_requests(replace(spec, resources=None))
        scored_above_zero = _above_zero(_cap_amounts(scored.amounts))
    # Defaults differ between placed and incoming pods only if the pod as a whole has requests.
    return PodResources(
        use=PodUsage.by(requests) if spec.resources is None else PodUsage.of(spec),
        amounts=above_zero,
        requests_cpu_or_memory=bool(amounts.get("cpu") or amounts.get("memory")),
        cpu=amounts.get("cpu", 0),
        memory=amounts.get("memory", 0),
        scored=_scored_amounts(scored),
        scored_amounts=scored_above_zero,
        ports=tuple(sorted(host_ports(spec))),
        images=tuple(
            image_name(container.image) if container.image else "" for container in containers
        ),
        volume_images=_volume_images(spec),
    )


def _volume_images(spec: PodSpec) -> tuple[str, ...]:
    """Return the image of each volume that mounts one, with its tag."""
    return tuple(
        [image_name(volume.image.reference) for volume in spec.volumes if volume.image is not None]
    )


def _above_zero(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))


RULES_BYTES, AMOUNT_BYTES = 1_024, 128
"""The approximate sizes in bytes of rules and of one requested amount, without their identity."""


def size_of_rules(static_key: Hashable) -> int:
    """Return the approximate size in bytes of rules, including their identity."""
    parts = static_key if isinstance(static_key, tuple) else ()
    return RULES_BYTES + sum(8 * len(part) for part in parts if isinstance(part, bytes))


def label_keys(
    required: RequiredNodes,
    preferred: tuple[PreferredSchedulingTerm, ...] | None,
    enforced: RequiredNodes,
    data: DataRules | None,
) -> tuple[str, ...]:
    """Return the node label keys that rules read, without duplicates."""
    terms: list[NodeSelectorTerm | None] = [nodes.preference for nodes in preferred or ()]
    for data_set in () if data is None else data.named():
        terms += data_set.nodes.node_selector_terms if data_set.nodes is not None else ()
    names: dict[str, None] = {}
    for nodes in (required, enforced):
        names.update(dict.fromkeys(name for name, _ in nodes.selector))
        for affinity in nodes.affinities:
            terms += affinity.node_selector_terms
    for term in terms:
        for requirement in (term.match_expressions if term else None) or ():
            names[requirement.key] = None
    return tuple(names)


class _NodeTerms(NamedTuple):
    """A pod's node terms, including those added by its profile."""

    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    enforced: RequiredNodes
    node_name: str | None
    data: DataRules | None
    features: tuple[str, ...]

    def label_keys(self) -> tuple[str, ...]:
        """Return the node label keys that the terms read."""
        return label_keys(self.required, self.preferred, self.enforced, self.data)

    def requiring(self, required: RequiredNodes) -> "_NodeTerms":
        return self._replace(required=required)


def _split_names(required: RequiredNodes) -> tuple[frozenset[str] | None, RequiredNodes]:
    """Split required affinities into the nodes they name, or None for all, and everything else."""
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
    """Return the only nodes that a term allows by name, or None if it names none."""
    fields = (term.match_fields if term else None) or ()
    names = [frozenset(field.values or ()) for field in fields if _names_nodes(field)]
    return frozenset.intersection(*names) if names else None


def _names_nodes(requirement: NodeSelectorRequirement) -> bool:
    """Return whether a requirement holds only on the nodes that its values name."""
    return requirement.key == NODE_NAME_FIELD and requirement.operator == "In"


def _compile(
    needs: PodResources,
    terms: _NodeTerms,
    static_key: Hashable,
    named: frozenset[str] | None = None,
    anywhere: NodeRules | None = None,
) -> NodeRules:
    return NodeRules(
        needs=needs,
        tolerations=terms.tolerations,
        required=terms.required,
        preferred=terms.preferred,
        node_name=terms.node_name,
        enforced=terms.enforced,
        static_key=static_key,
        named=named,
        anywhere=anywhere,
        data=terms.data,
        features=terms.features,
    )
