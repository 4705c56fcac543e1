"""Creates, replaces, and deletes single objects: the logic shared by all writes."""

from typing import Literal, cast

import msgspec
from msgspec.structs import replace

from service.model.core.errors import Conflict, NotFound, PreconditionFailed, RevisionConflict
from service.model.core.kind import DeclaredObject
from service.model.nodes.namespaces import NamespaceManifest, parse_namespace
from service.model.pods.requests import requirements
from service.model.pods.status import FINISHED
from service.model.registry.manifests import (
    DEFAULT_NAMESPACE,
    AnyManifest,
    DeclaredManifest,
    NodeManifest,
    ObjectManifest,
    PodManifest,
    QuotaManifest,
)
from service.model.volumes.volume_kinds import PersistentVolumeClaimBody
from service.scheduler.decide.admission.admission_policies import admit_by_policies
from service.scheduler.decide.admission.authorization import (
    authorize_change,
    authorize_removal,
)
from service.scheduler.decide.admission.feature_gates import (
    check_scopes,
    without_features_off,
)
from service.scheduler.decide.admission.field_ownership import is_managed, record_ownership
from service.scheduler.decide.admission.generated_names import with_name
from service.scheduler.decide.admission.ignored_fields import warnings_of_written
from service.scheduler.decide.admission.plan_admission import refuse_impossible, with_progress
from service.scheduler.decide.admission.pod_admission import (
    admit,
    admit_charge,
    admit_claim,
    admit_limits,
    as_created,
    as_updated,
    differs,
    was_admitted,
)
from service.scheduler.decide.admission.pod_updates import (
    check_reserved_update,
    check_update,
)
from service.scheduler.decide.admission.storage_class import with_default_class
from service.scheduler.decide.claims.device_claims import (
    admit_devices,
    as_written,
    keep_allocation,
    refuse_while_reserved,
    release_devices,
)
from service.scheduler.decide.claims.volume_bindings import (
    keep_binding,
    refuse_while_in_use,
    release_volumes,
)
from service.scheduler.decide.computed_status import render_for_clients
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.groups.waiting_groups import leave_waiting
from service.scheduler.decide.move_reservations import note_arrival
from service.scheduler.decide.node_lifecycle.client_writes import (
    note_deletion,
    taint_by_conditions,
    with_remembered_state,
)
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import (
    UNKNOWN_MANAGER,
    DeleteObject,
    Preconditions,
    PutObject,
)
from service.scheduler.replica.replica import Replica, Stored
from service.scheduler.replica.stored_kinds import StoredManifest

Effect = Literal["Created", "Changed", "Unchanged"]


Claim = DeclaredObject[PersistentVolumeClaimBody]


class WriteResult(msgspec.Struct, frozen=True, gc=False):
    """The effect of a write, and the object as it is stored now."""

    effect: Effect
    stored: Stored
    replaced: bool = False
    """Whether an older object of the same name was deleted for the new one."""


def put_object(context: DecisionContext, intent: PutObject) -> ObjectAnswer:
    """Create or replace an object.

    Raises:
        RevisionConflict: the stored object has another resourceVersion or uid.
        PreconditionFailed: a precondition on the object's version does not hold.
        Conflict: the write must create the object, but it exists already.
        InvalidManifest: a placed pod's spec may not change in this way.
        Denied: admission refuses the pod.
        Forbidden: the caller may not write this about the pod.
    """
    sent = with_name(context, intent.manifest) if intent.create else intent.manifest
    stored = context.replica.get(sent.kind, sent.namespace, sent.name)
    if intent.create and stored is not None:
        raise Conflict(f"There is a {sent.kind} {_format_name(sent)} already.")
    check_preconditions(intent.preconditions, stored)
    return replace_object(context, sent, stored, intent.caller, manager=intent.manager)


def replace_object(
    context: DecisionContext,
    sent: AnyManifest,
    stored: Stored | None,
    caller: Caller,
    *,
    patched: bool = False,
    manager: str = UNKNOWN_MANAGER,
) -> ObjectAnswer:
    """Put an object, if its resourceVersion and uid match the stored ones where sent."""
    own = Preconditions(resource_version=sent.resource_version or None, uid=sent.uid or None)
    if stored is not None or own.resource_version:
        check_preconditions(own, stored)
    written = upsert(context, sent, caller, patched=patched, manager=manager)
    context.warn(warnings_of_written(context, sent))
    return answer_with(context, written.stored, created=written.effect == "Created")


