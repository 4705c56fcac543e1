"""The volume plugins: which nodes a pod's claims and disks allow, as Kubernetes v1.35 says it."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from tests.reference.resources import quantity
from tests.reference.selectors import is_empty_term, node_term_matches, selector_matches
from tests.reference.view import (
    Labels,
    Manifest,
    Verdict,
    View,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)

Rejections = dict[str, Verdict]
Volume = tuple[str, object]
"""A driver, and what it calls the volume."""

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
ZONE_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_SUCH_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOT_INSTALLED = "{} CSI driver is not installed on the node"
NO_ZONE = "node(s) had no available volume zone"
PROVISION = "provision"


class Use(NamedTuple):
    """A claim that a pod uses: its name, and whether it is that of an ephemeral volume."""

    name: str
    ephemeral: bool


def volumes_of(pod: Manifest) -> list[Manifest]:
    return spec_of(pod).get("volumes") or []


def uses_of(pod: Manifest) -> list[Use]:
    """The claims that a pod uses, in the order of its volumes."""
    uses = []
    for volume in volumes_of(pod):
        if volume.get("persistentVolumeClaim"):
            uses.append(Use(volume["persistentVolumeClaim"]["claimName"], ephemeral=False))
        elif volume.get("ephemeral") is not None:
            uses.append(Use(f"{name_of(pod)}-{volume['name']}", ephemeral=True))
    return uses


def objects_of(view: View, kind: str) -> list[Manifest]:
    return [each for each in view.objects if each["kind"] == kind]


def find(view: View, kind: str, name: str | None, namespace: str | None = None) -> Manifest | None:
    """The object of a kind, by name."""
    for each in objects_of(view, kind):
        if name_of(each) == name and (namespace is None or namespace_of(each) == namespace):
            return each
    return None


def claim_of(view: View, pod: Manifest, use: Use) -> Manifest | None:
    return find(view, "PersistentVolumeClaim", use.name, namespace_of(pod))


def claims_of(view: View, pod: Manifest) -> list[Manifest]:
    """Return the pod's claims that are there, each once."""
    found = (claim_of(view, pod, use) for use in dict.fromkeys(uses_of(pod)))
    return [claim for claim in found if claim is not None]


def annotations_of(manifest: Manifest) -> Labels:
    return manifest["metadata"].get("annotations") or {}


def class_name(manifest: Manifest) -> str:
    """Return the class name of a claim or a volume."""
    beta = annotations_of(manifest).get(BETA_CLASS)
    return (spec_of(manifest).get("storageClassName") or "") if beta is None else beta


def class_of(view: View, claim: Manifest) -> Manifest:
    """Empty if the class does not exist."""
    return find(view, "StorageClass", class_name(claim)) or {}


def volume_of(view: View, claim: Manifest) -> Manifest | None:
    return find(view, "PersistentVolume", spec_of(claim).get("volumeName") or "")


def is_bound(claim: Manifest) -> bool:
    return bool(spec_of(claim).get("volumeName")) and BOUND in annotations_of(claim)


def waits_for_consumer(view: View, claim: Manifest) -> bool:
    """Whether an unbound claim is bound only when a pod that uses it is placed."""
    mode = class_of(view, claim).get("volumeBindingMode")
    return mode == "WaitForFirstConsumer" and not spec_of(claim).get("volumeName")


# Before any node is looked at


def prefilter(view: View, pod: Manifest) -> tuple[str, str] | None:
    """The plugin that rejects a pod everywhere, and why."""
    if not uses_of(pod):
        return None
    for plugin, reject in (
        ("VolumeRestrictions", reject_missing),
        ("VolumeBinding", reject_unusable),
        ("VolumeZone", reject_lost_volume),
    ):
        reason = reject(view, pod)
        if reason is not None:
            return plugin, reason
    return None


def reject_missing(view: View, pod: Manifest) -> str | None:
    for use in uses_of(pod):
        if not use.ephemeral and claim_of(view, pod, use) is None:
            return f'persistentvolumeclaim "{use.name}" not found'
    return None


