"""Placement of a pod: all filters on all nodes, then the highest score; a hash breaks ties.

The fast path reads cached ranks (`service.engine.ranking.rank_cache`) and counters.
`service.engine.explain.explanation` calls the same plugins for their reasons, node by node.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.framework.plugin import DomainScores, RelativeScore
from service.engine.placing.nominations import assume_reservation, reservations, reserved_node
from service.engine.placing.refusal import (
    PrefilterRejection,
    Refusal,
    failures_of,
    prefilter,
    refuse,
)
from service.engine.placing.spread_fallback import fallbacks, variant
from service.engine.profiles.profile import Profile, RelationPlugins, RelativeWeight
from service.engine.ranking.rank_cache import Candidates
from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.group_domain import GroupDomain
from service.engine.state.nodes.node_table import NodeTable, tie_hash
from service.engine.state.nodes.rank import TIE_BITS, VETO
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.pods.classes import PodClass
from service.model.devices.device import ClaimAllocation
from service.model.pods.pod import Pod


class Placement(NamedTuple):
    """A node that passes every filter, and its total score."""

    node_name: str
    score: int
    bindings: Mapping[str, str] | None = None
    """For a group member, the volume or `PROVISION` for each claim, as checked with the group."""
    devices: Sequence[ClaimAllocation] | None = None
    """For a group member, the device allocations as checked with the group."""


NO_DIAGNOSIS = Refusal("")
"""A refusal whose reasons were not requested."""


class UnknownSchedulerError(LookupError):
    """Raised if the pod's `schedulerName` is not a profile of the cluster."""


def place(
    cluster: Cluster,
    pod: Pod,
    hint: str | None = None,
    within: GroupDomain | None = None,
    *,
    with_reasons: bool = True,
) -> Placement | Refusal:
    """Find the best feasible node for a pod, without changing the cluster.

    A feasible `hint` is used without a search. Otherwise, the node nominated for the pod is used if
    feasible, or else the node reserved for it as the replacement of a moved pod.

    Args:
        cluster: the cluster.
        pod: the pod to place.
        hint: the node chosen before a lost race, if any.
        within: the domain to which the pod's group confines it, if any.
        with_reasons: whether a refusal has reasons; without them it is faster.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    profile = profile_of(cluster, pod)
    pod_class = cluster.class_of(pod)
    if pod_class.template.falls_back:
        pod = resolve_fallbacks(cluster, pod, within)
        pod_class = cluster.class_of(pod)
    vetoes = relation_vetoes(cluster.nodes, pod_class, profile)
    if within is not None:
        vetoes.append(within.vetoes)
    candidates = candidates_of(cluster, pod_class, profile, vetoes)
    if cluster.nominated or cluster.reserved:
        candidates = without_reserved_nodes(
            cluster, pod, candidates, more=() if within is None else (within.vetoes,)
        )
    reserved = reserved_node(cluster, pod) if cluster.reserved else None
    if not (hint is None and pod.nominated_node_name is None and reserved is None):
        candidates = _first_candidate(
            cluster, candidates, (hint, pod.nominated_node_name, reserved)
        )
    best = best_placement(cluster, pod, pod_class, candidates)
    if best is not None:
        return best
    return refuse(cluster, pod, profile, within) if with_reasons else NO_DIAGNOSIS


def resolve_fallbacks(cluster: Cluster, pod: Pod, within: GroupDomain | None = None) -> Pod:
    """Return a pod with its fallback constraints resolved to hard or soft for the current state.

    A fallback constraint is hard if the pod then still fits on a node (`within` a domain, if
    given), together with the preceding constraints that are hard.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    indexes = fallbacks(pod)
    if not indexes:
        return pod
    template = cluster.class_of(pod).template
    whole = variant(pod, template, indexes)
    if _fits_anywhere(cluster, whole, within):
        return whole
    hard: tuple[int, ...] = ()
    for index in indexes if len(indexes) > 1 else ():
        if _fits_anywhere(cluster, variant(pod, template, (*hard, index)), within):
            hard = (*hard, index)
    return variant(pod, template, hard)


def _fits_anywhere(cluster: Cluster, pod: Pod, within: GroupDomain | None) -> bool:
    more = () if within is None else (within.vetoes,)
    candidates = _candidates(cluster, pod, (), more)
    if cluster.has_reservations:
        candidates = without_reserved_nodes(cluster, pod, candidates, more=more)
    return best_placement(cluster, pod, cluster.class_of(pod), candidates) is not None


def best_placement(
    cluster: Cluster, pod: Pod, pod_class: PodClass, candidates: Candidates
) -> Placement | None:
    """Return the candidate with the highest total score, or None without candidates."""
    if not cluster.nodes.size:
        return None
    profile = profile_of(cluster, pod)
    relations = _relations(cluster.nodes, pod_class, profile)
    tie = tie_hash(f"{pod.namespace}/{pod.name}")
    best = None
    if len(relations) == 1:
        score, weighed = relations[0]
        if score.terms:
            best = candidates.best_by_affinity(score.terms, weighed.scale, tie)
    if best is None:
        best = candidates.best(_relative_scores(relations, candidates), tie)
    slot, rank = best
    if rank < 0:
        return None
    node = cluster.nodes.nodes[slot]
    assert node is not None
    return Placement(node.name, (rank >> TIE_BITS) + candidates.rows.constant)


def profile_of(cluster: Cluster, pod: Pod) -> Profile:
    """Return the profile that the pod's `schedulerName` selects.

    Raises:
        UnknownSchedulerError: there is no such profile.
    """
    profile = cluster.profiles.get(pod.spec.scheduler_name)
    if profile is None:
        raise UnknownSchedulerError(pod.spec.scheduler_name)
    return profile


