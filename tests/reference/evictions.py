"""Rules that are required during execution: which of a placed pod's do not hold, who has to go."""

from collections.abc import Collection, Iterable, Iterator
from copy import copy
from datetime import timedelta
from functools import cmp_to_key
from typing import NamedTuple

from tests.reference.interpod import repels
from tests.reference.selectors import selector_matches
from tests.reference.view import (
    Manifest,
    View,
    affinity_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from tests.reference.violations import (
    ENDURING,
    broken_affinity,
    broken_anti_affinity,
    broken_node_rules,
    without,
)

Key = tuple[str, str]
"""Namespace and name of a pod."""
EXACT_MAX = 12
"""How many pods in conflict with each other the fewest are found among."""
BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def broken_rules(view: View, pod: Manifest) -> Iterator[tuple[str, str]]:
    """Rules of the pod that should last and don't hold where it is: plugin and path."""
    node_name = spec_of(pod)["nodeName"]
    if node_name not in view.nodes:
        return
    node, others = view.nodes[node_name], without(view, node_name, pod)
    for path, execution, plugin, *_ in broken_node_rules(others, pod, node):
        if execution == "Required":
            yield plugin, path
    if affinity_of(pod, "podAffinity").get(ENDURING):
        for path, execution, plugin, *_ in broken_affinity(others, pod, labels_of(node)):
            if execution == "Required":
                yield plugin, path


def grace_of(config: Manifest, pod: Manifest, path: str) -> timedelta:
    """How long a rule of the pod's affinity may be broken: its term says, or the pod, or the cluster."""
    affinity = affinity_of(pod, "podAffinity")
    terms = {f"{ENDURING}[{i}]": term for i, term in enumerate(affinity.get(ENDURING) or [])}
    term = terms[path.removeprefix("spec.affinity.podAffinity.")]
    told = [each.get("toleranceSeconds") for each in (term, affinity)]
    told.append(config.get("affinityViolationGraceSeconds", 30))
    return timedelta(seconds=next(each for each in told if each is not None))


class Constraint(NamedTuple):
    """A rule that is broken: as long as its owner stays, only so many of the others may."""

    rule: str
    owner: Key
    others: frozenset[Key]
    allowed: int
    attracts: bool
    """Whether it is affinity, for which nobody but the owner leaves."""


class MustGo(NamedTuple):
    """Who has to leave so that every rule holds."""

    constraints: list[Constraint]
    lost: set[Key]
    """The pods whom nothing else can help."""
    chosen: set[Key]
    """The fewest of the others."""
    unsure: set[Key]
    """The pods that may have to leave, but are in conflict with too many to say which are the fewest."""


def must_go(view: View, config: Manifest, overdue: set[tuple[Key, str]]) -> MustGo:
    """Whom one look at all rules finds. Who is being stopped counts as gone.

    `overdue`: pods with the rules of affinity that were broken for long enough.
    """
    pods = {_key_of(pod): pod for pod, _ in view.placed() if not is_terminating(pod)}
    lost = {key for key, pod in pods.items() if "NodeAffinity" in dict(broken_rules(view, pod))}
    constraints: list[Constraint] = []
    for key, path in sorted(each for each in overdue if each[0] in pods):
        rivals = _rivals(view, pods, key, path)
        if rivals is None:
            lost.add(key)
        else:
            constraints.append(Constraint(path, key, rivals, 0, attracts=True))
    for pod in pods.values():
        constraints += _repelling(view, pod, pods)
    left = [each._replace(others=each.others - lost) for each in constraints]
    left = [each for each in left if each.owner not in lost and _is_broken(each, pods.keys())]
    anybody = config.get("antiAffinityVictim") == "LowestPriority"
    may = {each.owner for each in left}
    may |= {key for each in left if anybody and not each.attracts for key in each.others}
    chosen, unsure = set[Key](), set[Key]()
    ordered = sorted(may, key=cmp_to_key(lambda a, b: _order(config, pods[a], pods[b])))
    for component in _components(ordered, left):
        if len(component) > EXACT_MAX:
            unsure |= set(component)
        else:
            chosen |= _fewest(component, left, [priority_of(config, pods[k]) for k in component])
    return MustGo(constraints, lost, chosen, unsure)


def _rivals(view: View, pods: dict[Key, Manifest], key: Key, path: str) -> frozenset[Key] | None:
    """Beside which other pods a rule of affinity does not hold; None: it does not hold for one alone."""
    told = ("InterPodAffinity", path)

    def broken_beside(*others: Manifest) -> bool:
        return told in broken_rules(_only(view, [pods[key], *others]), pods[key])

    if broken_beside():
        return None
    return frozenset(other for other in pods if other != key and broken_beside(pods[other]))


def _repelling(view: View, pod: Manifest, pods: dict[Key, Manifest]) -> Iterator[Constraint]:
    terms = affinity_of(pod, "podAntiAffinity").get(ENDURING) or []
    if not terms:
        return
    beside = _only(view, [each for each in pods.values() if each is not pod])
    here = labels_of(view.nodes[spec_of(pod)["nodeName"]])
    for path, execution, _, _, named in broken_anti_affinity(beside, pod, here):
        if execution == "Required":
            term = terms[int(path.rpartition("[")[2].rstrip("]"))]
            limit = term.get("maxPerDomain")
            allowed = 0 if limit is None else limit - repels(view, term, pod, pod)
            yield Constraint(path, _key_of(pod), frozenset(named), allowed, attracts=False)


def _is_broken(constraint: Constraint, staying: Collection[Key]) -> bool:
    beside = sum(each in staying for each in constraint.others)
    return constraint.owner in staying and beside > constraint.allowed


def _components(ordered: list[Key], constraints: list[Constraint]) -> Iterator[list[Key]]:
    """Who may leave because of one another, in order."""
    component = {key: {key} for key in ordered}
    for each in constraints:
        joined = {each.owner}.union(
            *(component[key] for key in (each.owner, *each.others) if key in component)
        )
        for key in joined:
            component[key] = joined
    seen: set[Key] = set()
    for key in ordered:
        if key not in seen:
            seen |= component[key]
            yield [each for each in ordered if each in component[key]]


def _fewest(component: list[Key], constraints: list[Constraint], priorities: list[int]) -> set[Key]:
    """Return the best of all subsets that help: the fewest of the highest priority, then of the next."""
    masks = {key: 1 << index for index, key in enumerate(component)}
    concerned = [each for each in constraints if each.owner in masks]
    whole = [_masked(each, masks) for each in concerned]
    best: tuple[list[int], list[int]] | None = None
    for gone in range(1 << len(component)):
        left = [index for index in range(len(component)) if gone >> index & 1]
        if any(_is_broken_without(gone, *each) for each in whole):
            continue
        cost = (sorted((priorities[index] for index in left), reverse=True), left)
        if best is None or cost < best:
            best = cost
    assert best is not None
    return {component[index] for index in best[1]}


def _masked(constraint: Constraint, masks: dict[Key, int]) -> tuple[int, int, int]:
    """The owner, the others who may leave, and how many of these may stay."""
    others = sum(masks[key] for key in constraint.others if key in masks)
    fixed = sum(key not in masks for key in constraint.others)
    return masks[constraint.owner], others, constraint.allowed - fixed


def _is_broken_without(gone: int, owner: int, others: int, allowed: int) -> bool:
    return not owner & gone and (others & ~gone).bit_count() > allowed


def _order(config: Manifest, pod: Manifest, other: Manifest) -> int:
    if pod is other:
        return 0
    return -1 if comes_first(config, pod, other) else 1


def _key_of(pod: Manifest) -> Key:
    return namespace_of(pod), name_of(pod)


def blocking_budget(view: View, pod: Manifest, budgets: Iterable[Manifest]) -> str | None:
    """The name of a budget of which too few pods would stay. None of them has an owner here."""
    for budget in budgets:
        spec = spec_of(budget)
        protected = [
            other
            for other, _ in view.placed()
            if namespace_of(other) == namespace_of(budget)
            and selector_matches(spec["selector"], labels_of(other))
            and not is_terminating(other)
        ]
        healthy, desired = sum(map(is_healthy, protected)), spec["minAvailable"]
        may_leave = not is_healthy(pod) and (
            status_of(pod).get("phase") == "Pending"
            or spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
            or healthy >= desired > 0
        )
        if any(other is pod for other in protected) and healthy <= desired and not may_leave:
            return name_of(budget)
    return None


def is_healthy(pod: Manifest) -> bool:
    """Whether a placed pod counts as healthy: it does unless it reports that it is not ready."""
    reports = status_of(pod).get("conditions") or []
    told = next((each for each in reports if each["type"] == "Ready"), None)
    return told is None or told["status"] == "True"


def comes_first(config: Manifest, pod: Manifest, other: Manifest) -> bool:
    """Whether a pod goes rather than another: lower priority, then younger, then by name."""
    mine, theirs = priority_of(config, pod), priority_of(config, other)
    if mine != theirs:
        return mine < theirs
    created, its_created = (each["metadata"]["creationTimestamp"] for each in (pod, other))
    if created != its_created:
        return bool(created > its_created)
    return (namespace_of(pod), name_of(pod)) < (namespace_of(other), name_of(other))


def priority_of(config: Manifest, pod: Manifest) -> int:
    spec = spec_of(pod)
    if spec.get("priority") is not None:
        return int(spec["priority"])
    classes = (config.get("priorityClasses") or {}) | BUILT_IN_PRIORITIES
    found = classes.get(spec.get("priorityClassName") or "", 0)
    return int(found["value"] if isinstance(found, dict) else found)


def _only(view: View, pods: list[Manifest]) -> View:
    """A view in which no other pods are."""
    twin = copy(view)
    twin.pods_on = {name: [] for name in view.pods_on}
    for pod in pods:
        twin.pods_on.setdefault(spec_of(pod)["nodeName"], []).append(pod)
    return twin
