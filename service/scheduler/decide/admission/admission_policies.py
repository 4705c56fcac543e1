"""Asking a cluster's policies about a pod that is created or changed.

A policy that has no answer denies: nothing comes in that its author has not thought of.
"""

from collections.abc import Mapping
from typing import cast

import msgspec

from service.model.errors import Denied
from service.model.manifests.manifest import PodManifest
from service.model.manifests.manifest_base import ObjectManifest
from service.model.manifests.metadata_and_status import Json
from service.model.objects.admission_policies import AdmissionPolicy
from service.model.objects.cel_expressions import (
    ITEMS_MAX,
    OBJECT_BYTES_MAX,
    ExpressionError,
    compiled,
    is_bounded,
)
from service.model.objects.selectors import matches
from service.model.validation.combinators import entries_of
from service.scheduler.replica.replica import Replica

POLICY_DENIED = "PolicyDenied"
_OF_ITS_END = frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"})


def admit_by_policies(replica: Replica, sent: PodManifest, stored: PodManifest | None) -> None:
    """Deny a pod, or a change of the stored one, of which some policy is not true.

    Raises:
        Denied: with the policy's id and message.
    """
    asked = _asked(replica, sent, stored) if replica.config.policies else ()
    if not asked:
        return
    new, old = _decoded(sent), _decoded(stored)
    if stored is not None and _judged(new) == _judged(old):
        return  # a report of the pod's state, or its end
    _refuse_large(asked[0], sent, stored, [new, old])
    variables = _variables(replica, sent, new, old)
    for policy in asked:
        try:
            if compiled(policy.expression).holds(variables):
                continue
        except ExpressionError as error:
            raise _denial(policy, f"it cannot be evaluated: {error}") from None
        raise _denial(policy, policy.message or f"failed expression: {policy.expression}")


def _asked(
    replica: Replica, sent: PodManifest, stored: PodManifest | None
) -> list[AdmissionPolicy]:
    """Return the policies that are asked about this operation in the pod's namespace."""
    operation = "Create" if stored is None else "Update"
    return [
        policy
        for policy in replica.config.policies
        if operation in policy.operations and _selects(replica, policy, sent.namespace)
    ]


def _selects(replica: Replica, policy: AdmissionPolicy, namespace: str) -> bool:
    if policy.namespace_selector is None:
        return True
    found = replica.get("Namespace", "", namespace)
    return matches(policy.namespace_selector, found.manifest.labels if found else {})


def _refuse_large(
    policy: AdmissionPolicy, sent: PodManifest, stored: PodManifest | None, decoded: list[Json]
) -> None:
    """Let a policy deny what takes too long to be asked about."""
    size = max(len(each.render()) for each in (sent, stored) if each)
    if size > OBJECT_BYTES_MAX or not all(map(is_bounded, decoded)):
        told = f"{OBJECT_BYTES_MAX} bytes, and {ITEMS_MAX} items in a list or map"
        raise _denial(policy, f"policies are asked about objects of at most {told}")


def _variables(replica: Replica, sent: PodManifest, new: Json, old: Json) -> Mapping[str, object]:
    """Return what expressions can speak of."""
    found = replica.get("Namespace", "", sent.namespace)
    namespace = found.manifest if found else None
    assert namespace is None or isinstance(namespace, ObjectManifest)
    request = {
        "operation": "UPDATE" if old else "CREATE",
        "namespace": sent.namespace,
        "name": sent.name,
    }
    return {
        "object": new,
        "oldObject": old or None,
        "namespaceObject": _decoded(namespace) or None,
        "request": request,
    }


def _judged(pod: Json) -> Json:
    """Return what of a pod a change is judged by: all but its status and the marks of its end."""
    metadata = {
        name: value
        for name, value in entries_of(pod["metadata"]).items()
        if name not in _OF_ITS_END
    }
    return {name: value for name, value in pod.items() if name != "status"} | {"metadata": metadata}


def _decoded(manifest: ObjectManifest | None) -> Json:
    """Return a manifest as JSON; that of no object is empty."""
    return {} if manifest is None else cast("Json", msgspec.json.decode(manifest.render()))


def _denial(policy: AdmissionPolicy, message: str) -> Denied:
    return Denied(POLICY_DENIED, f"policy {policy.id}: {message}")
