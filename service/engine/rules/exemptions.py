"""Rules that are left out for a pod: required rules about other pods, and of spreading.

Anti-affinity is left out between daemons (pods in one of `daemonNamespaces`) and other pods, and for
pods whose namespace a rule leaves out by its `exceptNamespaceSelector`; affinity is left out for the
first pod of a controller by `firstPodExempt`. Constraints on topology spread are left out once they
have fallen back. A rule that would exclude nodes otherwise is listed with the reason, so that nobody
has to guess why a pod may be where it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from service.engine.cluster import Cluster
from service.engine.placing.spread_fallback import fallbacks, variant
from service.engine.plugins import inter_pod_affinity, pod_topology_spread
from service.engine.profiles.profile import Profile
from service.engine.rules.rule_paths import (
    anti_affinity_rules,
    exempt_rules,
    owned_rules,
)
from service.engine.state.nodes.columns import ALL
from service.engine.state.nodes.counters import DomainLimit
from service.engine.state.nodes.topology import NO_DOMAIN, TopologyKey
from service.engine.state.pods.classes import MatcherEntry, OwnedTerm, PodClass
from service.engine.state.pods.matchers import Subject
from service.engine.state.pods.spread import SpreadRule
from service.model.pods.pod import Pod

OWN = "Pods in daemonNamespaces do not count for required anti-affinity of other pods."
OWN_OF_DAEMON = "Only pods in daemonNamespaces count for required anti-affinity of a pod in them."
OTHERS = "Required anti-affinity of other pods does not keep out a pod in daemonNamespaces."
OTHERS_OF_DAEMONS = (
    "Required anti-affinity of pods in daemonNamespaces does not keep out other pods."
)


EXCEPTED = "exceptNamespaceSelector leaves out the namespaces of these pods."
FALLEN_BACK = (
    "FallbackWhenFull: no node on which the pod fits otherwise has room under the constraint."
)
EXCEPTED_BY_OTHERS = "exceptNamespaceSelector of other pods' rules leaves out the pod's namespace."


FIRST_POD = "firstPodExempt leaves out the rule until one of the pods that it is for is placed."


class Exemption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule that was left out for a pod, and why."""

    rule: str
    """Where the manifest of the pod that has the rule states it."""
    owner_namespace: str | None
    """The namespace of the placed pods that have the rule; null for a rule of the pod itself."""
    topology_key: str
    """The key of the domains within which the rule would keep pods apart, or together."""
    reason: str
    """Why the rule was left out."""
    pods: int
    """How many placed pods the pod's own rule would be about, or how many have the rule."""
    nodes: int
    """How many nodes the rule would exclude."""


class _Place(NamedTuple):
    """The place where a rule is stated; placed pods with equal places are listed as one."""

    namespace: str
    path: str
    topology_key: str


class _Reach:
    """Placed pods, and the domains of a topology key that the rule would close because of them."""

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.pods = 0
        self.domains: set[int] = set()

    def add_owners(self, pod_class: PodClass, term: OwnedTerm) -> None:
        """Add pods that have the rule."""
        for domain, pods in _by_domain(self.key, pod_class):
            self.pods += pods
            if term.limit is None or term.limit.in_domain(domain):
                self.domains.add(domain)

    def add_matched(self, others: Iterable[PodClass], limit: DomainLimit | None) -> None:
        """Add all pods that the rule would be about, besides those that it is about."""
        held: Counter[int] = Counter()
        for other in others:
            for domain, pods in _by_domain(self.key, other):
                held[domain] += pods
        self.pods += held.total()
        for domain, pods in held.items():
            if limit is None or limit.pods.in_domain(domain) + pods >= limit.full_at:
                self.domains.add(domain)

    def exemption(self, path: str, namespace: str | None, reason: str) -> Exemption:
        return Exemption(
            rule=path,
            owner_namespace=namespace,
            topology_key=self.key.name,
            reason=reason,
            pods=self.pods,
            nodes=sum(len(self.key.members[domain]) for domain in self.domains),
        )


def exemptions(cluster: Cluster, pod_class: PodClass, profile: Profile) -> list[Exemption]:
    """Return every rule that is left out for a pod of the class and would exclude nodes.

    The rules of the pod itself come first, then those of placed pods, by namespace and path.
    """
    if not profile.has_filter(inter_pod_affinity.NAME):
        return []
    return [
        *_of_first_pod(cluster, pod_class),
        *_between_daemons_and_others(cluster, pod_class),
        *_excepted(cluster, pod_class),
    ]


