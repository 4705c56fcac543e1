"""Changes to device claims by placements: creation, allocation, reservation, and release.

Annotations mark the claims that Moorage allocated or created, so that it only releases or deletes
these. Clients may write claims without knowing of an allocation made in the meantime, so an update
keeps every part of an allocation that it does not mention.

Source: `pkg/controller/resourceclaim` and the allocator's results, v1.35.
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
"""The annotation of a claim whose devices Moorage allocated."""
MADE_HERE = "moorage.dev/made-for-pod"
"""The annotation of a claim that Moorage created from a template; its value is the pod's uid."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim created for a pod; its value is the claim's name in the pod's spec."""
BASE_LENGTH_MAX = 58
SUFFIX_LENGTH = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of the random suffixes of generated names, as in Kubernetes."""


def allocation_of(
    claim: DeclaredManifest, grants: Sequence[Grant], classes: Mapping[str, DeclaredManifest | None]
) -> Json:
    """Return the `status.allocation` for a claim that gets these devices.

    Args:
        claim: the claim to allocate.
        grants: the devices, in the order of its requests.
        classes: the device classes that its requests name.
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
    """Return a claim's configuration for drivers: that of each class once, then its own."""
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
    """Return a configuration without its list of requests, so that it applies to all of them."""
    return {name: value for name, value in config.items() if name != "requests"}


def claim_allocated(claim: DeclaredManifest, allocation: Json) -> DeclaredManifest:
    """Return a copy of the claim with this allocation."""

    def edit(fields: Json) -> None:
        part_of(fields, "status")["allocation"] = allocation
        part_of(part_of(fields, "metadata"), "annotations")[ALLOCATED_HERE] = "true"

    return edited(claim, edit)


def claim_reserved(claim: DeclaredManifest, pod_name: str, pod_uid: str) -> DeclaredManifest:
    """Return a copy of the claim that is reserved for a pod, too."""
    if pod_uid in consumers_of(claim):
        return claim
    consumer = {"resource": "pods", "name": pod_name, "uid": pod_uid}

    def edit(fields: Json) -> None:
        status = part_of(fields, "status")
        status["reservedFor"] = [*items_of(status.get("reservedFor")), consumer]

    return edited(claim, edit)


def claim_released(claim: DeclaredManifest, pod_uid: str) -> DeclaredManifest:
    """Return a copy of the claim without a consumer; the last one releases Moorage's allocation."""

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
    """Return the claim as sent, with the status of the stored one."""
    status = _decoded(stored).get("status") if stored is not None else None

    def edit(fields: Json) -> None:
        fields.pop("status", None)
        if status is not None:
            fields["status"] = status

    return edited(sent, edit)


def claim_keeping_allocation(sent: DeclaredManifest, stored: DeclaredManifest) -> DeclaredManifest:
    """Return an update of a claim with the devices Moorage allocated, unless it names others."""
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
    """Create the claim for a pod from a template."""
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
    """Yield candidate names for the claim created for a pod; use the first one that is free.

    Names look like Kubernetes', but are deterministic per pod, so that a placement that is decided
    again after a lost race creates the same claim.
    """
    base = f"{pod_name}-{pod_claim}-"[:BASE_LENGTH_MAX]
    for attempt in range(1_000):
        seed = hashlib.sha256(f"{pod_uid}/{pod_claim}/{attempt}".encode()).digest()
        suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in seed[:SUFFIX_LENGTH])
        yield base + suffix


def consumers_of(claim: DeclaredManifest) -> Mapping[str, str]:
    """Return the names of the pods for which a claim is reserved, by uid."""
    return {consumer.uid: consumer.name for consumer in _body(claim).status.reserved_for}


def is_allocated(claim: DeclaredManifest) -> bool:
    """Return whether a claim has devices allocated."""
    return _body(claim).status.allocation is not None


def was_allocated_here(claim: DeclaredManifest) -> bool:
    """Return whether Moorage allocated the claim's devices."""
    return is_allocated(claim) and ALLOCATED_HERE in claim.kept.annotations


def was_made_for(claim: DeclaredManifest, pod_uid: str) -> bool:
    """Return whether Moorage created the claim for exactly this pod."""
    return claim.kept.annotations.get(MADE_HERE) == pod_uid


def _body(claim: DeclaredManifest) -> ResourceClaimBody:
    body = claim.kept.body
    assert isinstance(body, ResourceClaimBody)
    return body


def _decoded(manifest: DeclaredManifest) -> Json:
    return msgspec.json.decode(manifest.render(), type=Json)
