"""What of a pod is decided by looking at one node alone: requests, ports, tolerations, selectors.

Many pods, and many pod templates, share one `NodeRules`; masks and scores over nodes that depend
on nothing else are cached per `NodeRules` (`service.engine.ranking.rank_cache`).
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from service.engine.state.nodes import AMOUNT_MAX, HostPort, image_name
from service.model.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodResize,
    PodSpec,
    PreferredSchedulingTerm,
    Toleration,
)
from service.model.requests import PodRequests, host_ports, placed_requests, pod_requests

NODE_NAME_FIELD = "metadata.name"


class RequiredNodes(NamedTuple):
    """nodeSelector and the required node affinities: all must hold.

    Nothing required is an empty `selector` with no `affinities`.
    """

    selector: tuple[tuple[str, str], ...]
    affinities: tuple[NodeSelector, ...]
    empty_term_matches_all: bool

    @property
    def anything(self) -> bool:
        return bool(self.selector or self.affinities)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeRules:
    """One interned value; compare by identity."""

    needs: "Needs"
    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    """None where the list is absent (its score is then skipped)."""
    node_name: str | None
    enforced: RequiredNodes
    """What the profile adds (NodeAffinityArgs.addedAffinity)."""
    site: Hashable
    """Equal where rules differ in amounts and ports alone, not in what they ask of the node itself."""
    named: frozenset[str] | None = None
    """The only nodes that `required` names; None where it names none."""
    anywhere: "NodeRules | None" = None
    """The same rules with no node named, which the pods of one daemon share; None where none is."""


class Use(NamedTuple):
    """What a placed pod takes of its node."""

    amounts: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    """cpu and memory as scores see them; for a placed pod defaults apply otherwise."""

    @classmethod
    def of(cls, spec: PodSpec, resize: PodResize | None = None) -> Self:
        """Raised by an in-place resize that is under way."""
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
    """What follows from a spec's containers alone, which many specs have in common.

    All but `use` is of a pod that is still to be placed.
    """

    use: Use
    amounts: tuple[tuple[str, int], ...]
    """Requested amounts above zero: cpu in milli-units, all else in whole units."""
    requests_cpu_or_memory: bool
    """Whether either is requested above zero (balanced allocation looks at nothing else)."""
    cpu: int
    memory: int
    scored: tuple[int, int]
    """cpu and memory with defaults for containers that request none."""
    ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    """Names with tags, one per container and init container."""


NEEDS_KEPT = 1024


class RulesInterner:
    """One `NodeRules` per distinct value, for as long as somebody uses it."""

    def __init__(self, *, empty_term_matches_all: bool) -> None:
        self._rules: dict[object, NodeRules] = {}
        self._keys: dict[NodeRules, object] = {}
        self._users: Counter[NodeRules] = Counter()
        self._needs: dict[bytes, Needs] = {}
        self._unrestricted = RequiredNodes((), (), empty_term_matches_all)

    def rules_of(self, pod: Pod, needs: Needs, added: NodeAffinity | None = None) -> NodeRules:
        """The rules of a pod, with one user more; give them back by `release`.

        `needs` are those of its spec; `added` is what its profile asks of nodes for all pods.
        """
        asked = self._asked(pod, added)
        named, rest = _names_apart(asked.required)
        if named is None:
            return self._interned(needs, asked)
        anywhere = self._interned(needs, asked.requiring(rest))
        return _compile(needs, asked, anywhere.site, named, anywhere)

    def _asked(self, pod: Pod, added: NodeAffinity | None) -> "_Asked":
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        return _Asked(
            spec.tolerations,
            self._required(spec.node_selector, affinity),
            _preferred(affinity, added),
            self._required(None, added),
            pod.required_node_name,
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
        site = (needs.images, msgspec.json.encode(asked))
        key = (needs.amounts, needs.scored, needs.ports, site)
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = _compile(needs, asked, site)
            self._keys[rules] = key
        self._users[rules] += 1
        return rules

    def needs_of(self, spec: PodSpec) -> Needs:
        """What the containers need; the last ones are remembered."""
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
        """One user less; forget a value that nothing uses any more."""
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
    # The two differ in defaults, and only beside requests of the pod as a whole.
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
    """What a pod, and its profile for all pods, ask of nodes."""

    tolerations: tuple[Toleration, ...]
    required: RequiredNodes
    preferred: tuple[PreferredSchedulingTerm, ...] | None
    enforced: RequiredNodes
    node_name: str | None

    def requiring(self, required: RequiredNodes) -> "_Asked":
        """The same with other requirements."""
        return _Asked(self.tolerations, required, self.preferred, self.enforced, self.node_name)


def _names_apart(required: RequiredNodes) -> tuple[frozenset[str] | None, RequiredNodes]:
    """The nodes that affinities of a single term name, None for all; and what else is required."""
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
    """The nodes that a term leaves by their names; None where it names none."""
    fields = (term.match_fields if term else None) or ()
    names = [frozenset(each.values or ()) for each in fields if _names_nodes(each)]
    return frozenset.intersection(*names) if names else None


def _names_nodes(requirement: NodeSelectorRequirement) -> bool:
    """Whether it holds on the nodes of its values only."""
    return requirement.key == NODE_NAME_FIELD and requirement.operator == "In"


def _compile(
    needs: Needs,
    asked: _Asked,
    site: Hashable,
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
        site=site,
        named=named,
        anywhere=anywhere,
    )
