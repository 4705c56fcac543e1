"""The registry of the kinds of objects that have paths of their own."""

from collections.abc import Mapping

from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import POD_LIST_PARAMETERS, Resource
from service.model.core.kind import KindSpec
from service.model.registry.kinds import DECLARED_KINDS

NODES = Resource(
    kind="Node",
    plural="nodes",
    namespaced=False,
    indexed=True,
    changed_by="observe",
    wire_type=object_types.Node,
    list_type=object_types.NodeList,
    example={
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "node-7",
            "labels": {
                "kubernetes.io/hostname": "node-7",
                "topology.kubernetes.io/zone": "eu-1a",
            },
        },
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    },
)

NAMESPACES = Resource(
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    changed_by="observe",
    wire_type=object_types.Namespace,
    list_type=object_types.NamespaceList,
    example={
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"team": "retail"}},
    },
)

POD_EXAMPLE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "containers": [
            {"name": "web", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app": "web"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        },
    },
}

EXPLANATION_EXAMPLE = {
    "prefilter": None,
    "filters": {"InterPodAffinity": {"node-1": ["node(s) didn't match pod anti-affinity rules"]}},
    "unresolvable": {},
    "feasible": ["node-7"],
    "scores": {"NodeAffinity": {"node-7": 100}, "NodeResourcesFit": {"node-7": 1}},
    "scoreSkipped": ["PodTopologySpread"],
    "total": {"node-7": 201},
    "best": ["node-7"],
    "message": None,
    "kubernetes": "1.37",
    "semantics": "Kubernetes",
}

PODS = Resource(
    kind="Pod",
    plural="pods",
    namespaced=True,
    indexed=True,
    changed_by="edit",
    stated_by="observe",
    wire_type=object_types.Pod,
    list_type=object_types.PodList,
    example=POD_EXAMPLE,
    list_parameters=POD_LIST_PARAMETERS,
)

QUOTAS = Resource(
    kind="ResourceQuota",
    plural="resourcequotas",
    namespaced=True,
    changed_by="configure",  # a limit that its tenant could raise would be pointless
    wire_type=object_types.ResourceQuota,
    list_type=object_types.ResourceQuotaList,
    computed=True,
    example={
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "shop"},
        "spec": {"hard": {"pods": "10", "requests.cpu": "4", "requests.memory": "8Gi"}},
        "status": {
            "hard": {"pods": "10", "requests.cpu": "4", "requests.memory": "8Gi"},
            "used": {"pods": "1", "requests.cpu": "500m", "requests.memory": "256Mi"},
        },
    },
)

POD_GROUPS = Resource(
    kind="PodGroup",
    plural="podgroups",
    namespaced=True,
    changed_by="edit",
    wire_type=object_types.PodGroup,
    list_type=object_types.PodGroupList,
    computed=True,
    example={
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"minMember": 3, "scheduleTimeoutSeconds": 60},
        "status": {
            "phase": "Pending",
            "members": 2,
            "scheduled": 0,
            "running": 0,
            "succeeded": 0,
            "failed": 0,
            "scheduleStartTime": "2026-05-04T10:00:00Z",
        },
    },
)


def _kept(declared: KindSpec) -> Resource:
    return Resource(
        kind=declared.kind,
        plural=declared.plural,
        namespaced=declared.namespaced,
        changed_by=declared.changed_by,
        wire_type=object_types.KEPT_TYPES[declared.kind],
        list_type=object_types.KEPT_LISTS[declared.kind],
        computed=declared.computed,
        example=_typed(declared, declared.example),
        examples={name: _typed(declared, example) for name, example in declared.examples.items()},
    )


def _typed(declared: KindSpec, example: Mapping[str, object]) -> dict[str, object]:
    return {"apiVersion": declared.api_version, "kind": declared.kind, **example}


RESOURCES = (NODES, NAMESPACES, PODS, QUOTAS, POD_GROUPS, *map(_kept, DECLARED_KINDS.values()))
