"""Specs that differ only in the claims that they name, like those of a StatefulSet's pods.

The controller of StatefulSets names the claims of each pod after it, and writes the pod's name into
`hostname`, too. Scheduling doesn't read that field.
"""

import re

from msgspec.structs import replace

from service.model.objects.pods_and_nodes import PodSpec
from service.model.pod_templates.spec_bytes_around_names import CutNames
from service.model.pods.volume_sources import PersistentVolumeClaimVolumeSource, Volume

_NAMED = re.compile(rb'("(?:claimName|hostname)":")([^"\\]*)"')
_CLAIM = b'"claimName":"'
_UNNAMED = PersistentVolumeClaimVolumeSource(claim_name="")


def claims_apart(spec: PodSpec) -> tuple[PodSpec, tuple[str, ...]]:
    """Return a spec whose volumes name no claims, and the claims that they named, in their order.

    Volumes of which scheduling reads nothing are left out.
    """
    if not spec.volumes:
        return spec, ()
    claims = [
        volume.persistent_volume_claim.claim_name
        for volume in spec.volumes
        if volume.persistent_volume_claim is not None
    ]
    volumes = tuple(_unnamed(volume) for volume in spec.volumes if _is_read(volume))
    return replace(spec, volumes=volumes), tuple(claims)


def _is_read(volume: Volume) -> bool:
    sources = (
        volume.persistent_volume_claim,
        volume.ephemeral,
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.azure_disk,
        volume.cinder,
        volume.portworx_volume,
        volume.iscsi,
        volume.rbd,
    )
    return any(source is not None for source in sources)


def _unnamed(volume: Volume) -> Volume:
    if volume.persistent_volume_claim is None:
        return volume
    return replace(volume, persistent_volume_claim=_UNNAMED)


def cut_claim_names(spec: bytes) -> CutNames | None:
    """Divide a compact spec around the names that are written like those of claims and hosts."""
    if _CLAIM not in spec:
        return None
    # Between two names there is what stands there and the beginning of the member.
    pieces = _NAMED.split(spec)
    parts, names = [pieces[0]], pieces[2::3]
    for begin, rest in zip(pieces[1::3], pieces[3::3], strict=True):
        parts[-1] += begin
        parts.append(b'"' + rest)
    return CutNames(tuple(parts), tuple(names))


def claim_names(cut: CutNames, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the names around which a spec was cut that are names of claims."""
    members = zip(cut.parts, names, strict=False)
    return tuple(name for part, name in members if part.endswith(_CLAIM))