def reject_unusable(view: View, pod: Manifest) -> str | None:
    for use in uses_of(pod):
        reason = unusable(pod, use, claim_of(view, pod, use))
        if reason is not None:
            return reason
    unbound = [claim for claim in claims_of(view, pod) if not is_bound(claim)]
    if all(waits_for_consumer(view, claim) for claim in unbound):
        return None
    return "pod has unbound immediate PersistentVolumeClaims"


def unusable(pod: Manifest, use: Use, claim: Manifest | None) -> str | None:
    if claim is None:
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{waiting} "{use.name}"'
    if status_of(claim).get("phase") == "Lost":
        volume = spec_of(claim).get("volumeName") or ""
        return (
            f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        )
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    if use.ephemeral and not is_owner(pod, claim):
        names = f"{namespace_of(pod)}/{use.name}", f"{namespace_of(pod)}/{name_of(pod)}"
        return f"PVC {names[0]} was not created for pod {names[1]} (pod is not owner)"
    return None


def is_owner(pod: Manifest, claim: Manifest) -> bool:
    return any(
        owner.get("controller") and owner.get("uid") == pod["metadata"].get("uid")
        for owner in claim["metadata"].get("ownerReferences") or []
    )


def reject_lost_volume(view: View, pod: Manifest) -> str | None:
    for claim in lasting_claims(view, pod):
        name = spec_of(claim).get("volumeName")
        if name and volume_of(view, claim) is None:
            return f'persistentvolume "{name}" not found'
    return None


def lasting_claims(view: View, pod: Manifest) -> list[Manifest]:
    """The claims that are not those of ephemeral volumes."""
    found = (claim_of(view, pod, use) for use in uses_of(pod) if not use.ephemeral)
    return [claim for claim in found if claim is not None]


# VolumeRestrictions


def filter_restrictions(view: View, pod: Manifest) -> Rejections:
    exclusive = is_in_exclusive_use(view, pod)
    rejected = {}
    for name, others in view.pods_on.items():
        if any(disks_conflict(pod, other) for other in others):
            rejected[name] = Verdict([DISK], unresolvable=False)
        elif exclusive:
            rejected[name] = Verdict([IN_USE], unresolvable=False)
    return rejected


def disks_conflict(pod: Manifest, other: Manifest) -> bool:
    return any(same_disk(mine, theirs) for mine in volumes_of(pod) for theirs in volumes_of(other))


def same_disk(one: Manifest, other: Manifest) -> bool:
    for kind in ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"):
        mine, theirs = one.get(kind), other.get(kind)
        if not mine or not theirs:
            continue
        both_read = bool(mine.get("readOnly") and theirs.get("readOnly"))
        match kind:
            case "gcePersistentDisk":
                return mine["pdName"] == theirs["pdName"] and not both_read
            case "awsElasticBlockStore":
                return bool(mine["volumeID"] == theirs["volumeID"])
            case "iscsi":
                return mine["iqn"] == theirs["iqn"] and not both_read
            case "rbd":
                return same_rbd(mine, theirs) and not both_read
    return False


def same_rbd(one: Manifest, other: Manifest) -> bool:
    """A monitor in common, and the same pool, which is `rbd` where none is named, and image."""
    mine, theirs = ((each.get("pool") or "rbd", each["image"]) for each in (one, other))
    return mine == theirs and not set(one["monitors"]).isdisjoint(other["monitors"])


def is_in_exclusive_use(view: View, pod: Manifest) -> bool:
    """Whether a pod on any node uses a claim of this pod that only one pod may use."""
    exclusive = {
        name_of(claim)
        for claim in lasting_claims(view, pod)
        if "ReadWriteOncePod" in (spec_of(claim).get("accessModes") or [])
    }
    return any(
        not use.ephemeral and use.name in exclusive
        for other, _ in view.placed()
        if namespace_of(other) == namespace_of(pod)
        for use in uses_of(other)
    )


# NodeVolumeLimits

MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


