"""Sets the default class of claims without one, like Kubernetes' DefaultStorageClass admission."""

from service.model.core.declared_manifest import DeclaredManifest
from service.model.core.kind import DeclaredObject
from service.model.volumes.bound_volumes import claim_of_default_class, volume_named_by
from service.model.volumes.volume_kinds import (
    BETA_CLASS,
    DEFAULTED_CLASS,
    IS_DEFAULT_CLASS,
    PersistentVolumeClaimBody,
    StorageClassBody,
)
from service.scheduler.decide.context import DecisionContext


def with_default_class(
    context: DecisionContext, sent: DeclaredManifest, stored: DeclaredManifest | None = None
) -> DeclaredManifest:
    """Return a claim with the default class if it names none; return other objects unchanged.

    An update that names no class keeps the stored claim's default, whatever the default is now. A
    claim with a volume without a class gets no class.
    """
    if not isinstance(sent.kept.body, PersistentVolumeClaimBody) or _names_class(sent):
        return sent
    defaulted = None if stored is None else stored.kept.annotations.get(DEFAULTED_CLASS)
    if stored is not None and defaulted is None and volume_named_by(sent):
        return sent
    name = defaulted or _default_class(context)
    return sent if name is None else claim_of_default_class(sent, name)


def _names_class(claim: DeclaredManifest) -> bool:
    """Return whether a claim names its class; "" (no class) counts as a name."""
    return BETA_CLASS in claim.kept.annotations or _class_of(claim) is not None


def _class_of(claim: DeclaredManifest) -> str | None:
    body = claim.kept.body
    return body.spec.storage_class_name if isinstance(body, PersistentVolumeClaimBody) else None


def _default_class(context: DecisionContext) -> str | None:
    """Return the name of the default class (the newest, then the first by name), or None."""
    classes = context.replica.cluster.objects.having(StorageClassBody).values()
    defaults = sorted(filter(_is_default, classes), key=lambda storage_class: storage_class.name)
    newest = max(defaults, key=lambda storage_class: storage_class.created, default=None)
    return None if newest is None else newest.name


def _is_default(storage_class: DeclaredObject[StorageClassBody]) -> bool:
    return any(storage_class.annotations.get(name) == "true" for name in IS_DEFAULT_CLASS)
