"""Spec families: the specs of one owner's pods, which differ only in names.

The StatefulSet controller names each pod's claims after the pod, and sets `hostname` to the pod's
name, which scheduling does not read. The DaemonSet controller writes the node's name into the only
required term of the node affinity: `matchFields: [{key: metadata.name, operator: In, values:
[NAME]}]`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from service.model.core.names import SUBDOMAIN_LENGTH_MAX, dns_subdomain
from service.model.core.primitives import NodeSelector, NodeSelectorRequirement
from service.model.pods.pod import PodSpec
from service.model.pods.volume_sources import PersistentVolumeClaimVolumeSource, Volume

_CLAIM_NAMED = re.compile(rb'("(?:claimName|hostname)":")([^"\\]*)"')
_CLAIM = b'"claimName":"'
_UNNAMED = PersistentVolumeClaimVolumeSource(claim_name="")
_NODE_NAMED = b'"matchFields":[{"key":"metadata.name","operator":"In","values":["'
_NODE_NAMED_END = b'"]}]'


class ByteTemplate(NamedTuple):
    """The bytes of a spec, divided at everything that looks like a name that may vary.

    There is one more part than there are names.
    """

    parts: tuple[bytes, ...]
    names: tuple[bytes, ...]

    def filled(self, names: tuple[bytes, ...]) -> bytes:
        """Return the bytes of the spec with these names filled in."""
        pieces = [self.parts[0]]
        for name, part in zip(names, self.parts[1:], strict=True):
            pieces += (name, part)
        return b"".join(pieces)

    def before_cut(self, at: int) -> int | None:
        """Return a position as if all names were empty, or None if it lies inside a name."""
        begin = 0
        for name, part in zip(self.names, self.parts, strict=False):
            begin += len(part)
            if at <= begin:
                return at
            at -= len(name)
            if at < begin:
                return None
        return at


def known_name(text: bytes) -> str | None:
    """Decode an object's name to a cached string, shared by all pods, or return None if invalid."""
    return _name(text) if len(text) <= SUBDOMAIN_LENGTH_MAX else None


@lru_cache(maxsize=131_072)
def _name(text: bytes) -> str | None:
    name = text.decode(errors="replace")
    return None if dns_subdomain(name) else name


def split_claims(spec: PodSpec) -> tuple[PodSpec, tuple[str, ...]]:
    """Split a spec into one whose volumes name no claims, and the claims' names in order.

    Volumes that scheduling does not read are dropped.
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
        volume.image,
    )
    return any(source is not None for source in sources)


def _unnamed(volume: Volume) -> Volume:
    if volume.persistent_volume_claim is None:
        return volume
    return replace(volume, persistent_volume_claim=_UNNAMED)


def cut_claim_names(spec: bytes) -> ByteTemplate | None:
    """Divide a compact spec at all names in the positions of claim names and host names."""
    if _CLAIM not in spec:
        return None
    # Each piece between two names is the text between them, plus the start of the next member.
    pieces = _CLAIM_NAMED.split(spec)
    parts, names = [pieces[0]], pieces[2::3]
    for begin, rest in zip(pieces[1::3], pieces[3::3], strict=True):
        parts[-1] += begin
        parts.append(b'"' + rest)
    return ByteTemplate(tuple(parts), tuple(names))


def claim_names(cut: ByteTemplate, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those names of a divided spec that are names of claims."""
    members = zip(cut.parts, names, strict=False)
    return tuple(name for part, name in members if part.endswith(_CLAIM))


def cut_node_name(spec: bytes) -> ByteTemplate | None:
    """Divide a compact spec at the first node name in the form that the controller writes.

    The bytes alone do not show whether the name belongs to the required term.
    """
    begin = spec.find(_NODE_NAMED)
    if begin < 0:
        return None
    begin += len(_NODE_NAMED)
    end = spec.find(_NODE_NAMED_END, begin)
    return ByteTemplate((spec[:begin], spec[end:]), (spec[begin:end],)) if end >= 0 else None


def names_node(spec: PodSpec) -> bool:
    """Return whether the only required term has a single field, which is the name of a node."""
    fields = _required_fields(spec)
    return fields is not None and len(fields) == 1 and fields[0].operator == "In"


def naming(spec: PodSpec, name: str) -> PodSpec:
    """Return the spec with another node name; requires `names_node(spec)`."""
    affinity = spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    selector = _required(spec)
    assert affinity is not None
    assert node_affinity is not None
    assert selector is not None
    (term,) = selector.node_selector_terms
    assert term is not None
    (field,) = term.match_fields or ()
    other = replace(term, match_fields=(replace(field, values=(name,)),))
    required = replace(selector, node_selector_terms=(other,))
    return replace(
        spec,
        affinity=replace(
            affinity,
            node_affinity=replace(
                node_affinity, required_during_scheduling_ignored_during_execution=required
            ),
        ),
    )


def _required_fields(spec: PodSpec) -> tuple[NodeSelectorRequirement, ...] | None:
    selector = _required(spec)
    terms = selector.node_selector_terms if selector is not None else ()
    term = terms[0] if len(terms) == 1 else None
    return term.match_fields if term is not None else None


def _required(spec: PodSpec) -> NodeSelector | None:
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if node_affinity is None:
        return None
    return node_affinity.required_during_scheduling_ignored_during_execution
