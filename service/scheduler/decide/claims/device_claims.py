"""Allocates devices to claims together with the pods that use them, and releases them.

A claim is allocated and reserved for the pod in the commit that binds the pod, so no other claim
gets the devices, and every placed pod has its devices. The same commit creates claims from the
pod's claim templates. When the pod is deleted or finished, its reservations end: a claim without
reservations loses its devices, and an unused claim created for the pod is deleted.
"""

from collections.abc import Sequence
from typing import TypeGuard

from service.engine import DeviceUse, allocations_on, device_uses
from service.model.core.declared_manifest import DeclaredManifest
from service.model.core.errors import Conflict, Denied, FieldError, InvalidManifest
from service.model.devices.allocation import (
    allocation_of,
    claim_allocated,
    claim_keeping_allocation,
    claim_keeping_status,
    claim_made,
    claim_released,
    claim_reserved,
    consumers_of,
    is_allocated,
    names_for,
    was_allocated_here,
    was_made_for,
)
from service.model.devices.device import ClaimAllocation
from service.model.devices.device_fields import ResourceClaimBody, ResourceClaimTemplateBody
from service.model.devices.device_kinds import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
)
from service.model.pods.pod import Pod
from service.model.registry.manifests import AnyManifest, PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.callers import Caller
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import StoredManifest

ADMIN_ACCESS = "AdminAccessDenied"
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""A namespace label; "true" lets claims request access to devices that are in use."""


class DevicesMissingError(RuntimeError):
    """A pod was about to be placed where its claims get no devices, so nothing may be committed."""


def allocate_devices(
    context: DecisionContext,
    manifest: PodManifest,
    node_name: str,
    uid: str,
    allocations: Sequence[ClaimAllocation] | None = None,
    *,
    forced: bool = False,
) -> PodManifest:
    """Allocate devices to a pod's claims on its node, and reserve the claims for the pod.

    Args:
        context: the context of the decision.
        manifest: the pod.
        node_name: the node.
        uid: the pod's uid.
        allocations: the allocations that the pod was checked with, or None to compute them.
        forced: whether the pod is placed even if its claims get no devices there.

    Returns:
        The pod, whose status names the claims that were created for it.

    Raises:
        DevicesMissingError: the claims get no devices, and the placement is not forced.
    """
    pod = manifest.pod
    if not pod.spec.resource_claims or context.replica.config.device_claims != "Allocate":
        return manifest
    granted = allocations
    if granted is None:
        granted = allocations_on(context.replica.cluster, pod, node_name)
    if granted is None and not forced:
        raise DevicesMissingError(f"The claims of {pod.namespace}/{pod.name} get no devices.")
    given = {allocation.pod_claim: allocation for allocation in granted or ()}
    made: dict[str, str] = {}
    for use in device_uses(pod):
        claim = _claim_for(context, pod, use, uid, given.get(use.pod_claim))
        # Another member of the pod's group may allocate the devices in the same commit.
        if claim is None or (allocations is None and not is_allocated(claim)):
            continue
        if use.claim is None:
            made[use.pod_claim] = claim.name
        context.replica.put(claim_reserved(claim, pod.name, uid))
    return manifest.with_device_claims(made) if made else manifest


def _claim_for(
    context: DecisionContext,
    pod: Pod,
    use: DeviceUse,
    uid: str,
    given: ClaimAllocation | None,
) -> DeclaredManifest | None:
    """Return a pod's claim with its new allocation, created if need be, or None without a claim."""
    replica = context.replica
    claim = (
        _stored_object(replica, RESOURCE_CLAIM.kind, pod.namespace, use.claim)
        if use.claim
        else None
    )
    if given is None:
        return claim
    if claim is None:
        claim = _make_claim(context, pod, use, uid)
    names = dict.fromkeys(grant.class_name for grant in given.grants)
    classes = {name: _stored_object(replica, DEVICE_CLASS.kind, "", name) for name in names}
    return claim_allocated(claim, allocation_of(claim, given.grants, classes))


def _make_claim(context: DecisionContext, pod: Pod, use: DeviceUse, uid: str) -> DeclaredManifest:
    replica = context.replica
    assert use.template is not None
    template = _stored_object(replica, RESOURCE_CLAIM_TEMPLATE.kind, pod.namespace, use.template)
    assert template is not None
    name = next(
        name
        for name in names_for(pod.name, use.pod_claim, uid)
        if replica.get(RESOURCE_CLAIM.kind, pod.namespace, name) is None
    )
    claim = claim_made(template, name, use.pod_claim, (pod.namespace, pod.name), uid)
    return claim.with_identity(context.ids.uid(), context.now)