def delete_object(context: DecisionContext, intent: DeleteObject) -> ObjectAnswer:
    """Delete an object. A namespace is deleted with everything in it, in one commit.

    Raises:
        NotFound: the object does not exist.
        RevisionConflict, PreconditionFailed: the stored object is not the intended one.
        Forbidden: the object is a pod that the caller may not delete.
        Conflict: the object is a claim bound or allocated here, and a placed pod uses it.
    """
    meant = intent.preconditions
    stored = require_stored(context, intent.kind, intent.namespace, intent.name, meant)
    last = answer_with(context, stored)
    delete_stored(context, stored, intent.caller)
    return replace(last, revision=context.replica.revision)


def require_stored(
    context: DecisionContext, kind: str, namespace: str, name: str, preconditions: Preconditions
) -> Stored:
    """Return the stored object that a request is about.

    Raises:
        NotFound: the object does not exist.
        RevisionConflict, PreconditionFailed: the stored object is not the intended one.
    """
    stored = context.replica.get(kind, namespace, name)
    if stored is None and (kind, name) == ("Namespace", DEFAULT_NAMESPACE):
        stored = _unstored_default(context)
    if stored is None:
        raise not_found(kind, namespace, name)
    check_preconditions(preconditions, stored)
    return stored


def delete_stored(context: DecisionContext, stored: Stored, caller: Caller) -> None:
    """Delete an object, or a namespace with everything in it, if it can be deleted now.

    Raises:
        Forbidden: the object is a pod that the caller may not delete.
        Conflict: the object is a claim bound or allocated here, and a placed pod uses it.
    """
    refuse_while_in_use(context, stored.manifest)
    refuse_while_reserved(stored.manifest)
    remove(context, stored, caller)


def remove(context: DecisionContext, stored: Stored, caller: Caller) -> int:
    """Delete an object, or a namespace with everything in it; return the number of objects deleted.

    The namespace `default` is emptied, but stays. Deleting a namespace does not require the right
    to delete each object in it.

    Raises:
        Forbidden: the object is a pod that the caller may not delete.
    """
    manifest, replica = stored.manifest, context.replica
    if isinstance(manifest, PodManifest):
        authorize_removal(caller, manifest)
    keys = [(manifest.kind, (manifest.namespace, manifest.name))]
    if isinstance(manifest, NamespaceManifest):
        emptied = replica.in_namespace(manifest.name)
        keys = emptied if manifest.name == DEFAULT_NAMESPACE else [*emptied, *keys]
    deleted = 0
    for kind, key in keys:
        if kind == PodManifest.kind:
            leave_waiting(replica, key)
        elif kind == NodeManifest.kind:
            note_deletion(replica, key[1])
        if replica.get(kind, *key) is not None:  # a claim created for a pod is deleted with it
            entry = replica.delete(kind, *key)
            assert entry.before is not None
            _release(context, entry.before.manifest, None)
            if kind == PodManifest.kind:
                replica.end_reservation(key)
        deleted += 1
    return deleted


def upsert(
    context: DecisionContext,
    sent: AnyManifest,
    caller: Caller,
    *,
    replaces_uid: bool = False,
    patched: bool = False,
    manager: str = UNKNOWN_MANAGER,
) -> WriteResult:
    """Create an object, or change the stored one to what was sent, if it differs.

    With `replaces_uid`, a different uid means a new object of the same name: the old one is deleted
    and the new one created. If a pod is `patched`, its node is no observation, since the patch
    merely left the node unchanged. `manager` becomes the manager of the fields that it changes, if
    they are managed.

    Raises:
        InvalidManifest, Denied, Forbidden: for the same reasons as `put_object`.
        Conflict: a claim in use by a placed pod would be replaced, and the caller is no observer.
    """
    stored = context.replica.get(sent.kind, sent.namespace, sent.name)
    if stored is not None and replaces_uid and sent.uid and sent.uid != stored.manifest.uid:
        _make_room(context, stored.manifest, caller)
        sent = _as_written(context, sent, None, caller)
        return replace(_create(context, sent, caller), replaced=True)
    sent = _as_written(context, sent, stored.manifest if stored is not None else None, caller)
    if stored is None:
        return _create(context, sent, caller)
    known = not patched and _was_admitted(sent, caller)
    updated = _updated(context, sent, stored, was_admitted=known, patched=patched)
    old = stored.manifest
    if is_managed(old):
        updated = record_ownership(context, updated, old, manager)
    updated = _tainted(context, updated)
    if same_object(updated, old):
        return WriteResult("Unchanged", stored)
    if isinstance(updated, PodManifest) and isinstance(old, PodManifest):
        authorize_change(caller, updated, old)
        node_name = sent.pod.node_name if isinstance(sent, PodManifest) else None
        is_fact = node_name is not None and not patched
        before, after = old, updated
        if (old.namespace, old.name) in context.replica.reservations:
            before, after = _counted(context.replica, old), _counted(context.replica, updated)
            if node_name is None:
                check_reserved_update(old, updated)
        check_update(before, after)
        _admit_update(context, after, before, is_fact=is_fact, was_admitted=known)
        if old.pod.node_name is None:
            note_arrival(context.replica, updated.pod)
    elif not known:
        _admit_claim(context, updated, old)
    written = _put(context, updated)
    _release(context, old, updated)
    return WriteResult("Changed", written)


