"""Reads objects from files for `apply` and `place`, expanding workloads into pods."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from moorage.cli.exceptions import Refused
from moorage.cli.input.sources import read_objects
from moorage.cli.input.workloads import Expansion, Object, expand, workload_kind
from moorage.cli.session.options import Session

BELONGING = ("NodeName", "NodeAffinity", "TaintToleration")
"""The filters that determine on which nodes Kubernetes runs a daemon, whether it fits or not.

Source: `predicates` in pkg/controller/daemon/daemon_controller.go, v1.35.
"""

KINDS_WITHOUT_EFFECT: Mapping[str, Container[str]] = {
    "": {"ConfigMap", "Endpoints", "Event", "PodTemplate", "Secret", "ServiceAccount"},
    "admissionregistration.k8s.io": {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "apps": {"ControllerRevision"},
    "autoscaling": {"HorizontalPodAutoscaler"},
    "certificates.k8s.io": {
        "CertificateSigningRequest",
        "ClusterTrustBundle",
        "PodCertificateRequest",
    },
    "coordination.k8s.io": {"Lease"},
    "discovery.k8s.io": {"EndpointSlice"},
    "events.k8s.io": {"Event"},
    "flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
    "lifecycle.k8s.io": {"Eviction", "EvictionRequest"},
    "networking.k8s.io": {"IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    "resource.k8s.io": {"ResourcePoolStatusRequest"},
    "storage.k8s.io": {"VolumeAttributesClass"},
    "storagemigration.k8s.io": {"StorageVersionMigration"},
}
"""Kinds of Kubernetes v1.35 to v1.37 that its scheduler ignores, by API group."""
GROUPING_IGNORED = "spec.scheduling is not read; write a PodGroup, and name it in spec.schedulingGroup of the template"
"""What is noted about Jobs that group their pods, as Kubernetes v1.37 has them behind a gate."""
LEFT_OUT_SHOWN = 5
"""How many skipped objects a note lists at most."""


def read_manifests(
    session: Session, files: Sequence[str], *, as_they_are: bool = False
) -> Expansion:
    """Read objects, and turn workloads into their pods unless `as_they_are` is true.

    Raises:
        WrongUsage: a file cannot be read, or a workload has no valid template.
        Refused: the server refuses a pod of a daemon set.
    """
    objects = kept_objects(session, read_objects(files))
    if as_they_are:
        return Expansion(objects, [None] * len(objects))
    expansion = expand(objects, lambda pod: nodes_for_daemon(session, pod))
    made = {origin.workload for origin in expansion.origins if origin is not None}
    for workload, item in _workloads(objects):
        if workload not in made:
            session.output.note(f"{workload}: no pods are made of it")
        elif _groups_its_pods(item):
            session.output.note(f"{workload}: {GROUPING_IGNORED}")
    return expansion


def kept_objects(session: Session, objects: Sequence[Object]) -> list[Object]:
    """Drop the Kubernetes objects that no placement depends on, and note which those are.

    Files often contain them. An unknown kind is kept, so that the server refuses a misspelled one.
    """
    kept = [item for item in objects if not _has_no_effect(item)]
    if len(kept) < len(objects):
        left_out = list(map(_told, filter(_has_no_effect, objects)))
        shown = ", ".join(left_out[:LEFT_OUT_SHOWN])
        more = (
            f" and {len(left_out) - LEFT_OUT_SHOWN} more" if len(left_out) > LEFT_OUT_SHOWN else ""
        )
        session.output.note(f"Left out, as no placement depends on them: {shown}{more}.")
    return kept


def _has_no_effect(item: Object) -> bool:
    group, slash, _ = str(item.get("apiVersion")).partition("/")
    return item.get("kind") in KINDS_WITHOUT_EFFECT.get(group if slash else "", ())


def _told(item: Object) -> str:
    metadata = item.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    identity = "/".join(str(named[key]) for key in ("namespace", "name") if key in named)
    return f"{item['kind']} {identity}"


@contextmanager
def told_by_manifest(expansion: Expansion) -> Iterator[None]:
    """Make refusals name the manifests' fields instead of those of the expanded objects."""
    try:
        yield
    except Refused as error:
        raise expansion.refused(error) from None


def nodes_for_daemon(session: Session, pod: Object) -> list[str]:
    """Return the nodes on which a daemon belongs, including those that only lack room."""
    request = {"pods": [pod], "dryRun": True, "explain": "Full"}
    [result] = session.client.post(session.client.path("placements"), request)["results"]
    explanation: Mapping[str, Any] | None = result.get("explanation")
    if explanation is None:
        raise Refused(
            {"code": result["outcome"], "detail": str(result.get("message") or "Refused.")}
        )
    filters: Mapping[str, Mapping[str, object]] = explanation["filters"]
    known: set[str] = set(explanation["feasible"]).union(*filters.values())
    return sorted(known.difference(*(filters.get(plugin, {}) for plugin in BELONGING)))


def _workloads(objects: Iterable[Object]) -> Iterable[tuple[str, Object]]:
    for item in objects:
        if (kind := workload_kind(item)) is not None:
            metadata = item.get("metadata") or {}
            name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
            yield f"{kind} {name}", item


def _groups_its_pods(workload: Object) -> bool:
    """Return whether a Job or a CronJob says how its pods are scheduled as a group."""
    spec = workload.get("spec") or {}
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    return bool(spec.get("scheduling") or job.get("scheduling"))