def filter_limits(view: View, pod: Manifest) -> Rejections:
    reasons = {name: refuse_to_attach(view, pod, name) for name in view.nodes}
    return {
        name: Verdict([reason], unresolvable=False)
        for name, reason in reasons.items()
        if reason is not None
    }


def refuse_to_attach(view: View, pod: Manifest, node_name: str) -> str | None:
    """A driver that is missing comes before a limit; of several the first by name."""
    missing = missing_driver(view, pod, node_name)
    if missing is not None:
        return NOT_INSTALLED.format(missing)
    return TOO_MANY if exceeds_limit(view, pod, node_name) else None


def missing_driver(view: View, pod: Manifest, node_name: str) -> str | None:
    """A driver of the pod's volumes that has to be on their node, and is not there."""
    if view.settings.kubernetes in ("1.35", "1.36"):
        return None
    csi_node = find(view, "CSINode", node_name) or {}
    there = {driver["name"] for driver in spec_of(csi_node).get("drivers") or []}
    needed = {driver for driver, _ in attached_by(view, pod, node_name)}
    required = {
        name_of(driver)
        for driver in objects_of(view, "CSIDriver")
        if spec_of(driver).get("preventPodSchedulingIfMissing")
    }
    return min((needed & required) - there, default=None)


def exceeds_limit(view: View, pod: Manifest, node_name: str) -> bool:
    limits = limits_of(view, node_name)
    have = {
        each for other in view.pods_on[node_name] for each in attached_by(view, other, node_name)
    }
    new = attached_by(view, pod, node_name) - have
    have |= set(attachments_to(view, node_name))
    for driver in {driver for driver, _ in new} & limits.keys():
        count = sum(each[0] == driver for each in have) + sum(each[0] == driver for each in new)
        if count > limits[driver]:
            return True
    return False


def limits_of(view: View, node_name: str) -> dict[str, int]:
    """How many volumes of each driver a node takes, for those that have a limit."""
    csi_node = find(view, "CSINode", node_name) or {}
    return {
        driver["name"]: driver["allocatable"]["count"]
        for driver in spec_of(csi_node).get("drivers") or []
        if (driver.get("allocatable") or {}).get("count") is not None
    }


def attached_by(view: View, pod: Manifest, node_name: str) -> set[Volume]:
    """The volumes that count towards limits when a pod is on a node."""
    migrated = find(view, "CSINode", node_name) is not None
    found = [disk_of(volume, migrated=migrated) for volume in volumes_of(pod)]
    found += [claimed(view, claim, migrated=migrated) for claim in claims_of(view, pod)]
    return {each for each in found if each is not None}


def claimed(view: View, claim: Manifest, *, migrated: bool) -> Volume | None:
    volume = volume_of(view, claim)
    if volume is not None:
        return disk_of(spec_of(volume), migrated=migrated)
    provisioner = class_of(view, claim).get("provisioner")
    if provisioner in MIGRATED and not migrated:
        return None
    provisioner = MIGRATED.get(provisioner or "", provisioner)
    return (provisioner, (namespace_of(claim), name_of(claim))) if provisioner else None


def disk_of(source: Manifest, *, migrated: bool) -> Volume | None:
    """Return the disk of a volume of a pod, or of a persistent volume."""
    if source.get("csi") and "volumeHandle" in source["csi"]:
        return source["csi"]["driver"], source["csi"]["volumeHandle"]
    if migrated and source.get("awsElasticBlockStore"):
        return "ebs.csi.aws.com", source["awsElasticBlockStore"]["volumeID"]
    if migrated and source.get("gcePersistentDisk"):
        return "pd.csi.storage.gke.io", source["gcePersistentDisk"]["pdName"]
    if migrated and (source.get("azureDisk") or {}).get("kind", "").lower() == "managed":
        return "disk.csi.azure.com", source["azureDisk"]["diskURI"]
    if migrated and source.get("cinder"):
        return "cinder.csi.openstack.org", source["cinder"]["volumeID"]
    if migrated and source.get("portworxVolume"):
        return "pxd.portworx.com", source["portworxVolume"]["volumeID"]
    return None


