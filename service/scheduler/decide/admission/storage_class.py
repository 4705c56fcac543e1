"""The class that a claim gets which names none, as Kubernetes' admission (DefaultStorageClass) gives it."""

from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptObject
from service.model.kinds_kept_for_rules.volume_kinds import (
    BETA_CLASS,
    DEFAULTED_CLASS,
    IS_DEFAULT_CLASS,
    PersistentVolumeClaimBody,
    StorageClassBody,
)
from service.model.manifests.bound_volumes import claim_of_default_class, volume_named_by
from service.model.manifests.manifest_kept_for_rules import KeptManifest
from service.scheduler.decide.context import DecisionContext


def with_default_class(
    context: DecisionContext, sent: KeptManifest, stored: KeptManifest | None = None
) -> KeptManifest:
    """Return a claim with the default class, if it names none; other objects stay as they are.

    An update that names no class keeps the default that the stored claim got, whichever is the
    default now. A claim that has a volume without a class stays without.
    """
    if not isinstance(sent.kept.body, PersistentVolumeClaimBody) or _names_class(sent):
        return sent
    kept = None if stored is None else stored.kept.annotations.get(DEFAULTED_CLASS)
    if stored is not None and kept is None and volume_named_by(sent):
        return sent
    name = kept or _default_class(context)
    return sent if name is None else claim_of_default_class(sent, name)


def _names_class(claim: KeptManifest) -> bool:
    """Whether a claim says which class it is of; "" says that it is of none."""
    return BETA_CLASS in claim.kept.annotations or _class_of(claim) is not None


def _class_of(claim: KeptManifest) -> str | None:
    body = claim.kept.body
    return body.spec.storage_class_name if isinstance(body, PersistentVolumeClaimBody) else None


def _default_class(context: DecisionContext) -> str | None:
    """The name of the class that says it is the default; of several it is the newest, then the first."""
    classes = context.replica.cluster.objects.having(StorageClassBody).values()
    defaults = sorted(filter(_is_default, classes), key=lambda each: each.name)
    newest = max(defaults, key=lambda each: each.created, default=None)
    return None if newest is None else newest.name


def _is_default(storage_class: KeptObject[StorageClassBody]) -> bool:
    return any(storage_class.annotations.get(name) == "true" for name in IS_DEFAULT_CLASS)
