"""Specs of one owner's pods, which differ only in names: a family of specs.

The controller of StatefulSets names the claims of each pod after it, and writes the pod's name into
`hostname`, too, which scheduling does not read. The controller of DaemonSets writes the node's name
into the one required term of the node affinity:
`matchFields: [{key: metadata.name, operator: In, values: [NAME]}]`.
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
    """The bytes of a spec, divided around what looks like names in it.

    There is one part more than there are names.
    """

    parts: tuple[bytes, ...]
    names: tuple[bytes, ...]

    def filled(self, names: tuple[bytes, ...]) -> bytes:
        """Return the bytes of the spec with other names."""
        pieces = [self.parts[0]]
        for name, part in zip(names, self.parts[1:], strict=True):
            pieces += (name, part)
        return b"".join(pieces)

    def before_cut(self, at: int) -> int | None:
        """Return where a position would be if the names were empty, or None inside a name."""
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
    """Return the name of an object as a string that all pods share, or None if it is invalid."""
    return _name(text) if len(text) <= SUBDOMAIN_LENGTH_MAX else None


@lru_cache(maxsize=131_072)
def _name(text: bytes) -> str | None:
    name = text.decode(errors="replace")
    return None if dns_subdomain(name) else name


def split_claims(spec: PodSpec) -> tuple[PodSpec, tuple[str, ...]]:
    """Return a spec whose volumes name no claims, and the claims that they named, in their order.

    Volumes that scheduling does not read are left out.
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


def cut_claim_names(spec: bytes) -> ByteTemplate | None:
    """Divide a compact spec around the names that are written like those of claims and hosts."""
    if _CLAIM not in spec:
        return None
    # Between two names there is what stands there and the beginning of the member.
    pieces = _CLAIM_NAMED.split(spec)
    parts, names = [pieces[0]], pieces[2::3]
    for begin, rest in zip(pieces[1::3], pieces[3::3], strict=True):
        parts[-1] += begin
        parts.append(b'"' + rest)
    return ByteTemplate(tuple(parts), tuple(names))


def claim_names(cut: ByteTemplate, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the names around which a spec was cut that are names of claims."""
    members = zip(cut.parts, names, strict=False)
    return tuple(name for part, name in members if part.endswith(_CLAIM))


def cut_node_name(spec: bytes) -> ByteTemplate | None:
    """Divide a compact spec around the first name that is written like the controller does.

    The bytes alone do not show whether this is the name in the required term.
    """
    begin = spec.find(_NODE_NAMED)
    if begin < 0:
        return None
    begin += len(_NODE_NAMED)
    end = spec.find(_NODE_NAMED_END, begin)
    return ByteTemplate((spec[:begin], spec[end:]), (spec[begin:end],)) if end >= 0 else None


def names_node(spec: PodSpec) -> bool:
    """Return whether a single required term has a single field, which is the name of a node."""
    fields = _required_fields(spec)
    return fields is not None and len(fields) == 1 and fields[0].operator == "In"


def naming(spec: PodSpec, name: str) -> PodSpec:
    """Return the spec with another node's name; `names_node` must be true for it."""
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
