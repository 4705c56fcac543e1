"""Changes of claims to devices by placements: allocating, reserving, releasing, and making them.

What Moorage has allocated or made says so, so that it ends nothing else: what others have allocated
is for them to take back. Clients write claims without knowing what these were given since, so what
an update does not mention of that stays.

Source: `pkg/controller/resourceclaim` and the allocator's result, v1.35.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from service.model.core.declared_manifest import (
    DeclaredManifest,
    edited,
    load_object,
    part_of,
)
from service.model.core.metadata import Json
from service.model.core.primitives import ObjectName
from service.model.core.strict_json import encode
from service.model.core.validators import entries_of, items_of
from service.model.devices.device import Grant, nodes_of
from service.model.devices.device_fields import ResourceClaimBody
from service.model.devices.device_kinds import RESOURCE_CLAIM

ALLOCATED_HERE = "moorage.dev/allocated-devices"
"""Annotation of a claim whose devices Moorage allocated."""
MADE_HERE = "moorage.dev/made-for-pod"
"""Annotation of a claim that Moorage made from a template: the uid of the pod."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim that was made for a pod: the name that the pod's spec has for it."""
BASE_LENGTH_MAX = 58
SUFFIX_LENGTH = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The names of generated objects end with characters of this, as in Kubernetes."""


def allocation_of(
    claim: DeclaredManifest, grants: Sequence[Grant], classes: Mapping[str, DeclaredManifest | None]
) -> Json:
    """Return the `status.allocation` of a claim that is given these devices.

    Args:
        claim: the claim.
        grants: the devices, in the order of its requests.
        classes: the classes that its requests name.
    """
    results = [_result(grant) for grant in grants]
    devices = entries_of(entries_of(_decoded(claim).get("spec")).get("devices"))
    config = _config(devices, grants, classes)
    allocation: Json = {"devices": {"results": results, **({"config": config} if config else {})}}
    selector = nodes_of(grants)
    if selector is not None:
        allocation["nodeSelector"] = msgspec.to_builtins(selector)
    return allocation


def _result(grant: Grant) -> Json:
    driver, pool, device = grant.device
    result: Json = {"request": grant.request, "driver": driver, "pool": pool, "device": device}
    return {**result, "adminAccess": True} if grant.admin_access else result


def _config(
    devices: Json, grants: Sequence[Grant], classes: Mapping[str, DeclaredManifest | None]
) -> list[Json]:
    """Return the configuration for drivers: each class's once, then the claim's."""
    met = dict.fromkeys((grant.request, grant.class_name) for grant in grants)
    configs: list[Json] = []
    for class_name in dict.fromkeys(name for _, name in met):
        requests = [request for request, name in met if name == class_name]
        device_class = classes.get(class_name)
        spec = {} if device_class is None else entries_of(_decoded(device_class).get("spec"))
        configs += [
            {"source": "FromClass", "requests": requests, **entries_of(config)}
            for config in items_of(spec.get("config"))
        ]
    known = {name for request, _ in met for name in (request, request.partition("/")[0])}
    for config in map(entries_of, items_of(devices.get("config"))):
        named = items_of(config.get("requests"))
        if not named or not known.isdisjoint(str(name) for name in named):
            configs.append({"source": "FromClaim", **config})
    count = len(items_of(devices.get("requests")))
    return [
        _for_all(config) if len(items_of(config.get("requests"))) == count else config
        for config in configs
    ]


def _for_all(config: Json) -> Json:
    """Return a configuration for every request without naming the requests."""
    return {name: value for name, value in config.items() if name != "requests"}


def claim_allocated(claim: DeclaredManifest, allocation: Json) -> DeclaredManifest:
    """Return a claim that was given devices."""

    def edit(fields: Json) -> None:
        part_of(fields, "status")["allocation"] = allocation
        part_of(part_of(fields, "metadata"), "annotations")[ALLOCATED_HERE] = "true"

    return edited(claim, edit)


def claim_reserved(claim: DeclaredManifest, pod_name: str, pod_uid: str) -> DeclaredManifest:
    """Return a claim that a pod may use."""
    if pod_uid in consumers_of(claim):
        return claim
    consumer = {"resource": "pods", "name": pod_name, "uid": pod_uid}

    def edit(fields: Json) -> None:
        status = part_of(fields, "status")
        status["reservedFor"] = [*items_of(status.get("reservedFor")), consumer]

    return edited(claim, edit)


def claim_released(claim: DeclaredManifest, pod_uid: str) -> DeclaredManifest:
    """Return a claim without this consumer; without any, it loses devices that Moorage gave it."""

    def edit(fields: Json) -> None:
        status = part_of(fields, "status")
        left = [
            consumer
            for consumer in items_of(status.get("reservedFor"))
            if entries_of(consumer).get("uid") != pod_uid
        ]
        status["reservedFor"] = left
        if not left:
            del status["reservedFor"]
        if not left and was_allocated_here(claim):
            status.pop("allocation", None)
            status.pop("devices", None)
            del part_of(part_of(fields, "metadata"), "annotations")[ALLOCATED_HERE]
        if not status:
            del fields["status"]

    return edited(claim, edit)


def claim_keeping_status(
    sent: DeclaredManifest, stored: DeclaredManifest | None
) -> DeclaredManifest:
    """Return a sent claim with the status of the stored one."""
    status = _decoded(stored).get("status") if stored is not None else None

    def edit(fields: Json) -> None:
        fields.pop("status", None)
        if status is not None:
            fields["status"] = status

    return edited(sent, edit)


def claim_keeping_allocation(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a claim with the devices that Moorage gave it, unless it has others."""
    old = entries_of(_decoded(stored).get("status"))
    new = entries_of(_decoded(sent).get("status"))
    if not was_allocated_here(stored):
        return sent
    if new.get("allocation") not in (None, old.get("allocation")):
        return sent
    known = consumers_of(stored)
    more = [
        consumer
        for consumer in items_of(new.get("reservedFor"))
        if entries_of(consumer).get("uid") not in known
    ]

    def edit(fields: Json) -> None:
        reserved = [*items_of(old.get("reservedFor")), *more]
        fields["status"] = {**old, **new, "allocation": old["allocation"], "reservedFor": reserved}
        annotations = part_of(part_of(fields, "metadata"), "annotations")
        for name in (ALLOCATED_HERE, MADE_HERE):
            if name in stored.kept.annotations:
                annotations[name] = stored.kept.annotations[name]

    return edited(sent, edit)


