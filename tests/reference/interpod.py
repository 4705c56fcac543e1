"""InterPodAffinity: pods beside, and away from, other pods."""

from collections.abc import Iterator
from typing import Any

from tests.reference.node_plugins import Rejections, Scores
from tests.reference.selectors import is_empty_selector, selector_matches
from tests.reference.view import (
    PREFERRED,
    REQUIRED,
    Manifest,
    Verdict,
    View,
    affinity_of,
    labels_of,
    namespace_of,
)

Domain = tuple[str, str]
"""(topology key, value)."""

AFFINITY = Verdict(["node(s) didn't match pod affinity rules"], unresolvable=True)
ANTI_AFFINITY = Verdict(["node(s) didn't match pod anti-affinity rules"], unresolvable=False)
EXISTING = Verdict(["node(s) didn't satisfy existing pods anti-affinity rules"], unresolvable=False)
FULL = Verdict(["node(s) would exceed maxPerDomain of pod anti-affinity rules"], unresolvable=False)
EXISTING_FULL = Verdict(
    ["node(s) would exceed maxPerDomain of existing pods anti-affinity rules"], unresolvable=False
)


def required_terms(pod: Manifest, kind: str) -> list[Manifest]:
    """`kind`: podAffinity or podAntiAffinity; both required variants filter alike."""
    affinity = affinity_of(pod, kind)
    if not affinity:
        return []
    return [term for variant in REQUIRED for term in affinity.get(variant) or []]


def binding_terms(view: View, pod: Manifest) -> list[Manifest]:
    """The required affinity of a pod that is to be placed: what is for its siblings may be left out."""
    terms = required_terms(pod, "podAffinity")
    if not exempts(pod) or any(are_siblings(pod, other) for other, _ in view.placed()):
        return terms
    return [term for term in terms if not term.get("firstPodExempt")]


def are_siblings(one: Manifest, other: Manifest) -> bool:
    """Both have a term that is left out for the first; and one controller, or the same labels."""
    if namespace_of(one) != namespace_of(other) or not (exempts(one) and exempts(other)):
        return False
    owners = [controller_of(one), controller_of(other)]
    if owners == [None, None]:
        return labels_of(one) == labels_of(other)
    return owners[0] == owners[1]


def exempts(pod: Manifest) -> bool:
    return any(term.get("firstPodExempt") for term in required_terms(pod, "podAffinity"))


def controller_of(pod: Manifest) -> Manifest | None:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def preferred_terms(pod: Manifest, kind: str) -> list[tuple[Manifest, int]]:
    """Terms with their weights; a connection is such a term, too."""
    weighted = affinity_of(pod, kind).get(PREFERRED) or []
    terms = [(each["podAffinityTerm"], each["weight"]) for each in weighted]
    if kind == "podAffinity":
        terms += [(each, each["weight"]) for each in pod["spec"].get("connections") or []]
    return terms


def selects_namespace(
    view: View, term: Manifest, owner: Manifest, name: str, *, placed: bool
) -> bool:
    """The union of the listed and the selected; neither given: the owner's own namespace.

    The incoming pod's selector finds stored namespaces only, by their labels; an empty one finds
    all, and in the code of some versions one that only excludes, too. A placed pod's selector is asked about the incoming pod's namespace, which has no labels
    if it was never stored.
    """
    if excepts_namespace(view, term, name):
        return False
    listed, selector = term.get("namespaces"), term.get("namespaceSelector")
    if not view.settings.reads_namespace_selectors:
        selector = None
    if listed == [] and view.settings.empty_namespaces_mean_all:
        return True
    if not listed and selector is None:
        return name == namespace_of(owner)
    if name in (listed or []) or is_empty_selector(selector):
        return True
    if not placed and view.settings.negation_selects_all and selector_matches(selector, {}):
        return True
    if name not in view.namespace_labels and not placed:
        return False
    return selector_matches(selector, view.namespace_labels.get(name, {}))


