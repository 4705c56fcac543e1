"""Binds claims to volumes together with the pods that use them, and releases the volumes again.

A claim that waits for its first consumer is bound in the commit that binds the pod, so no other pod
gets the volume, and every placed pod has its volumes. Kubernetes' scheduler writes the claim before
the pod, and its controller completes the binding; here both are one change.
"""

from collections.abc import Mapping

from service.engine import PROVISION, bindings_on, user_of_claim
from service.model.core.declared_manifest import DeclaredManifest
from service.model.core.errors import Conflict
from service.model.pods.pod import Pod
from service.model.volumes.bound_volumes import (
    claim_bound_to,
    claim_for_node,
    claim_keeping_binding,
    volume_bound_to,
    volume_keeping_binding,
    volume_named_by,
    volume_released,
    was_bound_here,
)
from service.model.volumes.volume_kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
)
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.stored_kinds import StoredManifest


class VolumesMissingError(RuntimeError):
    """A pod was about to be placed where its claims get no volumes, so nothing may be committed."""


def bind_volumes(
    context: DecisionContext,
    pod: Pod,
    node_name: str,
    bindings: Mapping[str, str] | None = None,
    *,
    forced: bool = False,
) -> None:
    """Bind a pod's claims on its node, or have volumes provisioned for them there.

    Args:
        context: the context of the decision.
        pod: the pod.
        node_name: the node.
        bindings: the bindings that the pod was checked with, or None to compute them.
        forced: whether the pod is placed even if its claims can't be bound there.

    Raises:
        VolumesMissingError: the claims can't be bound, and the placement is not forced.
    """
    volumes = bindings_on(context.replica.cluster, pod, node_name) if bindings is None else bindings
    if volumes is None and not forced:
        raise VolumesMissingError(f"The claims of {pod.namespace}/{pod.name} find no volumes.")
    for name, volume_name in (volumes or {}).items():
        claim = _stored_object(context, PERSISTENT_VOLUME_CLAIM.kind, pod.namespace, name)
        if volume_name == PROVISION:
            context.replica.put(claim_for_node(claim, node_name))
            continue
        volume = _stored_object(context, PERSISTENT_VOLUME.kind, "", volume_name)
        context.replica.put(volume_bound_to(volume, claim))
        context.replica.put(claim_bound_to(claim, volume_name))


def keep_binding(
    context: DecisionContext, sent: DeclaredManifest, stored: DeclaredManifest
) -> DeclaredManifest:
    """Return an update of a claim or volume, restoring omitted parts of a binding made here."""
    if stored.kind == PERSISTENT_VOLUME.kind:
        return volume_keeping_binding(sent, stored)
    if _volume_bound_here(context, stored) is not None:
        return claim_keeping_binding(sent, stored)
    return sent


def release_volumes(
    context: DecisionContext, before: StoredManifest, after: StoredManifest | None
) -> None:
    """Release the volume bound to a claim here, if the claim is deleted or names another volume."""
    volume = _volume_bound_here(context, before)
    if volume is None:
        return
    if not isinstance(after, DeclaredManifest) or volume_named_by(after) != volume.name:
        context.replica.put(volume_released(volume))


def refuse_while_in_use(context: DecisionContext, manifest: StoredManifest) -> None:
    """Refuse to delete a claim that was bound here while a placed pod uses it.

    Raises:
        Conflict: the claim is in use.
    """
    if _volume_bound_here(context, manifest) is None:
        return
    namespace = manifest.namespace
    name = user_of_claim(context.replica.cluster, (namespace, manifest.name))
    if name is not None:
        raise Conflict(
            f"The pod {namespace}/{name} is on a node and uses the claim: delete it first."
        )


def _volume_bound_here(context: DecisionContext, claim: StoredManifest) -> DeclaredManifest | None:
    """Return the volume bound to a claim here, or None, including for objects of other kinds."""
    if not isinstance(claim, DeclaredManifest) or claim.kind != PERSISTENT_VOLUME_CLAIM.kind:
        return None
    name = volume_named_by(claim)
    stored = context.replica.get(PERSISTENT_VOLUME.kind, "", name) if name else None
    volume = stored.manifest if stored is not None else None
    if isinstance(volume, DeclaredManifest) and was_bound_here(volume, claim):
        return volume
    return None


def _stored_object(
    context: DecisionContext, kind: str, namespace: str, name: str
) -> DeclaredManifest:
    stored = context.replica.get(kind, namespace, name)
    assert stored is not None
    assert isinstance(stored.manifest, DeclaredManifest)
    return stored.manifest
