"""Data sets record where data is stored, so that pods can refer to data instead of nodes."""

from service.model.core import names
from service.model.core.kind import KindSpec
from service.model.core.primitives import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Partial,
    Strict,
)
from service.model.core.type_rules import declared
from service.model.core.validators import list_of, text
from service.model.pods.pod import PodSpec


class DataDomains(Strict, frozen=True, kw_only=True):
    """Topology domains of one key."""

    key: str
    """Node label whose values divide the nodes into domains."""
    values: tuple[str, ...]
    """The domains that have the data, by their values of the label."""


class DataSetSpec(Strict, frozen=True, kw_only=True):
    """Where the data is: on all nodes that are named, and on all nodes of the domains."""

    nodes: tuple[str, ...] = ()
    """Names of nodes that have the data; a node need not be there yet."""
    domains: tuple[DataDomains, ...] = ()
    """Domains all of whose nodes have the data, or reach it as if they had it."""


class DataSetBody(Partial, frozen=True, kw_only=True):
    """The fields of a data set that scheduling reads."""

    spec: DataSetSpec
    """Where the data is."""


DATA_SET = KindSpec(
    kind="DataSet",
    plural="datasets",
    api_version="moorage.dev/v1alpha1",
    body=DataSetBody,
    fields={
        "spec": declared(
            DataSetSpec,
            {
                "nodes": list_of(text(names.dns_subdomain), values=True),
                "domains": list_of(
                    declared(
                        DataDomains,
                        {
                            "key": text(names.label_key),
                            "values": list_of(
                                text(names.label_value), at_least="must not be empty", values=True
                            ),
                        },
                    )
                ),
            },
        )
    },
    required=("spec",),
    description="Data sets: where data is, by nodes and domains. Pods of the namespace go there that "
    "name them (`dataAffinity`). Kubernetes has no such kind.",
    example={
        "metadata": {"name": "genomes", "namespace": "shop"},
        "spec": {
            "nodes": ["node-7"],
            "domains": [{"key": "topology.kubernetes.io/zone", "values": ["z1", "z2"]}],
        },
    },
)


def nodes_with(spec: DataSetSpec) -> NodeSelector:
    """Return a node selector that matches exactly the nodes with the data."""
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=spec.nodes)
    domains = [
        NodeSelectorRequirement(key=domain.key, operator="In", values=domain.values)
        for domain in spec.domains
    ]
    return NodeSelector(
        node_selector_terms=(
            *([NodeSelectorTerm(match_fields=(by_name,))] if spec.nodes else ()),
            *(NodeSelectorTerm(match_expressions=(requirement,)) for requirement in domains),
        )
    )


def data_sets_of(spec: PodSpec) -> frozenset[str]:
    """Return the names of the data sets that a pod spec refers to."""
    wanted = spec.data_affinity
    if wanted is None:
        return frozenset()
    required = [data.data_set for data in wanted.required]
    return frozenset((*required, *(data.data_set for data in wanted.preferred)))