def _of_first_pod(cluster: Cluster, pod_class: PodClass) -> Iterator[Exemption]:
    """Yield the affinity that is left out since no sibling of the pod is placed."""
    terms = pod_class.template.affinity
    if pod_class.affinity is terms:
        return
    vetoes = inter_pod_affinity.lacking(cluster.nodes, pod_class, terms)
    closed = {id(term): each for term, each in zip(terms, vetoes, strict=True)}
    for rule, term in exempt_rules(pod_class.template):
        nodes = int(np.count_nonzero((closed[id(term)].nodes != 0) & cluster.nodes.alive))
        if nodes:
            yield Exemption(
                rule=rule.path,
                owner_namespace=None,
                topology_key=term.counter.key.name,
                reason=FIRST_POD,
                pods=term.counter.total,
                nodes=nodes,
            )


def fallen_back(cluster: Cluster, pod: Pod, judged: Pod, profile: Profile) -> list[Exemption]:
    """Return the constraints of a pod that may fall back and are soft in the pod as it is judged."""
    indexes = fallbacks(pod)
    if not indexes or not profile.has_filter(pod_topology_spread.NAME):
        return []
    constraints = judged.spec.topology_spread_constraints
    whole = cluster.class_of(variant(pod, cluster.class_of(pod).template, indexes))
    return [
        _exempt_spread(cluster, rule, itself=itself)
        for rule, itself in zip(whole.template.hard_spread, whole.hard_self, strict=True)
        if rule.index in indexes and constraints[rule.index].when_unsatisfiable == "ScheduleAnyway"
    ]


def _exempt_spread(cluster: Cluster, rule: SpreadRule, *, itself: bool) -> Exemption:
    allowed = pod_topology_spread.allowed_domains(rule, self_matches=itself).take(
        rule.key.domain_of
    )
    return Exemption(
        rule=f"spec.topologySpreadConstraints[{rule.index}]",
        owner_namespace=None,
        topology_key=rule.key.name,
        reason=FALLEN_BACK,
        pods=0 if rule.counter is None else rule.counter.total,
        nodes=int((cluster.nodes.alive[ALL] & ~allowed).sum()),
    )


def _between_daemons_and_others(cluster: Cluster, pod_class: PodClass) -> list[Exemption]:
    daemons = cluster.config.daemon_namespaces
    if not daemons:
        return []
    is_daemon = pod_class.namespace in daemons
    others = [each for each in cluster.placed_classes() if (each.namespace in daemons) != is_daemon]
    return [
        *_own(cluster, pod_class, others, OWN_OF_DAEMON if is_daemon else OWN, _leaves_out),
        *_of_others(
            cluster, pod_class, others, OTHERS if is_daemon else OTHERS_OF_DAEMONS, _leaves_out
        ),
    ]


def _excepted(cluster: Cluster, pod_class: PodClass) -> list[Exemption]:
    found: list[Exemption] = []
    if pod_class.template.excepts:
        found += _own(cluster, pod_class, cluster.placed_classes(), EXCEPTED, _excepts)
    others = [each for each in cluster.placed_classes() if each.template.excepts]
    if others:
        found += _of_others(cluster, pod_class, others, EXCEPTED_BY_OTHERS, _excepts)
    return found


def _by_domain(key: TopologyKey, pod_class: PodClass) -> Iterator[tuple[int, int]]:
    """Yield how many pods of a class are placed in a domain, once for each of their nodes."""
    for slot, pods in pod_class.nodes.items():
        domain = int(key.domain_of[slot])
        if domain != NO_DOMAIN:
            yield domain, pods


def _own(
    cluster: Cluster,
    pod_class: PodClass,
    others: Iterable[PodClass],
    reason: str,
    leaves_out: "_LeavesOut",
) -> Iterator[Exemption]:
    for rule, term in anti_affinity_rules(pod_class.template):
        reach = _Reach(term.counter.key)
        left_out = [each for each in others if leaves_out(term.matcher, cluster.subject(each))]
        reach.add_matched(left_out, term.limit_for(pod_class))
        if reach.domains:
            yield reach.exemption(rule.path, None, reason)


def _of_others(
    cluster: Cluster,
    pod_class: PodClass,
    others: Iterable[PodClass],
    reason: str,
    leaves_out: "_LeavesOut",
) -> Iterator[Exemption]:
    subject = cluster.subject(pod_class)
    found: dict[_Place, _Reach] = {}
    for other in others:
        for rule, term in owned_rules(other):
            if leaves_out(term.matcher, subject):
                key = term.counter.key
                place = _Place(other.namespace, rule.path, key.name)
                found.setdefault(place, _Reach(key)).add_owners(other, term)
    for place in sorted(found):
        if found[place].domains:
            yield found[place].exemption(place.path, place.namespace, reason)


def _leaves_out(entry: MatcherEntry, subject: Subject) -> bool:
    """Whether the rule would be about the pod if daemons were not exempt; it has one term."""
    return all(term.leaves_out(subject) for term in entry.matcher)


def _excepts(entry: MatcherEntry, subject: Subject) -> bool:
    """Whether the rule would be about the pod if it left out no namespace; it has one term."""
    return all(term.excepts(subject) for term in entry.matcher)


_LeavesOut = Callable[[MatcherEntry, Subject], bool]
