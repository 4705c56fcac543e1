"""Confirms a binding: checks whether a pod may still be started on its node.

The state keeps changing between a pod's placement and its start, so a node may check again. The
rules are those of `listViolations`, checked for this pod only; nothing is written.
"""

from service.engine.rules.violations import Inspection
from service.model.core.errors import Conflict
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.object_writes import check_preconditions, not_found
from service.scheduler.decide.reading.violation_list import running_since, violation_item
from service.scheduler.protocol.answers import ConfirmationAnswer
from service.scheduler.protocol.intents import ConfirmBinding, Preconditions
from service.scheduler.replica.replica import Stored


def confirm_binding(context: DecisionContext, intent: ConfirmBinding) -> ConfirmationAnswer:
    """Check the required rules of a placed pod, if the pod is unchanged since its node saw it.

    Raises:
        NotFound: the pod does not exist.
        RevisionConflict: the pod has another uid, or has changed since the node saw it.
        Conflict: the pod is not bound, or to another node; its node is deleted; or the pod is to be
            stopped.
    """
    stored, manifest = _pod_as_seen(context, intent)
    pod = manifest.pod
    if pod.node_name is None or pod.node_name != (intent.node_name or pod.node_name):
        where = f"to {pod.node_name}" if pod.node_name else "to no node"
        raise Conflict(f"The pod is bound {where}.")
    if pod.terminating or pod.finished:
        raise Conflict("The pod is being deleted, or has ended, so it is not to be started.")
    if context.replica.get("Node", "", pod.node_name) is None:
        raise Conflict(f"The node {pod.node_name} is not there any more.")
    inspection, since = Inspection(context.replica.cluster), running_since(context)
    broken = [violation_item(inspection, violation, since) for violation in inspection.of_pod(pod)]
    return ConfirmationAnswer(
        revision=context.replica.revision,
        namespace=pod.namespace,
        name=pod.name,
        uid=manifest.uid,
        resource_version=stored.revision,
        node_name=pod.node_name,
        violations=sorted(broken, key=lambda item: item.rule),
    )


def _pod_as_seen(context: DecisionContext, intent: ConfirmBinding) -> tuple[Stored, PodManifest]:
    stored = context.replica.get("Pod", intent.namespace, intent.name)
    if stored is None:
        raise not_found("Pod", intent.namespace, intent.name)
    seen = Preconditions(uid=intent.uid, resource_version=str(intent.pod_revision))
    check_preconditions(seen, stored)
    assert isinstance(stored.manifest, PodManifest)
    return stored, stored.manifest
