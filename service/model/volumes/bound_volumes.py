"""Binding of claims and volumes, and the edits to both, as made by Kubernetes' own controller.

A volume that Moorage bound records its claim in an annotation, because Moorage only releases
volumes that it bound itself. Clients may write claims and volumes without knowing of a binding made
in the meantime, so an update keeps every part of a binding that it does not mention.
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
"""The annotation of objects that were bound by a controller, not by the author of the manifest."""
BOUND_HERE = "moorage.dev/bound-claim"
"""The annotation of a volume that Moorage bound; its value is the uid of the claim."""
RELEASED = "Released"
"""The phase of a volume whose claim was deleted; it lasts until an operator frees the volume."""
UNBOUND = (None, "", "Pending", "Available")
"""The phases of unbound claims and volumes; None means that no phase has been reported yet."""


def claim_of_default_class(claim: DeclaredManifest, class_name: str) -> DeclaredManifest:
    """Return a copy of the claim, which names no storage class, with the default one."""

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["storageClassName"] = class_name
        part_of(part_of(fields, "metadata"), "annotations")[DEFAULTED_CLASS] = class_name

    return edited(claim, edit)


def claim_bound_to(claim: DeclaredManifest, volume_name: str) -> DeclaredManifest:
    """Return a copy of the claim, bound to a volume."""

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["volumeName"] = volume_name
        part_of(fields, "status")["phase"] = "Bound"
        annotations = part_of(part_of(fields, "metadata"), "annotations")
        annotations.update({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})

    return edited(claim, edit)


def claim_for_node(claim: DeclaredManifest, node_name: str) -> DeclaredManifest:
    """Return a copy of the claim whose volume is to be provisioned for a node."""

    def edit(fields: Json) -> None:
        part_of(part_of(fields, "metadata"), "annotations")[SELECTED_NODE] = node_name

    return edited(claim, edit)


def volume_bound_to(volume: DeclaredManifest, claim: DeclaredManifest) -> DeclaredManifest:
    """Return a copy of the volume, bound to a claim."""
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
    """Return a copy of the volume in phase Released: its claim is gone, but data may remain."""

    def edit(fields: Json) -> None:
        part_of(fields, "status")["phase"] = RELEASED

    return edited(volume, edit)


def claim_keeping_binding(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a claim with the stored volume name, unless it names another volume."""
    name = volume_named_by(stored)
    if volume_named_by(sent) not in ("", name):
        return sent

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["volumeName"] = name
        _keep(fields, stored, (BIND_COMPLETED, BOUND_BY_CONTROLLER))

    return edited(sent, edit)


def volume_keeping_binding(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a volume with the stored claim, if Moorage bound the volume.

    An update that assigns the volume to another claim, or frees it, is returned unchanged.
    """
    if BOUND_HERE not in stored.kept.annotations or not _leaves_claim(sent, stored):
        return sent
    spec = part_of(cast("Json", msgspec.json.decode(stored.render())), "spec")

    def edit(fields: Json) -> None:
        part_of(fields, "spec")["claimRef"] = spec["claimRef"]
        _keep(fields, stored, (BOUND_HERE, BOUND_BY_CONTROLLER))

    return edited(sent, edit)


def _leaves_claim(sent: DeclaredManifest, stored: DeclaredManifest) -> bool:
    """Return whether an update of a bound volume names the same claim, or no claim.

    Only a volume that was released can become available.
    """
    update, old = _volume_body(sent), _volume_body(stored)
    claim, known = update.spec.claim_ref, old.spec.claim_ref
    if known is None or (old.status.phase, update.status.phase) == (RELEASED, "Available"):
        return False
    return claim is None or claim in (known, replace(known, uid=""))


def _keep(fields: Json, stored: DeclaredManifest, annotations: Iterable[str]) -> None:
    """Keep the stored annotations, and the stored phase unless the update has a bound phase."""
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
    """Return the name of the volume to which a claim is bound, or ""."""
    body = claim.kept.body
    assert isinstance(body, PersistentVolumeClaimBody)
    return body.spec.volume_name


def was_bound_here(volume: DeclaredManifest, claim: DeclaredManifest) -> bool:
    """Return whether Moorage bound the volume to exactly this claim, and it is still bound."""
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
