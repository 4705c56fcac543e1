"""The required rules of placed pods that a move may break or satisfy again.

A pod that moves to a node that passes all filters satisfies its own rules and the anti-affinity of
others. Only other pods' affinity and hard topology spread rules that count the pod may break, in
the domains that it leaves and enters. A move may also satisfy rules that were broken before.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.rules.violations import Inspection, key_of
from service.engine.state.nodes.columns import Ints, Slots
from service.engine.state.nodes.counters import DomainCounter, IncludedNodes
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.pods.classes import PodClass
from service.model.core.primitives import ObjectName

BrokenRule = tuple[ObjectName, str]
"""A pod, and the path of its broken rule."""
_Place = tuple[TopologyKey, IncludedNodes | None]
"""How a rule distinguishes nodes: by domain, and by whether they are included."""


class Affected(NamedTuple):
    """The classes whose rules may be broken or satisfied when a pod of one class moves."""

    classes: frozenset[PodClass]
    places: frozenset[_Place]
    """How rules that need such pods distinguish nodes; a move cannot break other rules."""

    def union(self, other: "Affected") -> "Affected":
        """Return the union with `other`, for pods that move together."""
        return Affected(self.classes | other.classes, self.places | other.places)


class AffectedRules:
    """Finds the rules that moves affect, among the pods placed at creation."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._owners: defaultdict[int, dict[PodClass, None]] = defaultdict(dict)
        """The classes with required rules that read each counter, by counter id."""
        self._needs: defaultdict[int, set[_Place]] = defaultdict(set)
        self._concerns: dict[PodClass, Affected] = {}
        self._siblings: list[frozenset[PodClass]] = []
        for pod_class in cluster.placed_classes():
            self._enter(pod_class)
        self.known: frozenset[BrokenRule] = self.broken(cluster.placed_classes())
        """The rules that were broken initially."""
        self._broken_owners = frozenset(
            cluster.class_of(pod)
            for pod in (cluster.pod(*key) for key, _ in self.known)
            if pod is not None
        )

    def of(self, pod_class: PodClass) -> Affected:
        """Return the classes whose rules may break or hold again when a pod of a class moves."""
        affected = self._concerns.get(pod_class)
        if affected is None:
            affected = self._concerns[pod_class] = self._concern(pod_class)
        return affected

    def matters(self, affected: Affected) -> bool:
        """Return whether a move may break a rule or satisfy a broken one."""
        return bool(affected.places) or not self._broken_owners.isdisjoint(affected.classes)

    def broken(self, classes: Iterable[PodClass]) -> frozenset[BrokenRule]:
        """Return the currently broken rules of pods of these classes."""
        inspection = Inspection(self._cluster)
        placed = [placed_class for placed_class in classes if placed_class.nodes]
        return frozenset(
            (key_of(violation.pod), violation.breach.rule.path)
            for pod_class in inspection.suspects(placed)
            for violation in inspection.of(pod_class)
        )

    def newly_broken(self, broken: frozenset[BrokenRule]) -> list[BrokenRule]:
        """Return the broken rules that held initially, except those of terminating pods."""
        new = broken - self.known
        return [rule for rule in new if self._counts(rule)] if new else []

    def alike(self, affected: Affected, slots: Slots) -> Ints:
        """Return numbers that are equal for slots that no affected rule distinguishes.

        They have the shape (slots,).
        """
        number = np.zeros(len(slots), dtype=np.int64)
        for key, included_nodes in affected.places:
            part = key.domain_of[slots] + 1
            if included_nodes is not None:
                part = np.where(included_nodes.mask[slots], part, 0)
            number = number * (key.capacity + 2) + part
            number = np.unique(number, return_inverse=True)[1].astype(np.int64)
        return number

    def _counts(self, broken: BrokenRule) -> bool:
        pod = self._cluster.pod(*broken[0])
        return pod is not None and not pod.terminating

    def _enter(self, pod_class: PodClass) -> None:
        template = pod_class.template
        for term in template.anti_affinity:
            self._owners[id(term.counter)][pod_class] = None
        needed = (*template.affinity, *template.execution_affinity, *template.affinity_of_first)
        for term in needed:
            self._need(pod_class, term.counter, (term.counter.key, None))
        for rule in template.hard_spread:
            if rule.counter is not None:
                self._need(pod_class, rule.counter, (rule.key, rule.included_nodes))
        if template.siblings is not None:
            self._siblings.append(frozenset(template.siblings.matcher.classes))

    def _need(self, pod_class: PodClass, counter: DomainCounter, place: _Place) -> None:
        self._owners[id(counter)][pod_class] = None
        self._needs[id(counter)].add(place)

    def _concern(self, pod_class: PodClass) -> Affected:
        classes, places = {pod_class}, set[_Place]()
        for entry in pod_class.matched:
            for counter in entry.counters.values():
                classes.update(self._owners.get(id(counter), ()))
                places |= self._needs.get(id(counter), set())
        for siblings in self._siblings:  # which of them is exempt depends on all of them
            if not siblings.isdisjoint(classes):
                classes |= siblings
        return Affected(frozenset(classes), frozenset(places))