def _as_written(
    context: DecisionContext, sent: AnyManifest, stored: StoredManifest | None, caller: Caller
) -> AnyManifest:
    written = with_progress(as_written(sent, stored, caller), stored, caller)
    refuse_impossible(context, written)
    return written


def same_object(one: AnyManifest, other: object) -> bool:
    """Return whether two manifests are equal, regardless of field order."""
    assert isinstance(other, type(one))
    if (
        isinstance(one, PodManifest)
        and isinstance(other, PodManifest)
        and one.has_other_status(other)  # most updates report a status
    ):
        return False
    mine, theirs = one.render(), other.render()
    return mine == theirs or msgspec.json.decode(mine) == msgspec.json.decode(theirs)


def check_preconditions(preconditions: Preconditions, stored: Stored | None) -> None:
    """Refuse a write to an object that is not the intended one.

    Raises:
        PreconditionFailed: a precondition on the object's version does not hold.
        RevisionConflict: the stored object has another resourceVersion or uid.
    """
    check_tags(preconditions, None if stored is None else stored.revision)
    revision = None if stored is None else str(stored.revision)
    if preconditions.resource_version not in (None, revision):
        raise RevisionConflict(
            f"metadata.resourceVersion is {revision or 'none: there is no such object'}, "
            f"not {preconditions.resource_version}."
        )
    uid = None if stored is None else stored.manifest.uid
    if preconditions.uid not in (None, uid):
        raise RevisionConflict(f"metadata.uid is {uid}, not {preconditions.uid}.")


def check_tags(preconditions: Preconditions, version: int | None) -> None:
    """Check entity tags against the stored version, or None if there is no object.

    Raises:
        PreconditionFailed: a tag does not match.
    """
    revision = None if version is None else str(version)
    tags = preconditions.if_match
    if tags is not None and (revision is None or not {"*", revision}.intersection(tags)):
        raise PreconditionFailed(f"The object's entity tag is {_tag(revision)}.")
    unwanted = preconditions.if_none_match
    if unwanted is not None and revision is not None and {"*", revision}.intersection(unwanted):
        raise PreconditionFailed(f"The object is there; its entity tag is {_tag(revision)}.")


def answer_with(context: DecisionContext, stored: Stored, *, created: bool = False) -> ObjectAnswer:
    """Return the answer that shows an object as stored now, or as it was before its deletion."""
    return ObjectAnswer(
        revision=context.replica.revision,
        body=render_for_clients(context.replica, stored.manifest),
        resource_version=stored.revision,
        created=created,
        warnings=context.answer_warnings(),
    )


def not_found(kind: str, namespace: str, name: str) -> NotFound:
    """Return the error for an object that does not exist."""
    return NotFound(f"There is no {kind} {f'{namespace}/' if namespace else ''}{name}.")


def _format_name(manifest: AnyManifest) -> str:
    return f"{manifest.namespace}/{manifest.name}" if manifest.namespace else manifest.name


def _make_room(context: DecisionContext, old: StoredManifest, caller: Caller) -> None:
    """Delete an object to make room for a new one; only observers may replace one in use."""
    if isinstance(old, PodManifest):
        authorize_removal(caller, old)
    elif not caller.may("observe", old.namespace):
        refuse_while_in_use(context, old)
        refuse_while_reserved(old)
    context.replica.delete(old.kind, old.namespace, old.name)
    _release(context, old, None)
    if isinstance(old, PodManifest):
        context.replica.end_reservation((old.namespace, old.name))


def _create(context: DecisionContext, sent: AnyManifest, caller: Caller) -> WriteResult:
    if isinstance(sent, PodManifest):
        authorize_change(caller, sent)
        sent = without_features_off(context, sent, None)
        known = _was_admitted(sent, caller)
        sent = as_created(context, sent, was_admitted=known)
        if sent.pod.node_name is None:
            # A pod with a node is a fact: only observers can state it, and it cannot be refused.
            admit_by_policies(context.replica, sent, None)
            admit(context.replica, sent.pod, was_admitted=known)
    elif not _was_admitted(sent, caller):
        if isinstance(sent, DeclaredManifest):
            sent = with_default_class(context, sent)
            admit_devices(context, sent)
        _admit_claim(context, sent)
    if isinstance(sent, QuotaManifest):
        check_scopes(context, sent, None)
    manifest = sent.with_identity(sent.uid or context.ids.uid(), sent.created or context.now)
    manifest = _tainted(context, manifest)
    if isinstance(manifest, PodManifest):
        note_arrival(context.replica, manifest.pod)
    return WriteResult("Created", _put(context, manifest))


