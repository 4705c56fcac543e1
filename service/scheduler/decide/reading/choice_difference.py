"""Tells how the choices for a pod differ, and which plugin makes the difference."""

from service.engine.explain.choice_change import Choice, deciding_plugin
from service.model.pods.pod import Pod
from service.scheduler.protocol.choices import ChoiceDifference


def difference_of(
    pod: Pod, before: Choice, after: Choice, *, node_name: str | None = None
) -> ChoiceDifference:
    """Return two differing choices for a pod as clients see them, with the deciding plugin.

    `node_name` is the node that the pod is on, or None if it is on none.
    """
    deciding = deciding_plugin(before, after)
    return ChoiceDifference(
        namespace=pod.namespace,
        name=pod.name,
        node_name=node_name,
        before=before.node_name,
        after=after.node_name,
        plugin=None if deciding is None else deciding.plugin,
        points=None if deciding is None else deciding.points,
    )


def without_profile(pod: Pod, before: str | None) -> ChoiceDifference:
    """Return the difference for a placed pod whose scheduler is no profile any more."""
    return ChoiceDifference(
        namespace=pod.namespace,
        name=pod.name,
        node_name=pod.node_name,
        before=before,
        after=None,
        plugin=None,
        points=None,
    )
