"""InterPodAffinity: pods beside, and away from, other pods."""

from collections.abc import Iterator

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


def required_terms(pod: Manifest, kind: str) -> list[Manifest]:
    """`kind`: podAffinity or podAntiAffinity; both required variants filter alike."""
    affinity = affinity_of(pod, kind)
    if not affinity:
        return []
    return [term for variant in REQUIRED for term in affinity.get(variant) or []]


def preferred_terms(pod: Manifest, kind: str) -> list[tuple[Manifest, int]]:
    """Terms with their weights."""
    weighted = affinity_of(pod, kind).get(PREFERRED) or []
    return [(each["podAffinityTerm"], each["weight"]) for each in weighted]


def selects_namespace(
    view: View, term: Manifest, owner: Manifest, name: str, *, placed: bool
) -> bool:
    """The union of the listed and the selected; neither given: the owner's own namespace.

    The incoming pod's selector finds stored namespaces only, by their labels; an empty one finds
    all. A placed pod's selector is asked about the incoming pod's namespace, which has no labels
    if it was never stored.
    """
    listed, selector = term.get("namespaces"), term.get("namespaceSelector")
    if listed == [] and view.settings.empty_namespaces_mean_all:
        return True
    if not listed and selector is None:
        return name == namespace_of(owner)
    if name in (listed or []) or is_empty_selector(selector):
        return True
    if name not in view.namespace_labels and not placed:
        return False
    return selector_matches(selector, view.namespace_labels.get(name, {}))


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
    """A required anti-affinity term; pods of daemon namespaces are exempt."""
    exempt = namespace_of(pod) in view.settings.daemon_namespaces
    return not exempt and term_matches(view, term, owner, pod, placed=placed)


def domain_of(term: Manifest, node_labels: dict[str, str]) -> Domain | None:
    """None on a node without the term's topology key."""
    key = term["topologyKey"]
    return (key, node_labels[key]) if key in node_labels else None


def filter_interpod(view: View, pod: Manifest) -> Rejections:
    attracting = attracting_domains(view, pod)
    may_start = starts_group(view, pod, attracting)
    repelling = repelling_domains(view, pod)
    guarded = guarded_domains(view, pod)
    rejections = {}
    for name, node in view.nodes.items():
        labels = labels_of(node)
        domains = set(labels.items())
        if not affinity_holds(pod, labels, attracting, may_start=may_start):
            rejections[name] = AFFINITY
        elif domains & repelling:
            rejections[name] = ANTI_AFFINITY
        elif domains & guarded:
            rejections[name] = EXISTING
    return rejections


def affinity_holds(
    pod: Manifest, labels: dict[str, str], attracting: list[set[Domain]], *, may_start: bool
) -> bool:
    """The node has every term's key, and a pod that counts is in every term's domain."""
    domains = [domain_of(term, labels) for term in required_terms(pod, "podAffinity")]
    if None in domains:
        return False
    return may_start or all(
        domain in held for domain, held in zip(domains, attracting, strict=True)
    )


def attracting_domains(view: View, pod: Manifest) -> list[set[Domain]]:
    """For each required affinity term, the domains that satisfy it.

    A placed pod counts if it matches all terms at once; with PerTerm, for each term by itself.
    """
    terms = required_terms(pod, "podAffinity")
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


def starts_group(view: View, pod: Manifest, attracting: list[set[Domain]]) -> bool:
    """The first pod of a group: nothing in the cluster counts yet, and it matches itself."""
    terms = required_terms(pod, "podAffinity")
    return not any(attracting) and all(term_matches(view, term, pod, pod) for term in terms)


def repelling_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains that hold a pod which the incoming pod's required anti-affinity selects."""
    terms = required_terms(pod, "podAntiAffinity")
    if not terms:
        return set()
    return {
        domain
        for placed, labels in view.placed()
        for term in terms
        if (domain := domain_of(term, labels)) and repels(view, term, pod, placed)
    }


def guarded_domains(view: View, pod: Manifest) -> set[Domain]:
    """Domains that a placed pod's required anti-affinity closes to the incoming pod."""
    return {
        domain
        for placed, labels in view.placed()
        for term in required_terms(placed, "podAntiAffinity")
        if (domain := domain_of(term, labels)) and repels(view, term, placed, pod, placed=True)
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
