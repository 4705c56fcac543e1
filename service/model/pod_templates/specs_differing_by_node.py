"""Specs that differ only in the node that they name, like those of a DaemonSet's pods.

The controller of DaemonSets writes the name into the one required term of the node affinity:
`matchFields: [{key: metadata.name, operator: In, values: [NAME]}]`.
"""

from msgspec.structs import replace

from service.model.core.primitives import NodeSelector, NodeSelectorRequirement
from service.model.objects.pods_and_nodes import PodSpec
from service.model.pod_templates.spec_bytes_around_names import CutNames

_NAMED = b'"matchFields":[{"key":"metadata.name","operator":"In","values":["'
_NAMED_END = b'"]}]'


def cut_node_name(spec: bytes) -> CutNames | None:
    """Divide a compact spec around the first name that is written like the controller does.

    The bytes alone do not show whether this is the name in the required term.
    """
    begin = spec.find(_NAMED)
    if begin < 0:
        return None
    begin += len(_NAMED)
    end = spec.find(_NAMED_END, begin)
    return CutNames((spec[:begin], spec[end:]), (spec[begin:end],)) if end >= 0 else None


def names_node(spec: PodSpec) -> bool:
    """Whether a single required term has a single field, which is the name of a node."""
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