def excepts_namespace(view: View, term: Manifest, name: str) -> bool:
    """Whether the term leaves a namespace out; one that was never stored has no labels."""
    excepted = term.get("exceptNamespaceSelector")
    return excepted is not None and selector_matches(excepted, view.namespace_labels.get(name, {}))


def term_matches(
    view: View, term: Manifest, owner: Manifest, pod: Manifest, *, placed: bool = False
) -> bool:
    """Whether a term of `owner`, the incoming pod or a placed one, selects `pod`."""
    return selects_namespace(
        view, term, owner, namespace_of(pod), placed=placed
    ) and selector_matches(term.get("labelSelector"), labels_of(pod))


def repels(
    view: View, term: Manifest, owner: Manifest, pod: Manifest, *, placed: bool = False
) -> bool:
    """A required anti-affinity term; left out between daemons and others, never among daemons."""
    exempt = is_daemon(view, owner) != is_daemon(view, pod)
    return not exempt and term_matches(view, term, owner, pod, placed=placed)


def is_daemon(view: View, pod: Manifest) -> bool:
    return namespace_of(pod) in view.settings.daemon_namespaces


def exemptions(view: View, pod: Manifest) -> list[tuple[Any, ...]]:
    """Left-out rules that would exclude nodes: owner's namespace, path, key, pods, nodes."""
    found: dict[tuple[bool, str, str, str], Exempt] = {}
    for other, labels in view.placed():
        for owner, target, placed in ((pod, other, False), (other, pod, True)):
            for path, term in anti_affinity_paths(owner):
                domain = domain_of(term, labels)
                if domain and is_left_out(view, term, owner, target, placed=placed):
                    daemons = is_daemon(view, owner) != is_daemon(view, target)
                    who = namespace_of(owner) if placed else ""
                    place = (daemons, who, path, term["topologyKey"])
                    found.setdefault(place, []).append((term, owner, domain))
    told = [
        (*place[1:], len(exempt), _nodes_in(view, would_close(view, pod, exempt)))
        for place, exempt in found.items()
    ]
    return [*left_out_first(view, pod), *(each for each in told if each[-1])]


def left_out_first(view: View, pod: Manifest) -> list[tuple[Any, ...]]:
    """The affinity that is left out for the first pod, and what it would have done."""
    terms = required_terms(pod, "podAffinity")
    if len(binding_terms(view, pod)) == len(terms):
        return []
    held = attracting_domains(view, pod, terms)
    first = starts_groups(view, pod, terms, held)
    found = []
    for index, term in enumerate(affinity_of(pod, "podAffinity").get(REQUIRED[1]) or []):
        if term.get("firstPodExempt"):
            number = next(n for n, each in enumerate(terms) if each is term)
            closed = [
                node
                for node in view.nodes.values()
                if not (domain := domain_of(term, labels_of(node)))
                or not (first[number] or domain in held[number])
            ]
            counted = sum(
                bool(domain_of(term, labels)) and satisfies(view, pod, term, placed)
                for placed, labels in view.placed()
            )
            path = f"spec.affinity.podAffinity.{REQUIRED[1]}[{index}]"
            found.append(("", path, term["topologyKey"], counted, len(closed)))
    return [each for each in found if each[-1]]


def satisfies(view: View, pod: Manifest, term: Manifest, placed: Manifest) -> bool:
    """Whether a placed pod is one that a term of the pod's affinity asks for."""
    all_terms = required_terms(pod, "podAffinity")
    asked = [term] if view.settings.affinity_per_term else all_terms
    return all(term_matches(view, each, pod, placed) for each in asked)


def is_left_out(
    view: View, term: Manifest, owner: Manifest, pod: Manifest, *, placed: bool
) -> bool:
    """Whether the rule would be about the pod, were it not for daemons or for its exception."""
    if is_daemon(view, owner) != is_daemon(view, pod):
        return term_matches(view, term, owner, pod, placed=placed)
    without = {name: each for name, each in term.items() if name != "exceptNamespaceSelector"}
    return excepts_namespace(view, term, namespace_of(pod)) and term_matches(
        view, without, owner, pod, placed=placed
    )


