"""Whom to evict so that rules between pods that are required during execution hold again.

These are the rules of anti-affinity, and those of affinity that can be made true by fewer pods: a
pod that matches its own rule may be anywhere while no other pod matches it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from service.engine.rules.violations import CompetingPods, DomainPods, Inspection, Violation, key_of
from service.engine.state.pods.classes import PodClass
from service.model.configuration.config import ClusterConfig
from service.model.objects.pods_and_nodes import ObjectName, Pod
from service.scheduler.decide.evicting.victim_search import Quarrel, let_leave
from service.scheduler.decide.status.pod_conditions import Rule
from service.scheduler.decide.status.references import (
    pod_named,
    reference,
)


class Cause(NamedTuple):
    """Why a pod is evicted; `message` names the rule and where it does not hold."""

    rule: Rule
    message: str

    @property
    def reason(self) -> str:
        """The reason for the pod's condition."""
        return f"{self.rule}Violated"


class EvictionsThatMendRules:
    """All conflicts of a sweep. Pods that are being evicted, by whomever, count as gone."""

    def __init__(self, config: ClusterConfig, inspection: Inspection) -> None:
        self._config = config
        self._inspection = inspection
        self._pods: dict[ObjectName, Pod] = {}
        self.quarrels: dict[DomainPods | CompetingPods, Quarrel] = {}
        """The quarrels by domain and rule; pods that leave are taken out of them."""
        self._attracting: set[Quarrel] = set()
        """The quarrels about a rule of affinity."""
        self._by_pod: defaultdict[ObjectName, list[Quarrel]] = defaultdict(list)
        self._owners: dict[ObjectName, None] = {}
        self._others: dict[ObjectName, None] = {}
        """The pods besides owners that may leave, if anybody may."""
        self._first: dict[int, ObjectName] = {}
        """The first of those who stay, by the identity of a quarrel's members or owners."""

    def add(self, violation: Violation) -> None:
        """Take in a broken rule of anti-affinity, or one of affinity that others can make true."""
        breach, owner = violation.breach, key_of(violation.pod)
        about = breach.domain_pods or breach.competing_pods
        assert about is not None
        quarrel = self.quarrels.get(about)
        if quarrel is None:
            quarrel = self.quarrels[about] = self._quarrel(about)
        if owner not in quarrel.owners and owner not in quarrel.members:
            self._by_pod[owner].append(quarrel)
        quarrel.owners.setdefault(owner, breach.rule.path)
        self._owners[owner] = None
        self._pods[owner] = violation.pod

    def _quarrel(self, about: DomainPods | CompetingPods) -> Quarrel:
        if isinstance(about, DomainPods):
            quarrel = Quarrel(set(), about.max_per_domain)
            found = self._inspection.members(about)
        else:
            quarrel, found = Quarrel(set()), self._inspection.competitors(about)
            self._attracting.add(quarrel)
        for key, pod in _staying(found):
            quarrel.members.add(key)
            self._pods[key] = pod
            self._by_pod[key].append(quarrel)
            if isinstance(about, DomainPods):
                self._others[key] = None
        return quarrel

    def leave(self, key: ObjectName) -> None:
        """Count a pod as gone."""
        self._owners.pop(key, None)
        self._others.pop(key, None)
        for quarrel in self._by_pod.pop(key, ()):
            quarrel.leave(key)

    def victims(self) -> Iterator[tuple[ObjectName, Cause]]:
        """Find the fewest victims with which every rule holds, the least important first."""
        anybody = self._config.anti_affinity_victim == "LowestPriority"
        self._drop_settled()
        candidates = self.in_order(self._candidates(anybody=anybody))
        priorities = {key: _priority(self._config, self._pods[key]) for key in candidates}
        leaving = let_leave(candidates, priorities, self._by_pod)
        for key in candidates:
            if key in leaving:
                yield key, self._cause(key, anybody=anybody)

    def _drop_settled(self) -> None:
        """Forget the rules that hold once everybody is gone who leaves already.

        Nobody is to be evicted for them, and pods are not in conflict with each other by them.
        """
        quarrels = self.quarrels.values()
        broken = {each for each in quarrels if any(map(each.too_many, each.owners))}
        for key, concerned in self._by_pod.items():
            self._by_pod[key] = [each for each in concerned if each in broken]

    def _candidates(self, *, anybody: bool) -> set[ObjectName]:
        """Return the pods that have a broken rule, and if anybody may leave, those it matches."""
        found = {key for key in self._owners if self._has_broken_rule(key)}
        if anybody:
            found.update(key for key in self._others if self._breaks_others(key))
        return found

    def _has_broken_rule(self, key: ObjectName) -> bool:
        return any(key in each.owners and each.too_many(key) for each in self._by_pod[key])

    def _breaks_others(self, key: ObjectName) -> bool:
        return any(key in each.members and each.breaks_others(key) for each in self._repelling(key))

    def in_order(self, keys: Iterable[ObjectName]) -> list[ObjectName]:
        """Sort pods: the lowest priority first, and the youngest first among equals."""
        ordered = sorted(keys)
        ordered.sort(key=lambda key: self._pods[key].created, reverse=True)
        ordered.sort(key=lambda key: _priority(self._config, self._pods[key]))
        return ordered

    def _cause(self, key: ObjectName, *, anybody: bool) -> Cause:
        """Return a rule that would be broken if the pod stayed: its own one, if there is any."""
        for quarrel in self._by_pod[key]:
            quarrel.come_back(key)
        cause = self._own_cause(key) or (self._cause_of_others(key) if anybody else None)
        for quarrel in self._by_pod[key]:
            quarrel.leave(key)
        return cause or self._past_cause(key)

    def _own_cause(self, key: ObjectName) -> Cause | None:
        for quarrel in self._by_pod[key]:
            if key in quarrel.owners and quarrel.too_many(key):
                other = self._first_left(quarrel.members, key)
                return self._told(key, quarrel, quarrel.owners[key], other)
        return None

    def _cause_of_others(self, key: ObjectName) -> Cause | None:
        for quarrel in self._repelling(key):
            if key in quarrel.members and quarrel.breaks_others(key):
                return self._told_of(key, quarrel, self._first_left(quarrel.owners, key))
        return None

    def _first_left(self, keys: Collection[ObjectName], key: ObjectName) -> ObjectName:
        """Return the first of those who stay beside one victim: the same for all victims."""
        first = self._first.get(id(keys))
        if first is None:
            first = self._first[id(keys)] = min(each for each in keys if each != key)
        return first

    def _past_cause(self, key: ObjectName) -> Cause:
        """Return a rule that is broken as long as those are there that leave with the pod."""
        for quarrel in self._by_pod[key]:
            path, other = quarrel.path_of(key), _other_than(key, quarrel.first_members)
            if path is not None and other is not None:
                return self._told(key, quarrel, path, other)
        for quarrel in self._repelling(key):
            owner = _other_than(key, quarrel.first_owners)
            if quarrel.matched(key) and owner is not None:
                return self._told_of(key, quarrel, owner)
        return _cause(f"A rule does not hold while this pod is on node {self._node_of(key)}.")

    def _node_of(self, key: ObjectName) -> str | None:
        return self._pods[key].node_name

    def _repelling(self, key: ObjectName) -> Iterator[Quarrel]:
        return (each for each in self._by_pod[key] if each not in self._attracting)

    def _told_of(self, key: ObjectName, quarrel: Quarrel, owner: ObjectName) -> Cause:
        rule = _rule_of(owner, quarrel.path_of(owner) or "", told_in=key[0])
        return _cause(f"{rule} does not hold while this pod is on node {self._node_of(key)}.")

    def _told(self, key: ObjectName, quarrel: Quarrel, path: str, other: ObjectName) -> Cause:
        place = f"{path} does not hold on node {self._node_of(key)}"
        if quarrel in self._attracting:
            return Cause("PodAffinity", f"{place}.")
        return _cause(f"{place}: {pod_named(*other, told_in={key[0]})} is in its domain.")


def _other_than(key: ObjectName, keys: Iterable[ObjectName]) -> ObjectName | None:
    return next((each for each in keys if each != key), None)


def _staying(
    found: Iterable[tuple[Pod, PodClass]],
) -> Iterator[tuple[ObjectName, Pod]]:
    for pod, pod_class in found:
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