def release_devices(
    context: DecisionContext, before: StoredManifest, after: StoredManifest | None
) -> None:
    """Release the claims of a pod that was on a node, if it is deleted or finished."""
    if not isinstance(before, PodManifest) or not before.pod.spec.resource_claims:
        return
    pod = before.pod
    stays = isinstance(after, PodManifest) and after.uid == pod.uid and not after.pod.finished
    if stays or pod.node_name is None:
        return
    for use in device_uses(pod):
        claim = _stored_object(context.replica, RESOURCE_CLAIM.kind, pod.namespace, use.claim or "")
        if claim is not None:
            _release(context.replica, claim, pod.uid)


def _release(replica: Replica, claim: DeclaredManifest, pod_uid: str) -> None:
    """Remove a pod from a claim's users; delete the claim if it was created for it and is unused."""
    users = consumers_of(claim).keys()
    if was_made_for(claim, pod_uid) and users <= {pod_uid}:
        replica.delete(claim.kind, claim.namespace, claim.name)
    elif pod_uid in users:
        replica.put(claim_released(claim, pod_uid))


def as_written(sent: AnyManifest, stored: StoredManifest | None, caller: Caller) -> AnyManifest:
    """Return a claim as a caller may write it; only observers may write its allocation, a fact."""
    if not _is_claim(sent) or caller.may("observe", sent.namespace):
        return sent
    return claim_keeping_status(sent, stored if _is_claim(stored) else None)


def keep_allocation(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a claim, restoring omitted parts of an allocation made here.

    Raises:
        InvalidManifest: its requests differ from the allocated ones.
    """
    if not _is_claim(stored):
        return sent
    if is_allocated(stored) and _asks(sent) != _asks(stored):
        raise InvalidManifest([FieldError("spec", "may not change while the claim has devices")])
    return claim_keeping_allocation(sent, stored)


def admit_devices(
    context: DecisionContext, sent: DeclaredManifest, stored: DeclaredManifest | None = None
) -> None:
    """Refuse admin access to devices in a namespace without the label that allows it.

    Unlike in Kubernetes, a claim may change until it has devices, so updates that change its
    requests are checked, too.

    Raises:
        Denied: in Kubernetes' words.
    """
    path = _admin_request(sent)
    if path is None or (stored is not None and _asks(sent) == _asks(stored)):
        return
    namespace = context.replica.get("Namespace", "", sent.namespace)
    if namespace is None or namespace.manifest.labels.get(ADMIN_LABEL) != "true":
        raise Denied(
            ADMIN_ACCESS,
            f"{path}: admin access to devices requires the `{ADMIN_LABEL}: true` label on the "
            "containing namespace",
        )


def refuse_while_reserved(manifest: StoredManifest) -> None:
    """Refuse to delete a claim that has devices while a pod may use them.

    Raises:
        Conflict: the claim is in use.
    """
    if not _is_claim(manifest) or not was_allocated_here(manifest):
        return
    name = min(consumers_of(manifest).values(), default=None)
    if name is not None:
        raise Conflict(
            f"The claim is reserved for the pod {manifest.namespace}/{name}: delete that first."
        )


def _is_claim(manifest: object) -> TypeGuard[DeclaredManifest]:
    return isinstance(manifest, DeclaredManifest) and manifest.kind == RESOURCE_CLAIM.kind


def _asks(claim: DeclaredManifest) -> object:
    """Return the requests of a claim or claim template."""
    body = claim.kept.body
    assert isinstance(body, ResourceClaimBody | ResourceClaimTemplateBody)
    return body.spec


def _admin_request(sent: DeclaredManifest) -> str | None:
    """Return the path of the first request with admin access in a claim or template, or None."""
    body = sent.kept.body
    if isinstance(body, ResourceClaimBody):
        spec, path = body.spec, "spec"
    elif isinstance(body, ResourceClaimTemplateBody):
        spec, path = body.spec.spec, "spec.spec"
    else:
        return None
    for index, request in enumerate(spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            return f"{path}.devices.requests[{index}].exactly.adminAccess"
    return None


def _stored_object(
    replica: Replica, kind: str, namespace: str, name: str
) -> DeclaredManifest | None:
    stored = replica.get(kind, namespace, name)
    manifest = stored.manifest if stored is not None else None
    return manifest if isinstance(manifest, DeclaredManifest) else None