Exempt = list[tuple[Manifest, Manifest, Domain]]
"""For each pod that a rule is left out for: the term, who has it, and the domain."""


def would_close(view: View, pod: Manifest, exempt: Exempt) -> list[Domain]:
    """The domains from which the rules would keep the pod if they were not left out."""
    closed = []
    for term, owner, domain in exempt:
        limit = term.get("maxPerDomain")
        counted = matched_in(view, term, owner, domain, placed=owner is not pod)
        if owner is pod:
            left_out = [each for _, _, each in exempt].count(domain)
            counted += left_out + repels(view, term, pod, pod)
        else:
            counted += 1
        if limit is None or counted > limit:
            closed.append(domain)
    return closed


def anti_affinity_paths(pod: Manifest) -> Iterator[tuple[str, Manifest]]:
    rules = affinity_of(pod, "podAntiAffinity")
    for variant in REQUIRED:
        for index, term in enumerate(rules.get(variant) or []):
            yield f"spec.affinity.podAntiAffinity.{variant}[{index}]", term


def _nodes_in(view: View, domains: list[Domain]) -> int:
    return sum(any(d in labels_of(node).items() for d in domains) for node in view.nodes.values())


def domain_of(term: Manifest, node_labels: dict[str, str]) -> Domain | None:
    """None on a node without the term's topology key."""
    key = term["topologyKey"]
    return (key, node_labels[key]) if key in node_labels else None


def filter_interpod(view: View, pod: Manifest) -> Rejections:
    terms = binding_terms(view, pod)
    attracting = attracting_domains(view, pod, terms)
    may_start = starts_groups(view, pod, terms, attracting)
    closed = (
        (ANTI_AFFINITY, repelling_domains(view, pod)),
        (FULL, full_domains(view, pod)),
        (EXISTING, guarded_domains(view, pod)),
        (EXISTING_FULL, guarded_full_domains(view, pod)),
    )
    rejections = {}
    for name, node in view.nodes.items():
        labels = labels_of(node)
        domains = set(labels.items())
        if not affinity_holds(terms, labels, attracting, may_start):
            rejections[name] = AFFINITY
            continue
        for verdict, held in closed:
            if domains & held:
                rejections[name] = verdict
                break
    return rejections


def affinity_holds(
    terms: list[Manifest],
    labels: dict[str, str],
    attracting: list[set[Domain]],
    may_start: list[bool],
) -> bool:
    """The node has every term's key, and a pod that counts is in every term's domain."""
    domains = [domain_of(term, labels) for term in terms]
    if None in domains:
        return False
    return all(
        first or domain in held
        for first, domain, held in zip(may_start, domains, attracting, strict=True)
    )


def attracting_domains(view: View, pod: Manifest, terms: list[Manifest]) -> list[set[Domain]]:
    """For each of these affinity terms, the domains that satisfy it.

    A placed pod counts if it matches all terms at once; with PerTerm, for each term by itself.
    """
    domains: list[set[Domain]] = [set() for _ in terms]
    if not terms:
        return domains
    for placed, labels in view.placed():
        matched = [term_matches(view, term, pod, placed) for term in terms]
        for number, term in enumerate(terms):
            counts = matched[number] if view.settings.affinity_per_term else all(matched)
            domain = domain_of(term, labels)
            if counts and domain:
                domains[number].add(domain)
    return domains


def starts_groups(
    view: View, pod: Manifest, terms: list[Manifest], attracting: list[set[Domain]]
) -> list[bool]:
    """For each term, whether nothing in the cluster counts yet and the pod matches itself.

    Without PerTerm the terms are one requirement, which has to be waived as a whole.
    """
    own = [term_matches(view, term, pod, pod) for term in terms]
    if view.settings.affinity_per_term:
        return [matches and not held for matches, held in zip(own, attracting, strict=True)]
    return [not any(attracting) and all(own)] * len(terms)


