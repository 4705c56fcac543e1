"""Evaluates a cluster's admission policies for a new or changed pod.

A policy that fails to evaluate denies, so that only what its author considered is admitted.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from service.model.cel.evaluation import ITEMS_MAX, OBJECT_BYTES_MAX
from service.model.cluster.admission_policies import AdmissionPolicy
from service.model.core.errors import Denied
from service.model.core.manifest import ObjectManifest
from service.model.core.metadata import Json
from service.model.core.selectors import matches
from service.model.core.validators import entries_of
from service.model.devices.cel_questions import TOO_MANY_ITEMS, PolicyQuestion
from service.model.registry.manifests import PodManifest
from service.scheduler.protocol.expressions import Unanswered
from service.scheduler.replica.replica import Replica

POLICY_DENIED = "PolicyDenied"
_OF_ITS_END = frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"})


def admit_by_policies(replica: Replica, sent: PodManifest, stored: PodManifest | None) -> None:
    """Deny a new pod, or a change to the stored one, that fails a policy.

    Raises:
        Denied: with the policy's id and message.
    """
    policies = _applicable_policies(replica, sent, stored) if replica.config.policies else ()
    if not policies or _is_a_report(sent, stored):
        return
    _refuse_large(policies[0], sent, stored)
    is_open, failing = replica.questions.failing(_question(replica, policies, sent, stored))
    if is_open or failing is None:
        return  # A decision with open questions is repeated.
    index, problem = failing
    policy = policies[index]
    if problem == TOO_MANY_ITEMS:
        raise _denial(policy, _TOO_LARGE)
    if problem is not None:
        raise _denial(policy, f"it cannot be evaluated: {problem}")
    raise _denial(policy, policy.message or f"failed expression: {policy.expression}")


def ask_about_new(replica: Replica, pods: Iterable[PodManifest]) -> None:
    """Evaluate policies for new pods together, before any of them is placed.

    Raises:
        Unanswered: a policy's result is not known yet.
    """
    for sent in pods:
        policies = _applicable_policies(replica, sent, None)
        if policies and len(sent.render()) <= OBJECT_BYTES_MAX:
            replica.questions.failing(_question(replica, policies, sent, None))
    if replica.questions:
        raise Unanswered


def _applicable_policies(
    replica: Replica, sent: PodManifest, stored: PodManifest | None
) -> list[AdmissionPolicy]:
    """Return the policies that apply to this operation in the pod's namespace."""
    operation = "Create" if stored is None else "Update"
    return [
        policy
        for policy in replica.config.policies
        if operation in policy.operations and _selects(replica, policy, sent.namespace)
    ]


def _selects(replica: Replica, policy: AdmissionPolicy, namespace: str) -> bool:
    if policy.namespace_selector is None:
        return True
    stored = replica.get("Namespace", "", namespace)
    return matches(policy.namespace_selector, stored.manifest.labels if stored else {})


def _is_a_report(sent: PodManifest, stored: PodManifest | None) -> bool:
    """Return whether a change only reports the pod's state or termination."""
    return stored is not None and _judged(_decoded(sent)) == _judged(_decoded(stored))


_TOO_LARGE = (
    f"policies are asked about objects of at most {OBJECT_BYTES_MAX} bytes, "
    f"and {ITEMS_MAX} items in a list or map"
)


def _refuse_large(policy: AdmissionPolicy, sent: PodManifest, stored: PodManifest | None) -> None:
    """Deny objects that are too large to evaluate policies for."""
    if max(len(manifest.render()) for manifest in (sent, stored) if manifest) > OBJECT_BYTES_MAX:
        raise _denial(policy, _TOO_LARGE)


def _question(
    replica: Replica,
    policies: Sequence[AdmissionPolicy],
    sent: PodManifest,
    stored: PodManifest | None,
) -> PolicyQuestion:
    """Build the query that evaluates all policies, with the values that expressions can read."""
    stored_namespace = replica.get("Namespace", "", sent.namespace)
    namespace = stored_namespace.manifest if stored_namespace else None
    assert namespace is None or isinstance(namespace, ObjectManifest)
    return PolicyQuestion(
        texts=tuple([policy.expression for policy in policies]),
        new=sent.render(),
        old=None if stored is None else stored.render(),
        namespace=None if namespace is None else namespace.render(),
        request={
            "operation": "CREATE" if stored is None else "UPDATE",
            "namespace": sent.namespace,
            "name": sent.name,
        },
    )


def _judged(pod: Json) -> Json:
    """Return the part of a pod that policies judge: all but its status and termination fields."""
    metadata = {
        name: value
        for name, value in entries_of(pod["metadata"]).items()
        if name not in _OF_ITS_END
    }
    return {name: value for name, value in pod.items() if name != "status"} | {"metadata": metadata}


def _decoded(manifest: ObjectManifest) -> Json:
    return cast("Json", msgspec.json.decode(manifest.render()))


def _denial(policy: AdmissionPolicy, message: str) -> Denied:
    return Denied(POLICY_DENIED, f"policy {policy.id}: {message}")
