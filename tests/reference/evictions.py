"""Rules that are required during execution: which of a placed pod's do not hold, who has to go."""

from collections.abc import Iterator

from tests.reference.view import (
    Manifest,
    View,
    affinity_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
)
from tests.reference.violations import (
    ENDURING,
    broken_affinity,
    broken_anti_affinity,
    broken_node_rules,
    without,
)

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


def quarrels(view: View, pod: Manifest, others: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Rules of the pod's own anti-affinity that should last, with each pod that breaks them.

    Pods of daemon namespaces are neither cause nor victim; who is being stopped counts as gone.
    """
    node_name = spec_of(pod)["nodeName"]
    terms = affinity_of(pod, "podAntiAffinity").get(ENDURING) or []
    if not terms or namespace_of(pod) in view.settings.daemon_namespaces:
        return
    for other in others:
        if other is pod:
            continue
        alone = _only(view, other)
        for path, execution, *_ in broken_anti_affinity(
            alone, pod, labels_of(view.nodes[node_name])
        ):
            if execution == "Required":
                yield path, other


def conflicts(view: View, pod: Manifest) -> list[tuple[str, Manifest, Manifest]]:
    """What lasting anti-affinity the pod is in conflict over: rule, its owner, the other pod."""
    staying = [each for each, _ in view.placed() if not is_terminating(each)]
    if spec_of(pod)["nodeName"] not in view.nodes:
        return []
    own = [(path, pod, other) for path, other in quarrels(view, pod, staying)]
    return own + [
        (path, other, pod) for other in staying for path, _ in quarrels(view, other, [pod])
    ]


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
    return int(classes.get(spec.get("priorityClassName") or "", 0))


def _only(view: View, pod: Manifest) -> View:
    """A view in which no other pod is."""
    twin = object.__new__(View)
    twin.settings, twin.nodes = view.settings, view.nodes
    twin.namespace_labels = view.namespace_labels
    twin.pods_on = {spec_of(pod)["nodeName"]: [pod]}
    return twin
