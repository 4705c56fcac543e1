"""Changes of claims and volumes by binding, as Kubernetes' own controller makes them.

A volume that was bound here says for which claim, so that only such a binding is ever ended: what
others have bound is for them to release. Clients write claims and volumes without knowing what they
were bound to since, so what an update does not mention of a binding stays.
"""

from collections.abc import Iterable
from typing import cast

import msgspec
from msgspec.structs import replace

from service.model.core.declared_manifest import DeclaredManifest, edited, part_of
from service.model.core.metadata import Json
from service.model.core.validators import entries_of
from service.model.volumes.volume_kinds import (
    BIND_COMPLETED,
    DEFAULTED_CLASS,
    SELECTED_NODE,
    PersistentVolumeBody,
    PersistentVolumeClaimBody,
)

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of objects that a controller bound, and not the author of the manifest."""
BOUND_HERE = "moorage.dev/bound-claim"
"""Annotation of a volume that Moorage bound: the uid of the claim."""
RELEASED = "Released"
"""The phase of a volume whose claim was deleted, until an operator frees it."""
UNBOUND = (None, "", "Pending", "Available")
"""The phases of claims and volumes that are bound to nothing; absent: none was told yet."""


def claim_of_default_class(claim: DeclaredManifest, class_name: str) -> DeclaredManifest:
    """Return the claim with a storage class that it did not name itself."""

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["storageClassName"] = class_name
        part_of(part_of(fields, "metadata"), "annotations")[DEFAULTED_CLASS] = class_name

    return edited(claim, edit)


def claim_bound_to(claim: DeclaredManifest, volume_name: str) -> DeclaredManifest:
    """Return the claim bound to a volume."""

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["volumeName"] = volume_name
        part_of(fields, "status")["phase"] = "Bound"
        annotations = part_of(part_of(fields, "metadata"), "annotations")
        annotations.update({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})

    return edited(claim, edit)


def claim_for_node(claim: DeclaredManifest, node_name: str) -> DeclaredManifest:
    """Return the claim with a volume to be provisioned for a node."""

    def edit(fields: Json) -> None:
        part_of(part_of(fields, "metadata"), "annotations")[SELECTED_NODE] = node_name

    return edited(claim, edit)


def volume_bound_to(volume: DeclaredManifest, claim: DeclaredManifest) -> DeclaredManifest:
    """Return the volume bound to a claim."""
    reference = {
        "apiVersion": "v1",
        "kind": claim.kind,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["claimRef"] = reference
        part_of(fields, "status")["phase"] = "Bound"
        annotations = part_of(part_of(fields, "metadata"), "annotations")
        annotations[BOUND_HERE] = claim.uid
        if not is_reserved:
            annotations[BOUND_BY_CONTROLLER] = "yes"

    is_reserved = _volume_body(volume).spec.claim_ref is not None
    return edited(volume, edit)


def volume_released(volume: DeclaredManifest) -> DeclaredManifest:
    """Return a volume as released: its claim was deleted, and no other gets it, as it may hold data."""

    def edit(fields: Json) -> None:
        part_of(fields, "status")["phase"] = RELEASED

    return edited(volume, edit)


def claim_keeping_binding(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a claim with its volume, unless it names another one."""
    name = volume_named_by(stored)
    if volume_named_by(sent) not in ("", name):
        return sent

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["volumeName"] = name
        _keep(fields, stored, (BIND_COMPLETED, BOUND_BY_CONTROLLER))

    return edited(sent, edit)


def volume_keeping_binding(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a volume with the claim that it was bound to here.

    The update is left alone if it gives the volume to another claim, or frees it.
    """
    if BOUND_HERE not in stored.kept.annotations or not _leaves_claim(sent, stored):
        return sent
    spec = part_of(cast("Json", msgspec.json.decode(stored.render())), "spec")

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["claimRef"] = spec["claimRef"]
        _keep(fields, stored, (BOUND_HERE, BOUND_BY_CONTROLLER))

    return edited(sent, edit)


def _leaves_claim(sent: DeclaredManifest, stored: DeclaredManifest) -> bool:
    """Return whether an update of a bound volume names the same claim, or none.

    Only a volume that was released can become available.
    """
    update, old = _volume_body(sent), _volume_body(stored)
    claim, known = update.spec.claim_ref, old.spec.claim_ref
    if known is None or (old.status.phase, update.status.phase) == (RELEASED, "Available"):
        return False
    return claim is None or claim in (known, replace(known, uid=""))


def _keep(fields: Json, stored: DeclaredManifest, annotations: Iterable[str]) -> None:
    """Keep annotations, and the phase if the update has none or that of an unbound object."""
    known = stored.kept.annotations
    kept = {name: known[name] for name in annotations if name in known}
    metadata = part_of(fields, "metadata")
    metadata["annotations"] = kept | entries_of(metadata.get("annotations"))
    phase = _phase_of(stored)
    status = part_of(fields, "status")
    if phase and status.get("phase") in UNBOUND:
        status["phase"] = phase
    if not status:
        del fields["status"]


def _phase_of(manifest: DeclaredManifest) -> str:
    body = manifest.kept.body
    assert isinstance(body, PersistentVolumeClaimBody | PersistentVolumeBody)
    return body.status.phase


def volume_named_by(claim: DeclaredManifest) -> str:
    """Return the name of the volume that a claim is bound to, or ""."""
    body = claim.kept.body
    assert isinstance(body, PersistentVolumeClaimBody)
    return body.spec.volume_name


def was_bound_here(volume: DeclaredManifest, claim: DeclaredManifest) -> bool:
    """Return whether Moorage bound a volume to this very claim, and it still is."""
    reference = _volume_body(volume).spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and volume.kept.annotations.get(BOUND_HERE) == claim.uid
    )


def _volume_body(volume: DeclaredManifest) -> PersistentVolumeBody:
    body = volume.kept.body
    assert isinstance(body, PersistentVolumeBody)
    return body
