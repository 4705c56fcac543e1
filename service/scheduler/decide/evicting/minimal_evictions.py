"""Chooses the fewest evictions that make rules between pods hold (required during execution).

This covers anti-affinity rules, and affinity rules that evictions can satisfy: a pod that matches
its own rule may be anywhere while no other pod matches the rule.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from service.engine.rules.violations import CompetingPods, DomainPods, Inspection, Violation, key_of
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.scheduler.decide.evicting.victim_search import RuleConflict, choose_evictions
from service.scheduler.decide.status.pod_conditions import Rule
from service.scheduler.decide.status.references import pod_named, reference


class Cause(NamedTuple):
    """Why a pod is evicted; `message` names the rule and where it is broken."""

    rule: Rule
    message: str

    @property
    def reason(self) -> str:
        """The reason in the pod's condition."""
        return f"{self.rule}Violated"


class MinimalEvictions:
    """Finds the fewest evictions for all conflicts of a sweep; pods being evicted count as gone."""

    def __init__(self, config: ClusterConfig, inspection: Inspection) -> None:
        self._config = config
        self._inspection = inspection
        self._pods: dict[ObjectName, Pod] = {}
        self.conflicts: dict[DomainPods | CompetingPods, RuleConflict] = {}
        """The conflicts by domain and rule; leaving pods are removed from them."""
        self._attracting: set[RuleConflict] = set()
        """The conflicts about affinity rules."""
        self._by_pod: defaultdict[ObjectName, list[RuleConflict]] = defaultdict(list)
        self._owners: dict[ObjectName, None] = {}
        self._others: dict[ObjectName, None] = {}
        """Pods that may be evicted without owning a rule, where a rule allows evicting any pod."""
        self._first: dict[int, ObjectName] = {}
        """The first remaining pod of a conflict's members or owners, by the identity of the
        collection."""

    def add(self, violation: Violation) -> None:
        """Add a broken anti-affinity rule, or an affinity rule that evictions can satisfy."""
        breach, owner = violation.breach, key_of(violation.pod)
        about = breach.domain_pods or breach.competing_pods
        assert about is not None
        conflict = self.conflicts.get(about)
        if conflict is None:
            conflict = self.conflicts[about] = self._conflict(about)
        if owner not in conflict.owners and owner not in conflict.members:
            self._by_pod[owner].append(conflict)
        conflict.owners.setdefault(owner, breach.rule.path)
        self._owners[owner] = None
        self._pods[owner] = violation.pod

    def _conflict(self, about: DomainPods | CompetingPods) -> RuleConflict:
        if isinstance(about, DomainPods):
            conflict = RuleConflict(set(), about.max_per_domain)
            matched = self._inspection.members(about)
        else:
            conflict, matched = RuleConflict(set()), self._inspection.competitors(about)
            self._attracting.add(conflict)
        for key, pod in _staying(matched):
            conflict.members.add(key)
            self._pods[key] = pod
            self._by_pod[key].append(conflict)
            if isinstance(about, DomainPods):
                self._others[key] = None
        return conflict

    def leave(self, key: ObjectName) -> None:
        """Count a pod as gone."""
        self._owners.pop(key, None)
        self._others.pop(key, None)
        for conflict in self._by_pod.pop(key, ()):
            conflict.leave(key)

    def victims(self) -> Iterator[tuple[ObjectName, Cause]]:
        """Find the fewest victims after which every rule holds, the least important first."""
        anybody = self._config.anti_affinity_victim == "LowestPriority"
        self._drop_resolved()
        candidates = self.in_order(self._candidates(anybody=anybody))
        priorities = {key: _priority(self._config, self._pods[key]) for key in candidates}
        leaving = choose_evictions(candidates, priorities, self._by_pod)
        for key in candidates:
            if key in leaving:
                yield key, self._cause(key, anybody=anybody)

    def _drop_resolved(self) -> None:
        """Drop the rules that will hold once all leaving pods are gone.

        These rules cause no evictions and no conflicts between pods.
        """
        conflicts = self.conflicts.values()
        broken = {
            conflict for conflict in conflicts if any(map(conflict.too_many, conflict.owners))
        }
        for key, concerned in self._by_pod.items():
            self._by_pod[key] = [conflict for conflict in concerned if conflict in broken]

    def _candidates(self, *, anybody: bool) -> set[ObjectName]:
        """Return the pods that own a broken rule, and with `anybody` also the pods it matches."""
        candidates = {key for key in self._owners if self._has_broken_rule(key)}
        if anybody:
            candidates.update(key for key in self._others if self._breaks_others(key))
        return candidates

    def _has_broken_rule(self, key: ObjectName) -> bool:
        return any(
            key in conflict.owners and conflict.too_many(key) for conflict in self._by_pod[key]
        )

    def _breaks_others(self, key: ObjectName) -> bool:
        return any(
            key in conflict.members and conflict.breaks_others(key)
            for conflict in self._repelling(key)
        )

    def in_order(self, keys: Iterable[ObjectName]) -> list[ObjectName]:
        """Sort pods by ascending priority, the youngest first among equals."""
        ordered = sorted(keys)
        ordered.sort(key=lambda key: self._pods[key].created, reverse=True)
        ordered.sort(key=lambda key: _priority(self._config, self._pods[key]))
        return ordered

    def _cause(self, key: ObjectName, *, anybody: bool) -> Cause:
        """Return a rule that would be broken if the pod stayed, preferably one of its own."""
        for conflict in self._by_pod[key]:
            conflict.come_back(key)
        cause = self._own_cause(key) or (self._cause_of_others(key) if anybody else None)
        for conflict in self._by_pod[key]:
            conflict.leave(key)
        return cause or self._past_cause(key)

    def _own_cause(self, key: ObjectName) -> Cause | None:
        for conflict in self._by_pod[key]:
            if key in conflict.owners and conflict.too_many(key):
                other = self._first_left(conflict.members, key)
                return self._cause_in_domain(key, conflict, conflict.owners[key], other)
        return None

    def _cause_of_others(self, key: ObjectName) -> Cause | None:
        for conflict in self._repelling(key):
            if key in conflict.members and conflict.breaks_others(key):
                return self._cause_of_owner(key, conflict, self._first_left(conflict.owners, key))
        return None

    def _first_left(self, keys: Collection[ObjectName], key: ObjectName) -> ObjectName:
        """Return the first of these pods that is not the victim itself, cached for all victims."""
        first = self._first.get(id(keys))
        if first is None:
            first = self._first[id(keys)] = min(other for other in keys if other != key)
        return first

    def _past_cause(self, key: ObjectName) -> Cause:
        """Return a rule that is broken while this pod and other leaving pods are present."""
        for conflict in self._by_pod[key]:
            path, other = conflict.path_of(key), _other_than(key, conflict.first_members)
            if path is not None and other is not None:
                return self._cause_in_domain(key, conflict, path, other)
        for conflict in self._repelling(key):
            owner = _other_than(key, conflict.first_owners)
            if conflict.matched(key) and owner is not None:
                return self._cause_of_owner(key, conflict, owner)
        return _cause(f"A rule does not hold while this pod is on node {self._node_of(key)}.")

    def _node_of(self, key: ObjectName) -> str | None:
        return self._pods[key].node_name

    def _repelling(self, key: ObjectName) -> Iterator[RuleConflict]:
        return (conflict for conflict in self._by_pod[key] if conflict not in self._attracting)

    def _cause_of_owner(self, key: ObjectName, conflict: RuleConflict, owner: ObjectName) -> Cause:
        rule = _rule_of(owner, conflict.path_of(owner) or "", told_in=key[0])
        return _cause(f"{rule} does not hold while this pod is on node {self._node_of(key)}.")

    def _cause_in_domain(
        self, key: ObjectName, conflict: RuleConflict, path: str, other: ObjectName
    ) -> Cause:
        place = f"{path} does not hold on node {self._node_of(key)}"
        if conflict in self._attracting:
            return Cause("PodAffinity", f"{place}.")
        return _cause(f"{place}: {pod_named(*other, told_in={key[0]})} is in its domain.")


def _other_than(key: ObjectName, keys: Iterable[ObjectName]) -> ObjectName | None:
    return next((other for other in keys if other != key), None)


def _staying(
    pods: Iterable[tuple[Pod, PodClass]],
) -> Iterator[tuple[ObjectName, Pod]]:
    for pod, pod_class in pods:
        if not pod_class.terminating:
            yield key_of(pod), pod


def _rule_of(owner: ObjectName, path: str, *, told_in: str) -> str:
    namespace, name = owner
    if namespace == told_in:
        return f"{path} of {namespace}/{name}"
    return f"A rule of {reference('Pod', namespace, name, path)}"


def _cause(message: str) -> Cause:
    return Cause("PodAntiAffinity", message)


def _priority(config: ClusterConfig, pod: Pod) -> int:
    if pod.spec.priority is not None:
        return pod.spec.priority
    return config.priority_of(pod.spec.priority_class_name) or 0
