"""Finds contradictory claims and volumes, and doubly allocated devices."""

from collections import Counter
from collections.abc import Iterator

from service.engine import Cluster
from service.model.volumes.volume import PersistentVolume, PersistentVolumeClaim


def torn_bindings(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the subject and a description of each contradiction.

    A volume controller may record a binding in two steps, starting with the volume, so a volume may
    name a claim that does not name the volume yet.
    """
    for claim in cluster.volumes.claims.values():
        if problem := _of_claim(cluster, claim):
            yield f"PersistentVolumeClaim {claim.namespace}/{claim.name}", problem
    for volume in cluster.volumes.volumes.values():
        if problem := _of_volume(cluster, volume):
            yield f"PersistentVolume {volume.name}", problem
    yield from _devices_given_twice(cluster)


def _of_claim(cluster: Cluster, claim: PersistentVolumeClaim) -> str:
    if not claim.is_bound or claim.is_lost:
        return ""
    volume = cluster.volumes.volumes.get(claim.volume_name)
    if volume is None:
        return f"It is bound to the volume {claim.volume_name}, which is not there."
    if volume.claim is None or not volume.claim.names(claim):
        return f"It is bound to the volume {claim.volume_name}, which does not name it."
    return ""


def _of_volume(cluster: Cluster, volume: PersistentVolume) -> str:
    reference = volume.claim
    if reference is None:
        return ""
    claim = cluster.volumes.claims.get((reference.namespace, reference.name))
    if claim is None or not reference.names(claim) or not claim.is_bound:
        return ""
    if claim.volume_name != volume.name:
        named = f"{claim.namespace}/{claim.name}"
        return f"It is of the claim {named}, which is bound to {claim.volume_name}."
    return ""


def _devices_given_twice(cluster: Cluster) -> Iterator[tuple[str, str]]:
    claims = cluster.devices.claims.values()
    given = Counter(device for claim in claims for device in claim.devices)
    for device, times in sorted(given.items()):
        if times > 1:
            names = [
                f"{claim.namespace}/{claim.name}" for claim in claims if device in claim.devices
            ]
            yield f"device {device}", f"It was given to {', '.join(sorted(names))}."
