"""The topology key whose domains are whole clusters, for rules across clusters."""

from collections.abc import Mapping

from service.model.pods.pod import Pod, PodAffinityTerm

CLUSTER_KEY = "moorage.dev/cluster"
"""The topology key for rules across clusters; nodes do not need this label."""

_THIS_CLUSTER = "this"
"""The value for all nodes without the label: they are all in the same cluster."""


def topology_value(labels: Mapping[str, str], key: str) -> str | None:
    """Return a node's value of a topology key, given its labels, or None."""
    value = labels.get(key)
    return _THIS_CLUSTER if value is None and key == CLUSTER_KEY else value


def counts_other_namespaces(pod: Pod) -> bool:
    """Return whether required affinity across clusters counts pods of other namespaces."""
    affinity = pod.spec.affinity
    drawn = None if affinity is None else affinity.pod_affinity
    if drawn is None:
        return False
    terms = (
        *(drawn.required_during_scheduling_required_during_execution or ()),
        *(drawn.required_during_scheduling_ignored_during_execution or ()),
    )
    return any(term.topology_key == CLUSTER_KEY and _reaches_beyond(term, pod) for term in terms)


def _reaches_beyond(term: PodAffinityTerm, pod: Pod) -> bool:
    others = set(term.namespaces or ()) - {pod.namespace}
    return bool(others) or term.namespace_selector is not None
