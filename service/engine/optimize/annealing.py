"""Simulated annealing: joint placement of a few pods in a small integer model of their rules.

If rules hold pods together or keep them apart, no sequence of single moves may lead from one
arrangement to a better one while every step keeps all rules. In the model, rules may be broken on
the way. It covers resources, pod affinity and anti-affinity, topology spread, and the nodes that
each pod may use by itself; the engine verifies the result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from math import exp

import numpy as np
from typing_extensions import override

from service.engine.cluster import Cluster
from service.engine.optimize.affected_rules import BrokenRule
from service.engine.optimize.moves import MoveEvaluator
from service.engine.optimize.objectives import NodeCost, PreferenceCost, SkewCost
from service.engine.rules.rule_paths import (
    RuledTerms,
    affinity_rules,
    anti_affinity_rules,
    spread_rules,
)
from service.engine.state.nodes.counters import DomainCounter, SpreadCounter
from service.engine.state.nodes.topology import NO_DOMAIN
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.spread import SpreadRule
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod

NODES_MAX = 64
"""The maximum number of nodes among which pods are arranged."""
OWNERS_MAX = 200
"""The maximum number of unarranged pods with rules about the arranged ones."""
ROUNDS, TRIES = 14, 3_000
"""The number of restarts, and of arrangements evaluated in each."""
_T_MAX, _T_MIN = 2.0, 0.03
_SWAPS = 0.3
"""The share of changes that swap two pods."""
_PAUSE = 100
"""The number of changes between two yields."""
_STEP = 8.0
"""The weight of an objective relative to the next one, scaled by their typical changes."""

RandomFloat = Callable[[], float]
"""Returns a random number of at least 0 and below 1."""
Value = list[int]
"""The number of newly broken rules, followed by each objective; less is better."""


class _Tally:
    """The number of pods that a counter counts in each domain of an arrangement."""

    def __init__(self, domains: list[int], fixed: list[int], members: list[int]) -> None:
        self.domains = domains
        """The domain of each node, or -1 if no pod counts there."""
        self.fixed = fixed
        self.members = members
        self.counts: list[int] = list(fixed)
        self.total = 0

    def count(self, places: list[int]) -> None:
        counts, domains = self.fixed.copy(), self.domains
        for member in self.members:
            domain = domains[places[member]]
            if domain >= 0:
                counts[domain] += 1
        self.counts = counts
        self.total = sum(counts)


class _Owner:
    """A pod with rules: its index if it is arranged, or the node on which it stays."""

    def __init__(self, key: ObjectName | None, number: int, node: int) -> None:
        self.key = key
        self.number = number
        self.node = node


class _Rule(ABC):
    """A required rule of one pod."""

    def __init__(self, owner: _Owner, paths: list[str]) -> None:
        self.owner = owner
        self.known = [False] * len(paths)
        """Whether each part of the rule was broken initially."""
        self.paths = paths

    @abstractmethod
    def broken(self, node: int) -> list[int]:
        """Return the parts of the rule that are broken with the pod on a node."""

    @abstractmethod
    def bars(self, number: int, node: int, places: list[int], start: list[int]) -> bool:
        """Return whether moved pods contribute to an initial breach; if not, it is accepted."""


class _AntiAffinity(_Rule):
    def __init__(self, owner: _Owner, path: str, tally: _Tally, key: list[int], most: int) -> None:
        super().__init__(owner, [path])
        self._tally = tally
        self._key = key
        self._most = most

    @override
    def broken(self, node: int) -> list[int]:
        domain = self._key[node]
        return [0] if domain >= 0 and self._tally.counts[domain] > self._most else []

    @override
    def bars(self, number: int, node: int, places: list[int], start: list[int]) -> bool:
        """Return whether a pod was moved into the domain from elsewhere."""
        domain, key = self._key[node], self._key
        for member in self._tally.members:
            place = places[member]
            if member != number and place != start[member] and key[place] == domain:
                return True
        return False


class _Affinity(_Rule):
    """Affinity terms that one pod must satisfy together."""

    def __init__(
        self,
        owner: _Owner,
        paths: list[str],
        tallies: list[_Tally],
        keys: list[list[int]],
        itself: list[int],
    ) -> None:
        super().__init__(owner, paths)
        self._tallies = tallies
        self._keys = keys
        self._itself = itself

    @override
    def broken(self, node: int) -> list[int]:
        unmet: list[int] = []
        others, lacks = False, False
        for index, tally in enumerate(self._tallies):
            domain, own = self._keys[index][node], self._itself[index]
            if domain < 0:
                lacks = True
                others = others or tally.total > 0
                unmet.append(index)
            else:
                others = others or tally.total > own
                if tally.counts[domain] <= own:
                    unmet.append(index)
        if unmet and not others and not lacks and all(self._itself):
            return []
        return unmet

    @override
    def bars(self, number: int, node: int, places: list[int], start: list[int]) -> bool:
        return False


class _HardSpread(_Rule):
    def __init__(
        self,
        owner: _Owner,
        path: str,
        tally: _Tally,
        key: list[int],
        existing: list[int],
        rule: SpreadRule,
        *,
        itself: bool,
    ) -> None:
        super().__init__(owner, [path])
        self._tally = tally
        self._key = key
        self._existing_domains = existing
        self._max_skew = rule.max_skew
        self._enough = len(existing) >= max(rule.min_domains, 1)
        self._itself = itself

    @override
    def broken(self, node: int) -> list[int]:
        domain = self._key[node]
        if domain < 0:
            return [0]
        counts = self._tally.counts
        least = (
            min([counts[existing] for existing in self._existing_domains]) if self._enough else 0
        )
        others = counts[domain]
        if self._itself and self._tally.domains[node] >= 0:
            others -= 1
            if self._enough:
                least = min(least, others)
        return [0] if others + int(self._itself) - least > self._max_skew else []

    @override
    def bars(self, number: int, node: int, places: list[int], start: list[int]) -> bool:
        return False


class _Preference:
    """A preferred pod affinity term of one pod."""

    def __init__(
        self, owner: _Owner, tally: _Tally, key: list[int], weight: int, *, itself: bool
    ) -> None:
        self.owner = owner
        self.tally = tally
        self.key = key
        self.weight = weight
        self.itself = int(itself)


class _SoftSpread:
    """A soft topology spread constraint."""

    def __init__(self, tally: _Tally, existing: list[int], max_skew: int) -> None:
        self.tally = tally
        self.existing = existing
        self.max_skew = max_skew


class AnnealingModel:
    """A model of some of a cluster's pods, which are removed from their nodes while it is built."""

    def __init__(
        self, cluster: Cluster, evaluator: MoveEvaluator, pods: Sequence[Pod], start: Sequence[int]
    ) -> None:
        """Build the model of `pods`, which were originally on the nodes at the slots `start`."""
        self._cluster = cluster
        self._measures = evaluator.measures
        self._slots = [slot for slot, node in enumerate(cluster.nodes.nodes) if node is not None]
        self._node_of = {slot: index for index, slot in enumerate(self._slots)}
        self._pods = pods
        self._classes = [cluster.class_of(pod) for pod in pods]
        self.start = [self._node_of[slot] for slot in start]
        self.now = [self._node_of[cluster.nodes.slots[pod.node_name or ""]] for pod in pods]
        self._known = evaluator.rules.known
        self._rules: list[_Rule] = []
        self._preferences: list[_Preference] = []
        self._tallies: dict[int, _Tally] = {}
        mark = cluster.mark()
        self._read_uses(evaluator)
        for pod in pods:
            evaluator.unplace(pod)
        self._read_nodes(evaluator)
        self.is_small = len(self._slots) <= NODES_MAX and self._read_owners()
        """Whether the model covers everything that affects the pods."""
        self._soft = list(self._soft_spreads())
        cluster.undo(mark)

    # The model

    def _read_uses(self, evaluator: MoveEvaluator) -> None:
        uses = [evaluator.use(pod) for pod in self._pods]
        names = {name for use in uses for name, _ in use.amounts}
        for measure in self._measures:
            if isinstance(measure, NodeCost):
                names.update(measure.resources)
        self._resources = sorted(names)
        place = {name: index for index, name in enumerate(self._resources)}
        self._uses = [[(place[name], amount) for name, amount in use.amounts] for use in uses]
        nodes = self._cluster.nodes
        self._limits = [
            np.maximum(nodes.allocatable(name), nodes.requested(name))[self._slots].tolist()
            for name in self._resources
        ]
        self._pods_max = np.maximum(nodes.allowed_pods, nodes.pods)[self._slots].tolist()
        self._node_costs: list[tuple[NodeCost, list[int]] | None] = [
            (measure, [place[name] for name in measure.resources])
            if isinstance(measure, NodeCost)
            else None
            for measure in self._measures
        ]

    def _read_nodes(self, evaluator: MoveEvaluator) -> None:
        nodes = self._cluster.nodes
        self._requested: list[list[int]] = [
            nodes.requested(name)[self._slots].tolist() for name in self._resources
        ]
        self._pods_on: list[int] = nodes.pods[self._slots].tolist()
        self._options: list[list[int]] = []
        self._chosen: list[list[int]] = []
        """The weights of each pod's preferred node affinity on each node."""
        preference_costs = [
            measure for measure in self._measures if isinstance(measure, PreferenceCost)
        ]
        for number, pod in enumerate(self._pods):
            mask = evaluator.feasible_alone(pod)[self._slots]
            options = np.flatnonzero(mask).tolist()
            options += {self.start[number], self.now[number]}.difference(options)
            self._options.append(options)
            self._chosen.append(
                preference_costs[0].of_node_affinity(self._classes[number])[self._slots].tolist()
                if preference_costs
                else []
            )

    def _read_owners(self) -> bool:
        """Read every rule about the arranged pods; return False if too many other pods have one."""
        for number, pod_class in enumerate(self._classes):
            pod = self._pods[number]
            self._read_owner(pod_class, _Owner((pod.namespace, pod.name), number, -1))
        owners = 0
        counted = {
            id(counter)
            for pod_class in self._classes
            for entry in pod_class.matched
            for counter in entry.counters.values()
        }
        for pod_class in self._cluster.placed_classes():
            if not self._is_about(pod_class, counted):
                continue
            for slot in pod_class.nodes:
                for pod, its_class in self._cluster.placed_on(slot):
                    if its_class is pod_class:
                        key = (pod.namespace, pod.name)
                        self._read_owner(pod_class, _Owner(key, -1, self._node_of[slot]))
                        owners += 1
                        if owners > OWNERS_MAX:
                            return False
        return True

    def _is_about(self, pod_class: PodClass, counted: set[int]) -> bool:
        template = pod_class.template
        terms = (*template.affinity, *template.anti_affinity, *template.preferred)
        return any(id(term.counter) in counted for term in terms) or any(
            id(rule.counter) in counted for rule in template.hard_spread
        )

    def _read_owner(self, pod_class: PodClass, owner: _Owner) -> None:
        template = pod_class.template
        for rule, term in anti_affinity_rules(template):
            itself = pod_class in term.matcher.classes
            most = int(itself) if term.max_per_domain is None else term.max_per_domain
            tally, key = self._tally(term.counter), self._key(term.counter)
            self._add(_AntiAffinity(owner, rule.path, tally, key, most))
        ruled = affinity_rules(template, per_term=template.affinity_per_term)
        ruled_terms = (*ruled[0], *ruled[1])
        single_terms = [(ruled_term,) for ruled_term in ruled_terms]
        for group in single_terms if template.affinity_per_term else [ruled_terms]:
            if group:
                self._add(self._together(owner, pod_class, group))
        for place, (rule, spread) in enumerate(spread_rules(template)):
            if spread.counter is None:
                continue
            self._add(
                _HardSpread(
                    owner,
                    rule.path,
                    self._tally(spread.counter),
                    self._key(spread.counter),
                    _existing_domains(spread),
                    spread,
                    itself=pod_class.hard_self[place],
                )
            )
        for term in template.preferred:
            itself = pod_class in term.matcher.classes
            tally, key = self._tally(term.counter), self._key(term.counter)
            self._preferences.append(_Preference(owner, tally, key, term.weight, itself=itself))

    def _together(self, owner: _Owner, pod_class: PodClass, group: RuledTerms) -> _Affinity:
        return _Affinity(
            owner,
            [rule.path for rule, _ in group],
            [self._tally(term.counter) for _, term in group],
            [self._key(term.counter) for _, term in group],
            [int(pod_class in term.matcher.classes) for _, term in group],
        )

    def _add(self, rule: _Rule) -> None:
        key = rule.owner.key
        if key is not None:
            rule.known = [self._is_known((key, path)) for path in rule.paths]
        self._rules.append(rule)

    def _is_known(self, broken: BrokenRule) -> bool:
        return broken in self._known

    def _soft_spreads(self) -> Iterator[_SoftSpread]:
        for measure in self._measures:
            if isinstance(measure, SkewCost):
                for spread in measure.constraints:
                    _, existing = spread.counts()
                    tally = self._tally(spread.counter, spread.rule)
                    yield _SoftSpread(
                        tally, np.flatnonzero(existing).tolist(), spread.rule.max_skew
                    )

    def _key(self, counter: DomainCounter) -> list[int]:
        domains: list[int] = counter.key.domain_of[self._slots].tolist()
        return domains

    def _tally(self, counter: DomainCounter, rule: SpreadRule | None = None) -> _Tally:
        known = self._tallies.get(id(counter))
        if known is None:
            domains = self._key(counter)
            eligible = counter.included_nodes.mask if isinstance(counter, SpreadCounter) else None
            if rule is not None and rule.per_node:
                eligible = rule.included_nodes.mask
            if eligible is not None:
                domains = [
                    domain if eligible[slot] else NO_DOMAIN
                    for domain, slot in zip(domains, self._slots, strict=True)
                ]
            members = [
                number
                for number, pod_class in enumerate(self._classes)
                if any(
                    counted is counter
                    for entry in pod_class.matched
                    for counted in entry.counters.values()
                )
            ]
            known = _Tally(domains, counter.counts.tolist(), members)
            self._tallies[id(counter)] = known
        return known

    # Evaluation

    def value(self, places: list[int]) -> Value:
        """Evaluate an arrangement, which assigns a node index to each pod."""
        requested = [column.copy() for column in self._requested]
        pods_on = self._pods_on.copy()
        for number, node in enumerate(places):
            pods_on[node] += 1
            for resource, amount in self._uses[number]:
                requested[resource][node] += amount
        for tally in self._tallies.values():
            tally.count(places)
        refused, broken = self._broken(places)
        figures = [refused + self._excess(requested, pods_on)]
        for index, measure in enumerate(self._measures):
            if measure is None:
                figures.append(broken)
            elif isinstance(measure, SkewCost):
                figures.append(self._skew())
            elif isinstance(measure, PreferenceCost):
                figures.append(-self._satisfied(places))
            else:
                figures.append(self._of_nodes(index, requested, pods_on))
        return figures

    def _broken(self, places: list[int]) -> tuple[int, int]:
        """Return the number of unacceptably broken rules, and of rules that were broken before."""
        refused, broken = 0, 0
        for rule in self._rules:
            number = rule.owner.number
            node = places[number] if number >= 0 else rule.owner.node
            for part in rule.broken(node):
                known = rule.known[part] and (number < 0 or node == self.start[number])
                if known and not rule.bars(number, node, places, self.start):
                    broken += 1
                else:
                    refused += 1
        return refused, broken

    def _excess(self, requested: list[list[int]], pods_on: list[int]) -> int:
        excess = 0
        for amounts, limits in zip(requested, self._limits, strict=True):
            for amount, limit in zip(amounts, limits, strict=True):
                if amount > limit:
                    excess += 1
        for pods, most in zip(pods_on, self._pods_max, strict=True):
            if pods > most:
                excess += 1
        return excess

    def _skew(self) -> int:
        excess = 0
        for spread in self._soft:
            if not spread.existing:
                continue
            counts = [spread.tally.counts[domain] for domain in spread.existing]
            allowed = min(counts) + spread.max_skew
            for count in counts:
                if count > allowed:
                    excess += count - allowed
        return excess

    def _satisfied(self, places: list[int]) -> int:
        held = 0
        for number, node in enumerate(places):
            held += self._chosen[number][node]
        for preference in self._preferences:
            number = preference.owner.number
            domain = preference.key[places[number] if number >= 0 else preference.owner.node]
            if domain >= 0:
                held += preference.weight * (preference.tally.counts[domain] - preference.itself)
        return held

    def _of_nodes(self, index: int, requested: list[list[int]], pods_on: list[int]) -> int:
        read = self._node_costs[index]
        assert read is not None
        cost, resources = read
        total = 0
        for node, slot in enumerate(self._slots):
            amounts = [requested[resource][node] for resource in resources]
            total += cost.of_node(slot, amounts, pods_on[node])
        return total

    # The search

    def search(self, rng: RandomFloat) -> Iterator[dict[ObjectName, int] | None]:
        """Yield None periodically, then the new slots of the pods that should move.

        The search starts from the current arrangement.
        """
        start = self.now
        self._weights = self._objective_weights(rng, start)
        best, least = start, self.value(start)
        for number in range(ROUNDS):
            begin = best if number % 2 else start
            for arrangement in self._anneal(rng, begin):
                if arrangement is None:
                    yield None
                    continue
                value = self.value(arrangement)
                if value < least:
                    best, least = arrangement, value
        yield {
            (pod.namespace, pod.name): self._slots[best[number]]
            for number, pod in enumerate(self._pods)
            if best[number] != start[number]
        }

    def _objective_weights(self, rng: RandomFloat, start: list[int]) -> list[float]:
        """Return the weight of each objective, scaled by the typical effect of one move on it."""
        value = self.value(start)
        changes = [0] * len(value)
        seen = [0] * len(value)
        for _ in range(60):
            other = self.value(self._neighbor(rng, start))
            for index, (one, two) in enumerate(zip(value, other, strict=True)):
                if one != two:
                    changes[index] += abs(one - two)
                    seen[index] += 1
        weights = []
        for index in range(len(value)):
            mean = changes[index] / seen[index] if seen[index] else 1.0
            weights.append(_STEP ** (len(value) - 1 - index) / mean)
        return weights

    def _neighbor(self, rng: RandomFloat, places: list[int]) -> list[int]:
        """Return an arrangement with one pod moved or two pods swapped."""
        changed = places.copy()
        one = int(rng() * len(places))
        if rng() < _SWAPS:
            two = int(rng() * len(places))
            first, second = places[one], places[two]
            if second in self._options[one] and first in self._options[two]:
                changed[one], changed[two] = second, first
                return changed
        options = self._options[one]
        changed[one] = options[int(rng() * len(options))]
        return changed

    def _anneal(self, rng: RandomFloat, start: list[int]) -> Iterator[list[int] | None]:
        """Yield None periodically, then the best arrangement of one round."""
        weights = self._weights
        places, value = start, self.value(start)
        best, least = places, value
        t_max = _T_MAX * _STEP ** (len(value) - 1)
        cooling = (_T_MIN / t_max) ** (1.0 / TRIES)
        temperature = t_max
        for number in range(TRIES):
            temperature *= cooling
            changed = self._neighbor(rng, places)
            if changed == places:
                continue
            other = self.value(changed)
            worse = 0.0
            for index, weight in enumerate(weights):
                worse += weight * (other[index] - value[index])
            if worse <= 0 or rng() < exp(-worse / temperature):
                places, value = changed, other
                if value < least:
                    best, least = places, value
            if not number % _PAUSE:
                yield None
        yield best


def _existing_domains(spread: SpreadRule) -> list[int]:
    counts = spread.included_nodes.nodes_of[spread.key.name].counts[:-1]
    domains: list[int] = np.flatnonzero(counts > 0).tolist()
    return domains