def attachments_to(view: View, node_name: str) -> Iterator[Volume]:
    for attachment in objects_of(view, "VolumeAttachment"):
        spec = spec_of(attachment)
        name = (spec.get("source") or {}).get("persistentVolumeName")
        volume = find(view, "PersistentVolume", name)
        if spec["nodeName"] == node_name and volume is not None and spec_of(volume).get("csi"):
            yield spec["attacher"], spec_of(volume)["csi"]["volumeHandle"]


# VolumeBinding


class Finding(NamedTuple):
    """What comes of a pod's claims on one node."""

    reasons: list[str]
    bindings: dict[str, str]
    """Claim to volume, or to `PROVISION`, as far as there are no reasons."""


def filter_binding(view: View, pod: Manifest) -> Rejections:
    findings = {name: find_volumes(view, pod, node) for name, node in view.nodes.items()}
    return {
        name: Verdict(finding.reasons, unresolvable=True)
        for name, finding in findings.items()
        if finding.reasons
    }


def bindings_of(view: View, pod: Manifest, feasible: list[str]) -> dict[str, dict[str, str]] | None:
    """What would be bound on each feasible node; None for a pod without claims."""
    if not feasible or not uses_of(pod):
        return None
    return {name: find_volumes(view, pod, view.nodes[name]).bindings for name in feasible}


def find_volumes(view: View, pod: Manifest, node: Manifest) -> Finding:
    claims = claims_of(view, pod)
    bound = check_bound(view, [claim for claim in claims if is_bound(claim)], node)
    unbound = bind_or_provision(view, [claim for claim in claims if not is_bound(claim)], node)
    found = [*bound, *unbound.reasons]
    order = (AFFINITY, NO_VOLUME, NO_SPACE, NO_SUCH_VOLUME)
    return Finding([reason for reason in order if reason in found], unbound.bindings)


def check_bound(view: View, claims: list[Manifest], node: Manifest) -> list[str]:
    """The first claim that is wrong decides."""
    for claim in claims:
        volume = volume_of(view, claim)
        if volume is None:
            return [NO_SUCH_VOLUME]
        if not accepts(volume, node):
            return [AFFINITY]
    return []


