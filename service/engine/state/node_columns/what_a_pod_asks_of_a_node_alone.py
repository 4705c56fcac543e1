"""The part of a pod that is judged by one node alone: requests, ports, tolerations, selectors.

Many pods, and many templates, share one `NodeRules`. Masks and scores over nodes that depend on
nothing else are cached for each `NodeRules` (`service.engine.node_ranking.candidate_ranks`).
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from service.engine.state.node_columns.nodes import AMOUNT_MAX, HostPort, image_name
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


class FoundData(NamedTuple):
    """A data set that a pod names."""

    name: str
    nodes: NodeSelector | None
    """The nodes that have it; None if there is no data set of the name."""


class DataRules(NamedTuple):
    """The data sets that a pod names, and where they are now."""

    required: tuple[FoundData, ...]
    preferred: tuple[tuple[int, FoundData], ...]
    """Each with its weight."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeRules:
    """The rules of a pod on a node; interned, so it is compared by identity."""

    needs: "Needs"
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
    """The only nodes that `required` names; None if it names none."""
    anywhere: "NodeRules | None" = None
    """These rules without the named nodes, which all pods of one DaemonSet share; None if no
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


class Use(NamedTuple):
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
class Needs:
    """The needs that follow from a spec's containers alone, which many specs have in common.

    Everything except `use` is for pods that are still to be placed.
    """

    use: Use
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


NEEDS_KEPT = 1024


class RulesInterner:
    """Keeps one `NodeRules` for each distinct value, as long as something uses it."""

    def __init__(self, *, empty_term_matches_all: bool) -> None:
        self._rules: dict[object, NodeRules] = {}
        self._keys: dict[NodeRules, object] = {}
        self._users: Counter[NodeRules] = Counter()
        self._needs: dict[bytes, Needs] = {}
        self._unrestricted = RequiredNodes((), (), empty_term_matches_all)

    def rules_of(
        self,
        pod: Pod,
        needs: Needs,
        added: NodeAffinity | None = None,
        data: DataRules | None = None,
    ) -> NodeRules:
        """Return the rules of a pod, with one user more; `release` takes that user away.

        `needs` are those of the pod's spec; `added` is what its profile asks of nodes for all pods;
        `data` are the data sets that the pod names.
        """
        asked = self._asked(pod, added, data)
        named, rest = _names_apart(asked.required)
        if named is None:
            return self._interned(needs, asked)
        anywhere = self._interned(needs, asked.requiring(rest))
        return _compile(needs, asked, anywhere.static_key, named, anywhere)

    def _asked(self, pod: Pod, added: NodeAffinity | None, data: DataRules | None) -> "_Asked":
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        return _Asked(
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

    def _interned(self, needs: Needs, asked: "_Asked") -> NodeRules:
        static_key = (needs.images, msgspec.json.encode(asked))
        key = (needs.amounts, needs.scored, needs.ports, static_key)
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = _compile(needs, asked, static_key)
            self._keys[rules] = key
        self._users[rules] += 1
        return rules

    def needs_of(self, spec: PodSpec) -> Needs:
        """Return what the containers of a spec need; the last results are remembered."""
        identity = msgspec.json.encode(
            (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        )
        found = self._needs.get(identity)
        if found is None:
            if len(self._needs) == NEEDS_KEPT:
                self._needs.clear()
            found = self._needs[identity] = _needs(spec)
        return found

    def release(self, rules: NodeRules) -> None:
        """Note that one user less has the rules; forget rules that nothing uses."""
        rules = rules.anywhere or rules
        self._users[rules] -= 1
        if not self._users[rules]:
            del self._users[rules]
            del self._rules[self._keys.pop(rules)]


def _required_selectors(affinity: NodeAffinity) -> tuple[NodeSelector, ...]:
    lists = (
        affinity.required_during_scheduling_required_during_execution,
        affinity.required_during_scheduling_ignored_during_execution,
    )
    return tuple([each for each in lists if each is not None])


def _preferred(
    affinity: NodeAffinity | None, added: NodeAffinity | None
) -> tuple[PreferredSchedulingTerm, ...] | None:
    own = more = None
    if affinity is not None:
        own = affinity.preferred_during_scheduling_ignored_during_execution
    if added is not None:
        more = added.preferred_during_scheduling_ignored_during_execution
    return own if more is None else (*(own or ()), *more)


def _needs(spec: PodSpec) -> Needs:
    containers = (*spec.init_containers, *spec.containers)
    requests = pod_requests(spec)
    amounts = _bounded(requests.amounts)
    # Placed and incoming pods get different defaults only if the pod as a whole has requests.
    return Needs(
        use=Use.by(requests) if spec.resources is None else Use.of(spec),
        amounts=tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0)),
        requests_cpu_or_memory=bool(amounts.get("cpu") or amounts.get("memory")),
        cpu=amounts.get("cpu", 0),
        memory=amounts.get("memory", 0),
        scored=_scored(requests),
        ports=tuple(sorted(host_ports(spec))),
        images=tuple(image_name(each.image) if each.image else "" for each in containers),
    )


class _Asked(NamedTuple):
    """The rules on nodes of a pod, and those that its profile has for all pods."""

    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    enforced: RequiredNodes
    node_name: str | None
    data: DataRules | None

    def requiring(self, required: RequiredNodes) -> "_Asked":
        """Return a copy with other requirements."""
        return self._replace(required=required)


def _names_apart(required: RequiredNodes) -> tuple[frozenset[str] | None, RequiredNodes]:
    """Split the nodes that affinities of one term name (None: all) from other requirements."""
    named: frozenset[str] | None = None
    others = []
    for affinity in required.affinities:
        names, other = _name_apart(affinity)
        if names is not None:
            named = names if named is None else named & names
        if other is not None:
            others.append(other)
    if named is None:
        return None, required
    return named, RequiredNodes(required.selector, tuple(others), required.empty_term_matches_all)


def _name_apart(affinity: NodeSelector) -> tuple[frozenset[str] | None, NodeSelector | None]:
    terms = affinity.node_selector_terms
    term = terms[0] if len(terms) == 1 else None
    names = names_in(term)
    if term is None or names is None:
        return None, affinity
    rest = tuple(each for each in term.match_fields or () if not _names_nodes(each))
    if not rest and not term.match_expressions:
        return names, None
    other = replace(term, match_fields=rest)
    return names, replace(affinity, node_selector_terms=(other,))


def names_in(term: NodeSelectorTerm | None) -> frozenset[str] | None:
    """Return the nodes to which a term restricts pods by name; None if it names none."""
    fields = (term.match_fields if term else None) or ()
    names = [frozenset(each.values or ()) for each in fields if _names_nodes(each)]
    return frozenset.intersection(*names) if names else None


def _names_nodes(requirement: NodeSelectorRequirement) -> bool:
    """Whether the requirement holds only on the nodes that its values name."""
    return requirement.key == NODE_NAME_FIELD and requirement.operator == "In"


def _compile(
    needs: Needs,
    asked: _Asked,
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