def candidates_of(
    cluster: Cluster, pod_class: PodClass, profile: Profile, vetoes: Sequence[Vetoes]
) -> Candidates:
    """Return the candidate nodes for pods of a class, given the vetoes."""
    rules, nodes = pod_class.template.rules, cluster.nodes
    only = None
    if rules.named is not None and profile.narrows:
        only = [nodes.slots[name] for name in rules.named if name in nodes.slots]
    for veto in vetoes:
        if veto.only is not None:
            only = [slot for slot in (veto.only if only is None else only) if slot in veto.only]
    return Candidates(nodes, cluster.rows(rules, profile), vetoes, only)


def _first_candidate(
    cluster: Cluster, candidates: Candidates, names: Iterable[str | None]
) -> Candidates:
    """Limit the candidates to the first named node that is a candidate, if any."""
    for name in names:
        slot = None if name is None else cluster.nodes.slots.get(name)
        if slot is not None and candidates.has(slot):
            return candidates.only(slot)
    return candidates


def without_reserved_nodes(
    cluster: Cluster,
    pod: Pod,
    candidates: Candidates,
    expected: Sequence[PodClass] = (),
    more: Sequence[Vetoes] = (),
) -> Candidates:
    """Exclude the nodes where a pod does not fit together with the pods nominated for them.

    `expected` has the same meaning as in `relation_vetoes`; `more` are additional vetoes.
    """
    relevant = [
        reservation
        for reservation in reservations(cluster, pod)
        if candidates.has(reservation.slot)
    ]
    if not relevant:
        return candidates
    excluded = np.zeros(cluster.nodes.size, dtype=np.int64)
    for reservation in relevant:
        mark = cluster.mark()
        assume_reservation(cluster, reservation)
        if not _candidates(cluster, pod, expected).has(reservation.slot):
            excluded[reservation.slot] = VETO
        cluster.undo(mark)
    # The previous candidates may share arrays with those computed in the loop.
    return _candidates(
        cluster, pod, expected, [*more, Vetoes(cluster.nodes.itself, nodes=excluded)]
    )


def _candidates(
    cluster: Cluster, pod: Pod, expected: Sequence[PodClass], more: Sequence[Vetoes] = ()
) -> Candidates:
    profile, pod_class = profile_of(cluster, pod), cluster.class_of(pod)
    vetoes = relation_vetoes(cluster.nodes, pod_class, profile, expected)
    return candidates_of(cluster, pod_class, profile, [*vetoes, *more])


def relation_vetoes(
    nodes: NodeTable, pod_class: PodClass, profile: Profile, expected: Sequence[PodClass] = ()
) -> list[Vetoes]:
    """Return the vetoes of the filters that depend on other pods.

    A rule that pods of the `expected` classes may still satisfy counts as satisfied.
    """
    vetoes: list[Vetoes] = []
    for plugin in _relation_plugins(pod_class, profile).filters:
        if plugin.concerns(pod_class):
            vetoes += [v for v in plugin.vetoes(nodes, pod_class, expected) if v.may_exclude]
    if pod_class.volumes is not None:
        for volume_plugin in profile.volume_filters:
            vetoes += [v for v in volume_plugin.vetoes(nodes, pod_class) if v.may_exclude]
    return vetoes


def _relation_plugins(pod_class: PodClass, profile: Profile) -> RelationPlugins:
    """Return the relation plugins that apply to a class, cached in the class."""
    plugins = pod_class.relation_plugins
    if not isinstance(plugins, RelationPlugins) or plugins.profile is not profile:
        plugins = pod_class.relation_plugins = RelationPlugins(profile, pod_class)
    return plugins


def _relations(
    nodes: NodeTable, pod_class: PodClass, profile: Profile
) -> list[tuple[RelativeScore, RelativeWeight]]:
    """Return the scores of a class by its relations to other pods, each with its weight."""
    answer = []
    for relation in _relation_plugins(pod_class, profile).scores:
        score = relation.plugin.scoring(nodes, pod_class)
        if score is not None:
            answer.append((score, relation))
    return answer


def _relative_scores(
    relations: list[tuple[RelativeScore, RelativeWeight]], candidates: Candidates
) -> list[DomainScores | Ints]:
    """Return the weighted scores that depend on the set of candidates.

    Scores by node, shape (nodes,), int64, are shifted by TIE_BITS like ranks.
    """
    answer: list[DomainScores | Ints] = []
    for plugin, weight, raw in candidates.rows.raw:
        answer.append((weight << TIE_BITS) * plugin.normalize(raw, candidates.ranks))
    for score, relative in relations:
        weight = relative.weight
        by_domain = score.by_domain(candidates.vacant)
        if by_domain is not None:
            answer.append(
                DomainScores(by_domain.key, [weight * score for score in by_domain.scores])
            )
            continue
        scores = score.on_nodes(candidates.ranks, weight << TIE_BITS)
        if scores is not None:
            answer.append(scores)
    return answer


def check(cluster: Cluster, pod: Pod, node_name: str) -> dict[str, list[str]]:
    """Return the reasons for rejecting a pod on a node, by plugin; empty if the pod fits.

    Raises:
        KeyError: there is no such node.
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    profile, pod = profile_of(cluster, pod), resolve_fallbacks(cluster, pod)
    slot, pod_class = cluster.nodes.slots[node_name], cluster.class_of(pod)
    prefiltered = prefilter(cluster, pod_class, profile)
    if isinstance(prefiltered, PrefilterRejection):
        return {prefiltered.plugin: [prefiltered.reason]}
    failures = failures_of(cluster, pod, profile)
    reasons = {
        plugin: [failure.reason for failure in failing if failure.nodes[slot]]
        for plugin, failing in failures.items()
    }
    return {plugin: failing for plugin, failing in reasons.items() if failing}
