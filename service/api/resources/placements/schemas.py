"""Schemas of requests to place, bind, confirm, and evict pods, and of their answers."""

from typing import Annotated, Any, Literal

import msgspec

from service.api.resources.objects.types import (
    AnyKept,
    DeleteOptions,
    Namespace,
    Node,
    Pod,
    PodTemplate,
)
from service.model.cluster.cluster_config import ClusterConfig, PreemptionScope
from service.model.cluster.versions.known import VersionName
from service.model.core.primitives import Strict, Value
from service.scheduler.protocol.placements import Explain, PodRef, Policy, Preemption, Strategy


class PodIdentity(Value, frozen=True, kw_only=True):
    """Which pod is meant; all other metadata is ignored."""

    name: str | None = None
    """The pod's name; it has to be that of the path."""
    namespace: str | None = None
    """The pod's namespace; it has to be that of the path."""
    uid: str | None = None
    """The pod's `metadata.uid`; if it is another one by now, the pod is not bound."""


class Eviction(Strict, frozen=True, kw_only=True):
    """A Kubernetes policy/v1 Eviction; which pod is meant is in the path."""

    api_version: Literal["policy/v1", "policy/v1beta1"] | None = None
    """Kubernetes' version of `Eviction`."""
    kind: Literal["Eviction"] | None = None
    """The kind, which can only be `Eviction`."""
    metadata: PodIdentity | None = None
    """The pod; `uid` is not read here."""
    delete_options: DeleteOptions | None = None
    """Options of the eviction, of which only preconditions on the pod are read."""


class BindingTarget(Strict, frozen=True, kw_only=True):
    """The node to bind to."""

    api_version: Literal["v1"] | None = None
    """Kubernetes' version of `Node`."""
    kind: Literal["Node"] | None = None
    """Kind of the target, which can only be a node."""
    name: str
    """Name of the node."""
    namespace: Any = None
    """Ignored."""
    uid: Any = None
    """Ignored."""
    resource_version: Any = None
    """Ignored."""
    field_path: Any = None
    """Ignored."""


class Binding(Strict, frozen=True, kw_only=True):
    """A Kubernetes Binding, with `force`."""

    api_version: Literal["v1"] | None = None
    """Kubernetes' version of `Binding`."""
    kind: Literal["Binding"] | None = None
    """The kind, which can only be `Binding`."""
    target: BindingTarget
    """Where the pod goes."""
    metadata: PodIdentity | None = None
    """Which pod is meant."""
    force: bool | None = False
    """Whether to bind the pod even if a filter refuses the node."""


class BindingSeen(Strict, frozen=True, kw_only=True):
    """The binding of a pod as a node saw it."""

    uid: str
    """The pod's `metadata.uid`."""
    revision: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    """The revision that last changed the pod, its `metadata.resourceVersion` as a number."""
    node_name: str | None = None
    """The node that asks; if the pod is bound to another one, the binding is not confirmed."""


class BindingConfirmed(Value, frozen=True, kw_only=True):
    """A binding whose pod may be started."""

    revision: int
    """The cluster's revision at which all required rules of the pod hold."""
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str
    """The pod's `metadata.uid`."""
    node_name: str
    """The node that the pod is bound to."""


class PlacementRequest(Strict, frozen=True, kw_only=True):
    """What to place: exactly one of `pods`, `podRefs`, or `template` with `replicas`."""

    pods: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """Manifests; stored if they are new. Their `nodeName` is a wish, not a fact."""
    pod_refs: list[PodRef] | msgspec.UnsetType = msgspec.UNSET
    """Pods that are stored already."""
    template: PodTemplate | msgspec.UnsetType = msgspec.UNSET
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | msgspec.UnsetType = msgspec.UNSET
    """How many pods of the template: at most as many as the server takes in one request."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of them in one commit, or none."""
    on_unschedulable: Literal["Reject", "Queue"] = "Reject"
    """Queue keeps what cannot be placed now as pending pods."""
    dry_run: bool = False
    """Whether to answer as if the pods were placed, but change nothing."""
    explain: Explain = "None"
    """How much to explain."""
    preemption: Preemption = "Never"
    """Propose says of each pod that fits nowhere which pods of lower priority would have to leave
    which node. Evict marks them as to be stopped, of the namespaces where the caller may evict, and
    the pod waits for their room (`status.nominatedNodeName`). Not for members of groups."""
    preemption_scope: PreemptionScope = "Node"
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods on other
    nodes because of which a rule of anti-affinity or a hard spread constraint refuses the node."""
    compare: bool = False
    """Whether to tell with each pod what placements over several clusters compare of this cluster."""


class OverClustersRequest(Strict, frozen=True, kw_only=True):
    """What to place in which clusters: exactly one of `pods`, or `template` with `replicas`."""

    clusters: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The names of the clusters, in the caller's order; if absent, all where the caller may place all
    of these pods, by name."""
    strategy: Strategy = "LeastAllocated"
    """Of the clusters that the rules allow: LeastAllocated takes the one with the smallest share of cpu
    or memory requested; AsListed takes the first of `clusters`."""
    split_groups: bool = False
    """Whether pods that have to be placed all or none, and members of a PodGroup, may be placed in several
    clusters if no single one takes all of them: in all of these clusters, or in none."""
    pods: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """Manifests, each with a name."""
    template: PodTemplate | msgspec.UnsetType = msgspec.UNSET
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | msgspec.UnsetType = msgspec.UNSET
    """How many pods of the template."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of them in one cluster in one commit, or none; see `splitGroups`."""
    on_unschedulable: Literal["Reject", "Queue"] = "Reject"
    """Queue keeps what no cluster can place now as pending pods of the first cluster that the rules
    over clusters allow."""
    dry_run: bool = False
    """Whether to answer as if each pod were placed, by itself, but change nothing."""


class CapacityRequest(Strict, frozen=True, kw_only=True):
    """Pods of which it is asked how many fit."""

    template: PodTemplate
    """What the pods have in common."""
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """After how many pods to stop; 1000 if it is not given."""
    topology_key: str | None = None
    """The label of nodes by whose values the pods are counted, too."""
    explain: Explain = "None"
    """Summary and Full explain which rules and resources keep the next one from which nodes."""


class SimulationRequest(Strict, frozen=True, kw_only=True):
    """A cluster written out, and the pods to place in it: exactly one of `pod` and `place`."""

    config: ClusterConfig | None = None
    """Its settings."""
    namespaces: list[Namespace] | None = None
    """Its namespaces."""
    nodes: list[Node] | None = None
    """Its nodes."""
    objects: list[AnyKept] | None = None
    """What rules read besides, such as services; each has its own `apiVersion` and `kind`."""
    pods: list[Pod] | None = None
    """What is there already; those without `nodeName` are pending and not tried."""
    pod: Pod | msgspec.UnsetType = msgspec.UNSET
    """The one pod to place."""
    place: list[Pod] | msgspec.UnsetType = msgspec.UNSET
    """The pods to place in order, each seeing those before it."""
    policy: Policy = "BestEffort"
    """AllOrNothing places all of `place`, or none."""
    preemption: Literal["Never", "Propose"] = "Never"
    """Propose says of each pod that fits nowhere which pods of lower priority would have to leave
    which node. Members of groups get no proposals."""
    preemption_scope: PreemptionScope = "Node"
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods on other
    nodes because of which a rule of anti-affinity or a hard spread constraint refuses the node."""
    compare_to: VersionName | None = None
    """Another Kubernetes version: each result says which node its kube-scheduler chooses (`difference`), if
    another one. Each version places all pods in turn, so that later pods see its own choices."""