def claim_made(
    template: DeclaredManifest, name: str, pod_claim: str, pod: ObjectName, pod_uid: str
) -> DeclaredManifest:
    """Return the claim that is made from a template for a pod."""
    said = entries_of(_decoded(template).get("spec"))
    metadata = entries_of(said.get("metadata"))
    namespace, pod_name = pod
    own = {POD_CLAIM: pod_claim, MADE_HERE: pod_uid}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod_name,
        "uid": pod_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = {"labels": metadata["labels"]} if metadata.get("labels") else {}
    fields: Json = {
        "apiVersion": template.api_version,
        "kind": RESOURCE_CLAIM.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            **labels,
            "annotations": {**entries_of(metadata.get("annotations")), **own},
            "ownerReferences": [owner],
        },
        "spec": said.get("spec", {}),
    }
    return load_object(RESOURCE_CLAIM, encode(fields))


def names_for(pod_name: str, pod_claim: str, pod_uid: str) -> Iterable[str]:
    """Yield names for the claim that is made for a pod, each as long as the others are taken.

    They look like those of Kubernetes, but always are the same for one pod: so a placement that is
    decided again after a lost race makes the same claim.
    """
    base = f"{pod_name}-{pod_claim}-"[:BASE_LENGTH_MAX]
    for attempt in range(1_000):
        seed = hashlib.sha256(f"{pod_uid}/{pod_claim}/{attempt}".encode()).digest()
        suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in seed[:SUFFIX_LENGTH])
        yield base + suffix


def consumers_of(claim: DeclaredManifest) -> Mapping[str, str]:
    """Return the names of the pods that a claim is reserved for, by their uids."""
    return {consumer.uid: consumer.name for consumer in _body(claim).status.reserved_for}


def is_allocated(claim: DeclaredManifest) -> bool:
    """Return whether a claim has its devices."""
    return _body(claim).status.allocation is not None


def was_allocated_here(claim: DeclaredManifest) -> bool:
    """Return whether Moorage gave a claim its devices."""
    return is_allocated(claim) and ALLOCATED_HERE in claim.kept.annotations


def was_made_for(claim: DeclaredManifest, pod_uid: str) -> bool:
    """Return whether Moorage made a claim for this very pod."""
    return claim.kept.annotations.get(MADE_HERE) == pod_uid


def _body(claim: DeclaredManifest) -> ResourceClaimBody:
    body = claim.kept.body
    assert isinstance(body, ResourceClaimBody)
    return body


def _decoded(manifest: DeclaredManifest) -> Json:
    return msgspec.json.decode(manifest.render(), type=Json)