def _updated(
    context: DecisionContext,
    sent: AnyManifest,
    stored: Stored,
    *,
    was_admitted: bool,
    patched: bool,
) -> AnyManifest:
    old = stored.manifest
    if isinstance(sent, PodManifest):
        assert isinstance(old, PodManifest)
        sent = without_features_off(context, sent, old)
        updated = as_updated(context, sent, old, was_admitted=was_admitted)
        base = old.reopened() if _revives(context, updated, old) else old
        return updated.updating(base, patched=patched)
    assert isinstance(old, ObjectManifest)
    if isinstance(sent, NodeManifest):
        assert isinstance(old, NodeManifest)
        sent = with_remembered_state(context, sent, old)
    if isinstance(sent, QuotaManifest):
        assert isinstance(old, QuotaManifest)
        check_scopes(context, sent, old)
    if isinstance(sent, DeclaredManifest):
        assert isinstance(old, DeclaredManifest)
        if not was_admitted:
            sent = with_default_class(context, sent, old)
            admit_devices(context, sent, old)
        sent = keep_allocation(keep_binding(context, sent, old), old)
    return sent.with_identity(sent.uid or old.uid, old.created or sent.created)


def _tainted(context: DecisionContext, manifest: AnyManifest) -> AnyManifest:
    """Return a node with the taints that its conditions require, which have no manager."""
    if not isinstance(manifest, NodeManifest):
        return manifest
    return taint_by_conditions(context.replica.config, manifest, context.now)


def _revives(context: DecisionContext, sent: PodManifest, old: PodManifest) -> bool:
    """Return whether an update revives a pod that ended with its node.

    An update revives a pod by its phase, or by stating another node or one that exists.
    """
    if not old.has_ended_with_its_node:
        return False
    if sent.phase:
        return sent.phase not in FINISHED
    node_name = sent.pod.node_name
    if node_name is None:
        return False
    return node_name != old.pod.node_name or context.replica.cluster.node(node_name) is not None


def _counted(replica: Replica, manifest: PodManifest) -> PodManifest:
    """Return a pod as rules count it: a reserved node counts as the pod's node."""
    return replace(manifest, pod=replica.counted(manifest))


def _admit_update(
    context: DecisionContext,
    updated: PodManifest,
    old: PodManifest,
    *,
    is_fact: bool,
    was_admitted: bool,
) -> None:
    """Admit a pod's change: a waiting pod like a new one, a placed pod only by its new requests."""
    if updated.pod.node_name == old.pod.node_name and not is_fact:
        admit_by_policies(context.replica, updated, old)
    if updated.pod.node_name is None:
        admit(context.replica, updated.pod, old.pod, was_admitted=was_admitted)
    elif old.pod.node_name == updated.pod.node_name and not is_fact:
        if not was_admitted and differs(updated.pod, old.pod, requirements):
            admit_limits(context.replica.cluster, updated.pod)
        admit_charge(context.replica, updated.pod, old.pod)


def _was_admitted(sent: AnyManifest, caller: Caller) -> bool:
    """Return whether an API server has admitted a pod or claim; False for other kinds."""
    return isinstance(sent, PodManifest | DeclaredManifest) and was_admitted(sent, caller)


def _admit_claim(context: DecisionContext, sent: AnyManifest, old: object = None) -> None:
    """Admit a new claim, or a stored claim's new requests."""
    if isinstance(sent, DeclaredManifest) and isinstance(sent.kept.body, PersistentVolumeClaimBody):
        claim = cast("Claim", sent.kept)
        stored = cast("Claim", old.kept) if isinstance(old, DeclaredManifest) else None
        admit_claim(context.replica.cluster, claim, stored)


def _release(
    context: DecisionContext, before: StoredManifest, after: StoredManifest | None
) -> None:
    """Release the volumes and devices that a deleted or changed object no longer uses."""
    release_volumes(context, before, after)
    release_devices(context, before, after)


def _put(context: DecisionContext, manifest: AnyManifest) -> Stored:
    entry = context.replica.put(manifest)
    assert entry.after is not None
    return entry.after


def _unstored_default(context: DecisionContext) -> Stored | None:
    """Return the namespace `default`, which exists even if it is not stored."""
    manifest = parse_namespace({"metadata": {"name": DEFAULT_NAMESPACE}})
    return Stored(manifest, context.replica.revision)


def _tag(revision: str | None) -> str:
    return f'"{revision}"' if revision else "none: there is no such object"
