"""Exemptions: rules about other pods, and spread constraints, that do not apply to a pod.

Anti-affinity does not apply between daemons (pods in one of `daemonNamespaces`) and other pods, nor
to pods whose namespace a rule excepts by its `exceptNamespaceSelector`; affinity with
`firstPodExempt` does not apply to the first pod of a controller. Spread constraints do not apply
after they fall back. A rule that would otherwise exclude nodes is listed with the reason for its
exemption, so that every placement can be explained.
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
    """Where a rule is declared; placed pods that declare it in one place share an entry."""

    namespace: str
    path: str
    topology_key: str


class _Reach:
    """Placed pods, and the domains of a topology key that a rule would exclude because of them."""

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.pods = 0
        self.domains: set[int] = set()

    def add_owners(self, pod_class: PodClass, term: OwnedTerm) -> None:
        """Add the pods of a class that have the rule."""
        for domain, pods in _by_domain(self.key, pod_class):
            self.pods += pods
            if term.limit is None or term.limit.in_domain(domain):
                self.domains.add(domain)

    def add_matched(self, others: Iterable[PodClass], limit: DomainLimit | None) -> None:
        """Add the pods that the rule would count without the exemption."""
        pods_by_domain: Counter[int] = Counter()
        for other in others:
            for domain, pods in _by_domain(self.key, other):
                pods_by_domain[domain] += pods
        self.pods += pods_by_domain.total()
        for domain, pods in pods_by_domain.items():
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
    """Return the exempt rules of a class that would otherwise exclude nodes.

    The pod's own rules come first, followed by those of placed pods, ordered by namespace and path.
    """
    if not profile.has_filter(inter_pod_affinity.NAME):
        return []
    return [
        *_first_pod_exemptions(cluster, pod_class),
        *_daemon_exemptions(cluster, pod_class),
        *_namespace_exemptions(cluster, pod_class),
    ]


def _first_pod_exemptions(cluster: Cluster, pod_class: PodClass) -> Iterator[Exemption]:
    """Yield the affinity rules that are exempt while no sibling of the pod is placed."""
    terms = pod_class.template.affinity
    if pod_class.affinity is terms:
        return
    vetoes = inter_pod_affinity.affinity_vetoes(cluster.nodes, pod_class, terms)
    closed = {id(term): veto for term, veto in zip(terms, vetoes, strict=True)}
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


def fallback_exemptions(
    cluster: Cluster, pod: Pod, judged: Pod, profile: Profile
) -> list[Exemption]:
    """Return the fallback constraints of a pod that are soft in the `judged` pod."""
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


def _daemon_exemptions(cluster: Cluster, pod_class: PodClass) -> list[Exemption]:
    daemons = cluster.config.daemon_namespaces
    if not daemons:
        return []
    is_daemon = pod_class.namespace in daemons
    others = [
        other for other in cluster.placed_classes() if (other.namespace in daemons) != is_daemon
    ]
    return [
        *_own(cluster, pod_class, others, OWN_OF_DAEMON if is_daemon else OWN, _exempts_daemon),
        *_of_others(
            cluster, pod_class, others, OTHERS if is_daemon else OTHERS_OF_DAEMONS, _exempts_daemon
        ),
    ]


def _namespace_exemptions(cluster: Cluster, pod_class: PodClass) -> list[Exemption]:
    answer: list[Exemption] = []
    if pod_class.template.excepts:
        answer += _own(cluster, pod_class, cluster.placed_classes(), EXCEPTED, _excepts)
    others = [other for other in cluster.placed_classes() if other.template.excepts]
    if others:
        answer += _of_others(cluster, pod_class, others, EXCEPTED_BY_OTHERS, _excepts)
    return answer


def _by_domain(key: TopologyKey, pod_class: PodClass) -> Iterator[tuple[int, int]]:
    """Yield the domain and number of pods for each node of a class."""
    for slot, pods in pod_class.nodes.items():
        domain = int(key.domain_of[slot])
        if domain != NO_DOMAIN:
            yield domain, pods


def _own(
    cluster: Cluster,
    pod_class: PodClass,
    others: Iterable[PodClass],
    reason: str,
    exempts: "_Exempts",
) -> Iterator[Exemption]:
    for rule, term in anti_affinity_rules(pod_class.template):
        reach = _Reach(term.counter.key)
        left_out = [other for other in others if exempts(term.matcher, cluster.subject(other))]
        reach.add_matched(left_out, term.limit_for(pod_class))
        if reach.domains:
            yield reach.exemption(rule.path, None, reason)


def _of_others(
    cluster: Cluster,
    pod_class: PodClass,
    others: Iterable[PodClass],
    reason: str,
    exempts: "_Exempts",
) -> Iterator[Exemption]:
    subject = cluster.subject(pod_class)
    reaches: dict[_Place, _Reach] = {}
    for other in others:
        for rule, term in owned_rules(other):
            if exempts(term.matcher, subject):
                key = term.counter.key
                place = _Place(other.namespace, rule.path, key.name)
                reaches.setdefault(place, _Reach(key)).add_owners(other, term)
    for place in sorted(reaches):
        if reaches[place].domains:
            yield reaches[place].exemption(place.path, place.namespace, reason)


def _exempts_daemon(entry: MatcherEntry, subject: Subject) -> bool:
    """Return whether a rule fails to apply only because daemons are exempt from one term."""
    return all(term.exempts_daemon(subject) for term in entry.matcher)


def _excepts(entry: MatcherEntry, subject: Subject) -> bool:
    """Return whether a rule fails to apply only because one term excepts a namespace."""
    return all(term.excepts(subject) for term in entry.matcher)


_Exempts = Callable[[MatcherEntry, Subject], bool]