def repelling_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains that hold a pod which the incoming pod's required anti-affinity selects."""
    terms = required_terms(pod, "podAntiAffinity")
    if not terms:
        return set()
    return {
        domain
        for placed, labels in view.placed()
        for term in terms
        if "maxPerDomain" not in term
        and (domain := domain_of(term, labels))
        and repels(view, term, pod, placed)
    }


def full_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains in which the incoming pod would be beside more pods than its term allows."""
    return {
        domain
        for term in required_terms(pod, "podAntiAffinity")
        if "maxPerDomain" in term
        for domain in domains_of(view, term)
        if matched_in(view, term, pod, domain) + repels(view, term, pod, pod) > term["maxPerDomain"]
    }


def guarded_full_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains with a pod whose term matches the incoming pod, which would be one too many."""
    return {
        domain
        for owner, labels in view.placed()
        for term in required_terms(owner, "podAntiAffinity")
        if "maxPerDomain" in term
        and (domain := domain_of(term, labels))
        and repels(view, term, owner, pod, placed=True)
        and matched_in(view, term, owner, domain, placed=True) + 1 > term["maxPerDomain"]
    }


def domains_of(view: View, term: Manifest) -> set[Domain]:
    found = {domain_of(term, labels_of(node)) for node in view.nodes.values()}
    return {domain for domain in found if domain}


def matched_in(
    view: View, term: Manifest, owner: Manifest, domain: Domain, *, placed: bool = False
) -> int:
    """How many placed pods of a domain the owner's anti-affinity term is about."""
    return sum(
        domain_of(term, labels) == domain and repels(view, term, owner, other, placed=placed)
        for other, labels in view.placed()
    )


def guarded_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains that a placed pod's required anti-affinity closes to the incoming pod."""
    return {
        domain
        for placed, labels in view.placed()
        for term in required_terms(placed, "podAntiAffinity")
        if "maxPerDomain" not in term
        and (domain := domain_of(term, labels))
        and repels(view, term, placed, pod, placed=True)
    }


def score_interpod(view: View, pod: Manifest, feasible: list[str]) -> Scores | None:
    """Skipped if no term matched anything; equal sums score nothing."""
    sums: dict[Domain, int] = {}
    for domain, weight in [*own_preferences(view, pod), *preferences_of_placed(view, pod)]:
        sums[domain] = sums.get(domain, 0) + weight
    if not sums:
        return None
    raw = {
        name: sum(sums.get(label, 0) for label in labels_of(view.nodes[name]).items())
        for name in feasible
    }
    low, high = min(raw.values()), max(raw.values())
    spread = high - low
    return {
        name: int(100.0 * ((each - low) / spread)) if spread else 0 for name, each in raw.items()
    }


def own_preferences(view: View, pod: Manifest) -> Iterator[tuple[Domain, int]]:
    """The incoming pod's preferred terms: once per matching pod, or with PerTerm per domain."""
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for term, weight in preferred_terms(pod, kind):
            matches = [
                domain
                for placed, labels in view.placed()
                if (domain := domain_of(term, labels)) and term_matches(view, term, pod, placed)
            ]
            for domain in set(matches) if view.settings.weight_per_term else matches:
                yield domain, sign * weight


def preferences_of_placed(view: View, pod: Manifest) -> Iterator[tuple[Domain, int]]:
    """Each placed pod's own terms toward the incoming pod."""
    for placed, labels in view.placed():
        for term, weight in terms_toward(view, placed):
            domain = domain_of(term, labels)
            if domain and term_matches(view, term, placed, pod, placed=True):
                yield domain, weight


def terms_toward(view: View, placed: Manifest) -> Iterator[tuple[Manifest, int]]:
    """Required affinity counts as a preference of its own weight; what is switched off, not."""
    settings = view.settings
    if settings.hard_pod_affinity_weight > 0:
        for term in required_terms(placed, "podAffinity"):
            yield term, settings.hard_pod_affinity_weight
    if settings.symmetric_preferred_affinity:
        yield from preferred_terms(placed, "podAffinity")
    if settings.symmetric_preferred_anti_affinity:
        for term, weight in preferred_terms(placed, "podAntiAffinity"):
            yield term, -weight