def accepts(volume: Manifest, node: Manifest) -> bool:
    """Whether a volume's node affinity lets it be used on a node; its `matchFields` are ignored."""
    required = (spec_of(volume).get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(
        not is_empty_term(term or {}) and node_term_matches(without_fields(term), node)
        for term in required["nodeSelectorTerms"]
    )


def without_fields(term: Manifest) -> Manifest:
    return {"matchExpressions": term.get("matchExpressions") or []}


def bind_or_provision(view: View, claims: list[Manifest], node: Manifest) -> Finding:
    selected = [claim for claim in claims if SELECTED_NODE in annotations_of(claim)]
    if any(annotations_of(claim)[SELECTED_NODE] != name_of(node) for claim in selected):
        return Finding([NO_VOLUME], {})
    others = [claim for claim in claims if claim not in selected]
    matched = match_volumes(view, sorted(others, key=requested), node)
    bindings = {name: volume for name, volume in matched.items() if volume is not None}
    left = [claim for claim in sorted(others, key=requested) if matched[name_of(claim)] is None]
    for claim in [*selected, *left]:
        reason = refuse_to_provision(view, claim, node)
        if reason is not None:
            return Finding([reason], {})
        bindings[name_of(claim)] = PROVISION
    return Finding([], bindings)


def match_volumes(view: View, claims: list[Manifest], node: Manifest) -> dict[str, str | None]:
    """The volume of each claim, each volume for at most one."""
    chosen: dict[str, str | None] = {}
    for claim in claims:
        volumes = [
            volume
            for volume in objects_of(view, "PersistentVolume")
            if name_of(volume) not in chosen.values() and could_hold(volume, claim)
        ]
        chosen[name_of(claim)] = best_volume(view, volumes, claim, node)
    return chosen


def best_volume(view: View, volumes: list[Manifest], claim: Manifest, node: Manifest) -> str | None:
    """The one that was made for the claim, else the smallest; among equals the first by name."""
    own = [volume for volume in volumes if spec_of(volume).get("claimRef")]
    if own:
        first = min(own, key=name_of)
        return name_of(first) if accepts(first, node) else None
    free = [
        volume for volume in volumes if is_free_for(view, volume, claim) and accepts(volume, node)
    ]
    smallest = min(free, key=lambda volume: (capacity(volume), name_of(volume)), default=None)
    return None if smallest is None else name_of(smallest)


def could_hold(volume: Manifest, claim: Manifest) -> bool:
    """Whether a volume is of the class and kind that a claim asks for, and for nobody else."""
    mine, theirs = spec_of(volume), spec_of(claim)
    return (
        class_name(volume) == class_name(claim)
        and is_for(volume, claim)
        and capacity(volume) >= requested(claim)
        and (mine.get("volumeMode") or "Filesystem") == (theirs.get("volumeMode") or "Filesystem")
        and (mine.get("volumeAttributesClassName") or "")
        == (theirs.get("volumeAttributesClassName") or "")
        and not volume["metadata"].get("deletionTimestamp")
    )


def is_for(volume: Manifest, claim: Manifest) -> bool:
    ref = spec_of(volume).get("claimRef")
    if not ref:
        return True
    names = (ref.get("namespace"), ref.get("name")) == (namespace_of(claim), name_of(claim))
    return names and ref.get("uid") in (None, "", claim["metadata"].get("uid"))


def is_bound_to(view: View, volume: Manifest) -> bool:
    """Whether any claim is, even if the volume does not say so."""
    return any(
        is_bound(claim) and spec_of(claim)["volumeName"] == name_of(volume)
        for claim in objects_of(view, "PersistentVolumeClaim")
    )


def is_free_for(view: View, volume: Manifest, claim: Manifest) -> bool:
    selector = spec_of(claim).get("selector")
    modes = spec_of(volume).get("accessModes") or []
    return (
        not is_bound_to(view, volume)
        and status_of(volume).get("phase", "Available") == "Available"
        and (selector is None or selector_matches(selector, labels_of(volume)))
        and all(mode in modes for mode in spec_of(claim).get("accessModes") or [])
    )


def requested(claim: Manifest) -> Fraction:
    requests = (spec_of(claim).get("resources") or {}).get("requests") or {}
    return quantity(requests.get("storage", 0))


def capacity(volume: Manifest) -> Fraction:
    return quantity((spec_of(volume).get("capacity") or {}).get("storage", 0))


def refuse_to_provision(view: View, claim: Manifest, node: Manifest) -> str | None:
    storage_class = class_of(view, claim)
    if storage_class.get("provisioner", "") in NO_PROVISIONER:
        return NO_VOLUME
    terms = storage_class.get("allowedTopologies") or []
    if terms and not any(topology_matches(term, node) for term in terms):
        return NO_VOLUME
    return None if has_capacity(view, storage_class, claim, node) else NO_SPACE


def topology_matches(term: Manifest, node: Manifest) -> bool:
    expressions = term.get("matchLabelExpressions") or []
    return bool(expressions) and all(
        labels_of(node).get(each["key"]) in each["values"] for each in expressions
    )


def has_capacity(view: View, storage_class: Manifest, claim: Manifest, node: Manifest) -> bool:
    if not reports_capacity(view, storage_class):
        return True
    return bool(capacities_for(view, storage_class, claim, node))


def reports_capacity(view: View, storage_class: Manifest) -> bool:
    driver = find(view, "CSIDriver", storage_class.get("provisioner", ""))
    return driver is not None and bool(spec_of(driver).get("storageCapacity"))


def capacities_for(
    view: View, storage_class: Manifest, claim: Manifest, node: Manifest
) -> list[Manifest]:
    """What a volume for a claim can be made of on a node, by name."""
    found = [
        each
        for each in objects_of(view, "CSIStorageCapacity")
        if each["storageClassName"] == name_of(storage_class)
        and selector_matches(each.get("nodeTopology"), labels_of(node))
        and has_room(each, requested(claim))
    ]
    return sorted(found, key=lambda each: (namespace_of(each), name_of(each)))


def has_room(storage_capacity: Manifest, size: Fraction) -> bool:
    room = storage_capacity.get("maximumVolumeSize", storage_capacity.get("capacity"))
    return room is not None and quantity(room) >= size


def score_storage(view: View, pod: Manifest, feasible: list[str]) -> dict[str, int] | None:
    """None also where no node gets any score."""
    if view.settings.kubernetes in ("1.35", "1.36"):
        return None
    scores = {name: score_node_storage(view, pod, view.nodes[name]) for name in feasible}
    return scores if any(scores.values()) else None


def score_node_storage(view: View, pod: Manifest, node: Manifest) -> int:
    """The average over classes, of bound volumes if there are any, else of those to be made."""
    bindings = find_volumes(view, pod, node).bindings
    claims = [claim for claim in claims_of(view, pod) if name_of(claim) in bindings]
    made = [claim for claim in claims if bindings[name_of(claim)] == PROVISION]
    taken = [claim for claim in claims if claim not in made]
    of_class = storage_taken(view, taken, bindings) if taken else storage_made(view, made, node)
    if not of_class:
        return 0
    scores = [100 - min(utilization(*each), 100) for each in of_class.values()]
    return (2 * sum(scores) + len(scores)) // (2 * len(scores))


def utilization(requested: int, capacity: int) -> int:
    return 100 if not capacity or requested > capacity else requested * 100 // capacity


def storage_taken(
    view: View, claims: list[Manifest], bindings: dict[str, str]
) -> dict[str, tuple[int, int]]:
    """By class what claims ask for, and how large the volumes that they get are."""
    of_class: dict[str, tuple[int, int]] = {}
    for claim in claims:
        volume = find(view, "PersistentVolume", bindings[name_of(claim)])
        assert volume is not None
        name = spec_of(volume).get("storageClassName") or ""
        asked, there = of_class.get(name, (0, 0))
        of_class[name] = asked + ceil(requested(claim)), there + ceil(capacity(volume))
    return of_class


def storage_made(view: View, claims: list[Manifest], node: Manifest) -> dict[str, tuple[int, int]]:
    """By class what claims ask for, and the room of which the largest of them is made."""
    of_class: dict[str, tuple[int, int]] = {}
    selected = [claim for claim in claims if SELECTED_NODE in annotations_of(claim)]
    others = [claim for claim in claims if claim not in selected]
    for claim in [*selected, *sorted(others, key=requested)]:
        storage_class = class_of(view, claim)
        if not reports_capacity(view, storage_class):
            continue
        room = capacities_for(view, storage_class, claim, node)[0].get("capacity") or 0
        name = spec_of(claim).get("storageClassName") or ""
        asked = of_class.get(name, (0, 0))[0] + ceil(requested(claim))
        of_class[name] = asked, ceil(quantity(room))
    return of_class


# VolumeZone


def filter_zone(view: View, pod: Manifest) -> Rejections:
    claims = lasting_claims(view, pod)
    volumes = [volume_of(view, claim) for claim in claims if spec_of(claim).get("volumeName")]
    labels = [labels_of(volume) for volume in volumes if volume is not None]
    return {
        name: Verdict([NO_ZONE], unresolvable=True)
        for name, node in view.nodes.items()
        if not all(zone_matches(each, labels_of(node)) for each in labels)
    }


def zone_matches(volume: Labels, node: Labels) -> bool:
    if not any(key in node for key in ZONE_KEYS):
        return True
    return all(
        zone_label(node, key) in zones
        for key in ZONE_KEYS
        if key in volume and "" not in (zones := volume[key].split("__"))
    )


def zone_label(node: Labels, key: str) -> str | None:
    """A node's value, where that of a beta key may be given under the key that came after it."""
    return node.get(key, node.get(key.replace("failure-domain.beta", "topology")))
