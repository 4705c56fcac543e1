"""What the API takes and answers, as types of dictionaries.

`make client` writes this module from openapi/openapi.json, and a test fails if they differ. Fields
that these types do not name are kept by Moorage and are in the dictionaries all the same.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AWSElasticBlockStoreVolumeSource(TypedDict):
    """A disk of Amazon's cloud."""

    volumeID: str
    """Name of the disk."""
    readOnly: NotRequired[bool]
    """Whether it is only read, so that pods on one node may share it. Default: `false`."""


class AddNodes(TypedDict):
    """A node comes, like one that is there but empty."""

    op: Literal["AddNodes"]
    """Tells which of the types it is."""
    template: dict[str, Any]
    """The node. The new one is named `<name>-0`, which is its hostname label if the template
    has one.
    """
    count: int
    """How many come: one."""


class AddToleration(TypedDict):
    """The pod tolerates a taint."""

    op: Literal["AddToleration"]
    """Tells which of the types it is."""
    toleration: Toleration
    """What is to be added to `spec.tolerations`."""


class AdmissionPolicy(TypedDict):
    """An expression that has to be true of pods, else they are denied."""

    id: str
    """Name of the policy, which denials tell."""
    expression: str
    """A CEL expression that is true of what may be admitted. It can speak of `object`,
    `oldObject`, `namespaceObject` (each null where there is none) and `request`.
    """
    message: NotRequired[str | None]
    """What a denial says; null: the expression itself."""
    operations: NotRequired[list[Literal["Create", "Update"]]]
    """On which operations the policy is asked. Default: `["Create", "Update"]`."""
    namespaceSelector: NotRequired[LabelSelector | None]
    """The namespaces whose pods it is asked about; null: all."""


class Affinity(TypedDict):
    """Rules about where a pod may and should go."""

    nodeAffinity: NotRequired[NodeAffinity | None]
    """Rules about the labels of nodes."""
    podAffinity: NotRequired[PodAffinity | None]
    """Rules that draw the pod to domains that hold certain pods."""
    podAntiAffinity: NotRequired[PodAffinity | None]
    """Rules that keep the pod out of domains that hold certain pods."""


class AllocatedDevice(TypedDict):
    """What a driver says about a device that was given to a claim."""

    driver: NotRequired[str]
    """Name of its driver. Default: `""`."""
    pool: NotRequired[str]
    """Name of its pool. Default: `""`."""
    device: NotRequired[str]
    """Its name. Default: `""`."""
    conditions: NotRequired[list[DeviceCondition]]
    """Conditions of the device, among which may be those for which binding waits. Default:
    `[]`.
    """


class AllocationResult(TypedDict):
    """What a claim was given."""

    devices: NotRequired[DeviceResults]
    """The devices."""
    nodeSelector: NotRequired[NodeSelector | None]
    """The nodes that reach all the devices; absent: all do."""


class AppliedObject(TypedDict):
    """All that a manager wants of an object, in the form of its kind."""


class ApplyAnswer(TypedDict):
    """What a `List` changed."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    warnings: NotRequired[list[FieldWarning]]
    """Fields that are passed over; absent if there are none."""
    created: int
    """Objects that are new."""
    changed: int
    """Objects that were there and are different now."""
    unchanged: int
    """Objects that were there just so."""
    deleted: int
    """Objects that were removed."""
    generated: NotRequired[list[GeneratedName]]
    """The names of objects that had only a `generateName`; absent if there are none."""


class AuditList(TypedDict):
    """Rows of the audit, by chain and number."""

    metadata: AuditPlace
    """Where it goes on."""
    items: list[AuditRow]
    """The rows."""
    kind: NotRequired[Literal["AuditList"]]
    """What this is. Default: `"AuditList"`."""


AuditPlace = TypedDict(
    "AuditPlace",
    {
        "continue": "NotRequired[str | None]",
    },
)
"""Where the audit goes on."""


class AuditRow(TypedDict):
    """One row of the audit."""

    chain: int
    """The number of the cluster, 0 for what concerns the whole server."""
    number: int
    """Counts the rows of the chain from 1."""
    at: str
    """When it happened, by the database's clock, which does not run backwards within a
    chain.
    """
    principal: str
    """Who asked; `moorage` is the server itself."""
    address: str
    """Where the request came from."""
    operation: str
    """The operation of the API, by its id."""
    clusterId: int | None
    """The cluster's number, which no other cluster ever has; null if the row is about no
    cluster, or is a refusal.
    """
    cluster: str
    """The name that the cluster had; empty if the row is about no cluster."""
    revision: int | None
    """The last revision that the request made."""
    requestId: str
    """The `X-Request-ID` of the request and its answer."""
    status: int
    """200 if the request was committed; the HTTP status of the answer if it was refused."""
    requests: int
    """How many requests the row stands for."""
    previousHash: str
    """The hash of the row before it; empty in the first one."""
    hash: str
    """SHA-256 of all other fields: of their JSON array, the previous hash first."""


class AzureDiskVolumeSource(TypedDict):
    """A disk of Microsoft's cloud."""

    diskURI: str
    """Address of the disk."""
    kind: NotRequired[str]
    """Shared or Dedicated, for a blob disk of an account, or Managed. Default: `"Shared"`."""


class Binding(TypedDict):
    """A Kubernetes Binding, with `force`."""

    apiVersion: NotRequired[Literal["v1"] | None]
    """Kubernetes' version of `Binding`."""
    kind: NotRequired[Literal["Binding"] | None]
    """The kind, which can only be `Binding`."""
    target: BindingTarget
    """Where the pod goes."""
    metadata: NotRequired[PodIdentity | None]
    """Which pod is meant."""
    force: NotRequired[bool | None]
    """Whether to bind the pod even if a filter refuses the node. Default: `false`."""


class BindingChange(TypedDict):
    """What a change made of the binding of one pod; or a bookmark."""

    revision: int
    """The revision of the change; of a bookmark, the one up to which everything was sent."""
    action: Literal[
        "Bookmark", "Deleted", "Failed", "Placed", "Succeeded", "Terminating", "Unplaced"
    ]
    """What happened: the pod was Placed on the node; it is to be stopped (Terminating); it
    ended (Succeeded, Failed); it is on this node no longer (Unplaced); it was Deleted. A
    Bookmark is about no pod.
    """
    namespace: NotRequired[str]
    """Namespace of the pod; absent in bookmarks."""
    name: NotRequired[str]
    """Name of the pod; absent in bookmarks."""
    uid: NotRequired[str]
    """`metadata.uid` of the pod; absent in bookmarks."""
    nodeName: NotRequired[str]
    """The node that the pod is on; of an Unplaced or Deleted one, the node that it was on."""
    previousNodeName: NotRequired[str]
    """The node that the pod was on until now, where it has moved."""
    reason: NotRequired[str]
    """Why the pod is to be stopped or has ended, such as EvictionByEvictionAPI: the reason
    of its condition DisruptionTarget, else `status.reason`; absent if neither says.
    """


class BindingConfirmed(TypedDict):
    """A binding whose pod may be started."""

    revision: int
    """The cluster's revision at which all required rules of the pod hold."""
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str
    """The pod's `metadata.uid`."""
    nodeName: str
    """The node that the pod is bound to."""


class BindingMessage(TypedDict):
    """One message of a stream of bindings, as Server-Sent Events have them."""

    id: NotRequired[str]
    """The revision; absent in ERROR events."""
    event: Literal[
        "BOOKMARK", "DELETED", "ERROR", "FAILED", "PLACED", "SUCCEEDED", "TERMINATING", "UNPLACED"
    ]
    """The action of the record."""
    data: str
    """A BindingChange as JSON; of an ERROR event a Problem."""


class BindingSeen(TypedDict):
    """The binding of a pod as a node saw it."""

    uid: str
    """The pod's `metadata.uid`."""
    revision: int
    """The revision that last changed the pod, its `metadata.resourceVersion` as a number."""
    nodeName: NotRequired[str | None]
    """The node that asks; if the pod is bound to another one, the binding is not confirmed."""


class BindingTarget(TypedDict):
    """The node to bind to."""

    apiVersion: NotRequired[Literal["v1"] | None]
    """Kubernetes' version of `Node`."""
    kind: NotRequired[Literal["Node"] | None]
    """Kind of the target, which can only be a node."""
    name: str
    """Name of the node."""
    namespace: NotRequired[Any]
    """Ignored."""
    uid: NotRequired[Any]
    """Ignored."""
    resourceVersion: NotRequired[Any]
    """Ignored."""
    fieldPath: NotRequired[Any]
    """Ignored."""


class Bookmark(TypedDict):
    """What stands in place of an object in a bookmark."""

    metadata: BookmarkMeta
    """Up to where everything was sent."""


class BookmarkMeta(TypedDict):
    """Up to where everything was sent."""

    resourceVersion: str
    """Everything up to this revision was sent."""


class BookmarkWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Bookmark."""

    kind: Literal["Bookmark"]
    """Kind of the object."""
    object: Bookmark
    """The object as of this revision; of a deleted one the last state."""


class CELDeviceSelector(TypedDict):
    """An expression of CEL about one device."""

    expression: str
    """Has to be true of `device`, with its `driver`, `attributes` and `capacity`."""


class CSIDriver(TypedDict):
    """A Kubernetes CSIDriver. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: NotRequired[CSIDriverSpec]
    """What it can do."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"storage.k8s.io/v1"`."""
    kind: NotRequired[Literal["CSIDriver"]]
    """Kubernetes kind of the object. Default: `"CSIDriver"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class CSIDriverList(TypedDict):
    """Objects of the kind CSIDriver, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[CSIDriver]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["CSIDriverList"]]
    """Kubernetes kind of the object. Default: `"CSIDriverList"`."""


class CSIDriverSpec(TypedDict):
    """What a driver can do. Other fields are kept and returned as they are."""

    storageCapacity: NotRequired[bool]
    """Whether `CSIStorageCapacity` objects say where it has room. Default: `false`."""
    preventPodSchedulingIfMissing: NotRequired[bool]
    """Whether pods with volumes of the driver need a node on which it runs, from Kubernetes
    1.37 on. Default: `false`.
    """


class CSIDriverWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a CSIDriver."""

    kind: Literal["CSIDriver"]
    """Kind of the object."""
    object: CSIDriver
    """The object as of this revision; of a deleted one the last state."""


class CSINode(TypedDict):
    """A Kubernetes CSINode. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: NotRequired[CSINodeSpec]
    """The drivers that run there."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"storage.k8s.io/v1"`."""
    kind: NotRequired[Literal["CSINode"]]
    """Kubernetes kind of the object. Default: `"CSINode"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class CSINodeDriver(TypedDict):
    """A driver on a node."""

    name: str
    """Name of the driver."""
    allocatable: NotRequired[VolumeNodeResources | None]
    """How many volumes of it the node takes."""


class CSINodeList(TypedDict):
    """Objects of the kind CSINode, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[CSINode]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["CSINodeList"]]
    """Kubernetes kind of the object. Default: `"CSINodeList"`."""


class CSINodeSpec(TypedDict):
    """The drivers on a node."""

    drivers: NotRequired[list[CSINodeDriver]]
    """The drivers that run there. Default: `[]`."""


class CSINodeWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a CSINode."""

    kind: Literal["CSINode"]
    """Kind of the object."""
    object: CSINode
    """The object as of this revision; of a deleted one the last state."""


class CSIStorageCapacity(TypedDict):
    """A Kubernetes CSIStorageCapacity. Fields that scheduling does not read are kept and
    returned as they are.
    """

    storageClassName: str
    """Name of the class."""
    nodeTopology: NotRequired[LabelSelector | None]
    """Selects the nodes; absent: none."""
    capacity: NotRequired[str | int | float | None]
    """How much room there is."""
    maximumVolumeSize: NotRequired[str | int | float | None]
    """How large a volume may be; taken before `capacity`."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"storage.k8s.io/v1"`."""
    kind: NotRequired[Literal["CSIStorageCapacity"]]
    """Kubernetes kind of the object. Default: `"CSIStorageCapacity"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class CSIStorageCapacityList(TypedDict):
    """Objects of the kind CSIStorageCapacity, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[CSIStorageCapacity]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["CSIStorageCapacityList"]]
    """Kubernetes kind of the object. Default: `"CSIStorageCapacityList"`."""


class CSIStorageCapacityWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a CSIStorageCapacity."""

    kind: Literal["CSIStorageCapacity"]
    """Kind of the object."""
    object: CSIStorageCapacity
    """The object as of this revision; of a deleted one the last state."""


class CSIVolumeSource(TypedDict):
    """A volume of a CSI driver."""

    driver: str
    """Name of the driver."""
    volumeHandle: str
    """What the driver calls the volume."""


class Caller(TypedDict):
    """Who makes this request."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    groups: list[str]
    """Groups that the identity provider says it is in."""


class CapacityAnswer(TypedDict):
    """How many more pods like one fit, as everything is now."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    fits: int
    """So many pods got nodes, one after the other."""
    limited: bool
    """Whether the next one was refused; if not, the search ended before, and more may fit."""
    reason: str | None
    """Why the next one was refused: Unschedulable, or the rule that denies it a node, in
    CamelCase; null if it was not refused.
    """
    message: str | None
    """A sentence for people that says the same."""
    domains: NotRequired[dict[str, int]]
    """How many each domain of `topologyKey` got, if it got any; absent if no key was given."""
    withoutKey: NotRequired[int]
    """How many are on nodes without the key; absent if no key was given."""
    explanation: NotRequired[Any]
    """What keeps the next one from the nodes, as asked for with `explain`; absent for None,
    and if not the nodes refuse it.
    """


class CapacityRequest(TypedDict):
    """Pods of which it is asked how many fit."""

    template: PodTemplate
    """What the pods have in common."""
    limit: NotRequired[int | None]
    """After how many pods to stop; 1000 if it is not given."""
    topologyKey: NotRequired[str | None]
    """The label of nodes by whose values the pods are counted, too."""
    explain: NotRequired[Literal["Full", "None", "Summary"]]
    """Summary and Full explain which rules and resources keep the next one from which nodes.
    Default: `"None"`.
    """


class CapacityRequirements(TypedDict):
    """How much of a device's capacities a request needs."""

    requests: NotRequired[dict[str, str | int | float]]
    """The amount of each capacity. From Kubernetes v1.36 on, a claim with any is given no
    devices.
    """


class ChoiceDifference(TypedDict):
    """A pod that would get another node."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    nodeName: NotRequired[str | None]
    """The node that the pod is on; null if it is on none."""
    before: str | None
    """The node that the pod would get now; null if it fits nowhere."""
    after: str | None
    """The node that the pod would get then; null if it fits nowhere, or its `schedulerName`
    is no profile.
    """
    plugin: str | None
    """The plugin that contributes most to the difference; null if no plugin judges the nodes
    differently.
    """
    points: int | None
    """By how many weighted points the plugin's preference shifts toward the node `after`;
    null if the plugin refuses one of the nodes in only one of the cases.
    """


class CinderVolumeSource(TypedDict):
    """A disk of OpenStack."""

    volumeID: str
    """Name of the disk."""


class ClaimRef(TypedDict):
    """The claim that a volume is bound to, or kept for."""

    namespace: NotRequired[str]
    """Namespace of the claim. Default: `""`."""
    name: NotRequired[str]
    """Name of the claim. Default: `""`."""
    uid: NotRequired[str]
    """Its uid; absent: any claim of that name. Default: `""`."""


class Cluster(TypedDict):
    """A cluster: its configuration, where its log ends, and how much it holds."""

    name: str
    """Name of the cluster."""
    config: ClusterConfig
    """Its settings."""
    revision: int
    """Revision of its last change."""
    counts: ClusterCounts
    """How many objects it holds."""


class ClusterComparison(TypedDict):
    """What placements over several clusters compare, before the pod is placed."""

    stored: bool
    """Whether the pod is stored in this cluster already."""
    usedShare: float
    """The share of the cluster's cpu or memory that placed pods request, whichever is
    greater.
    """
    spread: list[SpreadOverClusters]
    """The constraints over clusters, in the order of the pod."""
    affine: bool | None
    """Whether this cluster has pods for all terms of required affinity over clusters; null
    if there are no such terms.
    """
    preferred: NotRequired[int]
    """What the pod's preferred affinity and anti-affinity over clusters add up to here: for
    each term its weight, negative for anti-affinity, times the pods that match. Default:
    `0`.
    """
    group: NotRequired[GroupComparison | None]
    """The pod group that the pod is in; null if it is in none."""
    reserved: NotRequired[ReservationComparison | None]
    """The group for which a node is reserved for the pod; null if none is."""


class ClusterConfig(TypedDict):
    """`GET/PATCH /v1/clusters/{cluster}`: `config`. Encoded, it shows every setting."""

    kubernetes: NotRequired[Literal["1.35", "1.36", "1.37"]]
    """The Kubernetes version whose kube-scheduler decides. A cluster keeps its version until
    another one is set; new clusters get the newest. Default: `"1.37"`.
    """
    kubernetesRules: NotRequired[Literal["Documented", "Implemented"]]
    """Which rules count where the code of this version's kube-scheduler departs from what
    Kubernetes documents: those that it implements, or the documented ones. Default:
    `"Implemented"`.
    """
    semantics: NotRequired[Literal["DesignDocuments", "Kubernetes"]]
    """Preset for the four settings that follow: one that is null takes the preset's choice.
    Default: `"Kubernetes"`.
    """
    emptyNodeSelectorTerm: NotRequired[Literal["MatchAll", "MatchNone"] | None]
    """What a node selector term without requirements matches."""
    requiredAffinityTerms: NotRequired[Literal["PerTerm", "SamePod"] | None]
    """Whether one pod must match all required affinity terms, or each term may have its own."""
    emptyNamespaceList: NotRequired[Literal["AllNamespaces", "OwnNamespace"] | None]
    """What an affinity term's `namespaces: []` means."""
    preferredTermWeight: NotRequired[Literal["PerPod", "PerTerm"] | None]
    """Whether a preferred term's weight counts for each matching pod, or once."""
    hardPodAffinityWeight: NotRequired[int]
    """Weight, 0 to 100, of placed pods' required affinity as a preference. Default: `1`."""
    symmetricPreferredAffinity: NotRequired[bool]
    """Whether placed pods' preferred affinity attracts the pods that it names. Default:
    `true`.
    """
    symmetricPreferredAntiAffinity: NotRequired[bool]
    """Whether placed pods' preferred anti-affinity repels the pods that it names. Default:
    `true`.
    """
    daemonNamespaces: NotRequired[list[str]]
    """Required anti-affinity is left out between pods in these namespaces and all other
    pods. Default: `["kube-system"]`.
    """
    restrictAllNamespacesAntiAffinity: NotRequired[bool]
    """Whether required anti-affinity against all namespaces is denied but for some keys.
    Default: `true`.
    """
    nodeTopologyKeys: NotRequired[list[str]]
    """The keys for which it is allowed, since their domains are single nodes. Default:
    `["kubernetes.io/hostname"]`.
    """
    trustedNamespaces: NotRequired[list[str]]
    """The namespaces whose pods may have it for every key. Default: `[]`."""
    defaultTopologySpread: NotRequired[Literal["List", "System"]]
    """Which constraints pods have that have none of their own: those of
    `defaultTopologySpreadConstraints`, or Kubernetes' built-in ones. Default: `"List"`.
    """
    defaultTopologySpreadConstraints: NotRequired[list[TopologySpreadConstraint]]
    """The constraints of pods that have none of their own. One without a `labelSelector`
    selects pods as the services and the owner of the pod do, and is left out if the pod
    has neither. Default: `[]`.
    """
    scoringStrategy: NotRequired[
        Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
    ]
    """How NodeResourcesFit scores. Default: `"LeastAllocated"`."""
    requestedToCapacityRatio: NotRequired[RequestedToCapacityRatio | None]
    """The shape for the strategy RequestedToCapacityRatio, which needs one."""
    profiles: NotRequired[list[Profile]]
    """Scheduler profiles by `schedulerName`; `default-scheduler` always exists. They can
    name only plugins that Kubernetes has in the version that the cluster follows.
    Default: `[]`.
    """
    deviceClaims: NotRequired[Literal["Allocate", "Ignore", "Refuse"]]
    """Whether pods that claim devices (`resourceClaims`) are given them, refused, or placed
    as if they claimed none. Default: `"Allocate"`.
    """
    volumes: NotRequired[Literal["Honor", "Ignore"]]
    """Whether the volumes of pods decide where they can go. Default: `"Honor"`."""
    placePendingPods: NotRequired[bool]
    """Whether pods without a node are placed as soon as that is possible. Default: `true`."""
    deviceSearchSteps: NotRequired[int]
    """How many devices are tried on each node, at most, to find those that a pod claims.
    Default: `5000`.
    """
    groupSearchSteps: NotRequired[int]
    """After how many steps the search for a group's placement is given up. Default: `10000`."""
    priorityClasses: NotRequired[dict[str, int | PriorityClassEntry]]
    """Priority classes by name, as a number or with what else a PriorityClass says; the two
    `system-…-critical` are built in.
    """
    limitedResources: NotRequired[list[LimitedResource]]
    """Resources that may be used only under a quota. Default: `[]`."""
    features: NotRequired[Features]
    """Features of the design documents that can be switched off."""
    policies: NotRequired[list[AdmissionPolicy]]
    """Expressions that have to be true of every pod that is created or changed. Default:
    `[]`.
    """
    opportunityCostBasis: NotRequired[Literal["Average", "Largest"]]
    """Whether exclusive pods without a node are charged for the largest domain or an average
    one. Default: `"Largest"`.
    """
    queuePreemption: NotRequired[Literal["Evict", "Never"]]
    """Whether a pending pod that fits nowhere has pods of lower priority evicted to make
    room. Default: `"Never"`.
    """
    queuePreemptionScope: NotRequired[Literal["Domains", "Node"]]
    """Whether these are only pods of the node that it gets, as in Kubernetes, or with
    Domains also pods on other nodes because of which a rule refuses the node. Default:
    `"Node"`.
    """
    affinityViolationGraceSeconds: NotRequired[int]
    """How long required-during-execution pod affinity may be violated before an eviction.
    Default: `30`.
    """
    antiAffinityVictim: NotRequired[Literal["LowestPriority", "RuleOwner"]]
    """Which pod is evicted if anti-affinity is violated. Default: `"RuleOwner"`."""
    evictionsPerMinute: NotRequired[int]
    """How many pods are evicted in a minute at most, so that one wrong label cannot empty a
    cluster. Default: `60`.
    """
    noExecuteTaints: NotRequired[Literal["Evict", "Ignore"] | None]
    """Whether pods that do not tolerate a NoExecute taint of their node are evicted; null:
    they are if `placePendingPods` is true, since otherwise somebody else runs the
    cluster.
    """
    defaultNotReadyTolerationSeconds: NotRequired[int]
    """How long pods stay on a node that is not ready if they say nothing of that taint.
    Default: `300`.
    """
    defaultUnreachableTolerationSeconds: NotRequired[int]
    """How long pods stay on a node that is unreachable if they say nothing of that taint.
    Default: `300`.
    """
    nodeConditions: NotRequired[Literal["Ignore", "Taint"] | None]
    """Whether nodes that are silent, not ready, under pressure, or without a network get
    Kubernetes' taints for that; null: they do if `placePendingPods` is true.
    """
    nodeMonitorGraceSeconds: NotRequired[int]
    """After how long without a report a node that has reported before counts as silent.
    Default: `40`.
    """
    nodeEvictionRate: NotRequired[float]
    """How many nodes of a zone get the taint that evicts, per second, while most of the zone
    is ready. Default: `0.1`.
    """
    secondaryNodeEvictionRate: NotRequired[float]
    """The rate for a large zone of which many nodes are not ready; a small one gets no such
    taint. Default: `0.01`.
    """
    unhealthyZoneThreshold: NotRequired[float]
    """The share of nodes that are not ready from which on a zone counts as partially
    disrupted. Default: `0.55`.
    """
    largeZoneNodes: NotRequired[int]
    """With more nodes than this a zone is large. Default: `50`."""
    deletedNodePods: NotRequired[Literal["Fail", "Keep"] | None]
    """Whether the pods of a deleted node end as Failed, or stay as they are; null: they end
    if `placePendingPods` is true.
    """
    orphanGraceSeconds: NotRequired[int]
    """How long after that; until then a new node of the name has the pods again. Default:
    `10`.
    """


class ClusterCounts(TypedDict):
    """How many objects a cluster holds."""

    nodes: int
    """Nodes in the cluster."""
    pods: int
    """Pods in the cluster, pending ones included."""
    pending: int
    """Pods without a node."""


class ClusterList(TypedDict):
    """All clusters, by name."""

    items: list[Cluster]
    """The clusters."""
    unreadable: NotRequired[list[str]]
    """Names of the clusters whose configuration in the database cannot be read. Absent if
    there are none.
    """
    kind: NotRequired[Literal["ClusterList"]]
    """What this is. Default: `"ClusterList"`."""


class ClusterPatch(TypedDict):
    """What PATCH of a cluster takes."""

    name: NotRequired[str]
    """Ignored: the name is in the path."""
    revision: NotRequired[int]
    """Ignored, as in what GET shows."""
    counts: NotRequired[dict[str, int]]
    """Ignored, as in what GET shows."""
    config: dict[str, Any]
    """The settings to change; null gives one its default."""


class ClusterRefusal(TypedDict):
    """Why one cluster did not take a pod."""

    cluster: str
    """Name of the cluster."""
    reason: NotRequired[str | None]
    """ClusterTopology: a rule over clusters; or the rule by which the cluster denies the
    pod, in CamelCase; null if it fits on no node.
    """
    message: str
    """A sentence for people that says the same."""


class ClusterSettings(TypedDict):
    """What PUT of a cluster takes."""

    name: NotRequired[str]
    """Ignored: the name is in the path."""
    revision: NotRequired[int]
    """Ignored, as in what GET shows."""
    counts: NotRequired[dict[str, int]]
    """Ignored, as in what GET shows."""
    config: NotRequired[ClusterConfig]
    """All its settings; one that is left out or null has its default, but a cluster that
    exists keeps its `kubernetes` and `kubernetesRules`. Without `config` it keeps all its
    settings.
    """


class ClusterWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Cluster."""

    kind: Literal["Cluster"]
    """Kind of the object."""
    object: WatchCluster
    """The object as of this revision; of a deleted one the last state."""


class ConstraintSkew(TypedDict):
    """How unevenly the pods of a topology spread constraint are spread."""

    namespace: str
    """Namespace of the pods that have the constraint."""
    topologyKey: str
    """The label of nodes whose values are the domains."""
    whenUnsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """Whether the constraint is required."""
    maxSkew: int
    """The skew that the constraint allows."""
    skew: int
    """The pods in the fullest eligible domain, less those in the emptiest one."""
    counted: int
    """How many pods the constraint counts, in all eligible domains together."""


class ConsumerReference(TypedDict):
    """A pod that may use what a claim was given."""

    resource: NotRequired[str]
    """What it is: pods. Default: `"pods"`."""
    name: NotRequired[str]
    """Its name. Default: `""`."""
    uid: NotRequired[str]
    """Its uid. Default: `""`."""


class Container(TypedDict):
    """Also an init container; one with `restart_policy` Always is a sidecar."""

    name: NotRequired[str]
    """Name of the container. Default: `""`."""
    image: NotRequired[str]
    """Image; a node that already holds it scores higher. Default: `""`."""
    ports: NotRequired[list[ContainerPort]]
    """Ports; only those with a `hostPort` matter to scheduling. Default: `[]`."""
    resources: NotRequired[ResourceRequirements | None]
    """Requests and limits."""
    restartPolicy: NotRequired[Literal["Always", "Never", "OnFailure"] | None]
    """Always makes an init container a sidecar."""
    restartPolicyRules: NotRequired[list[ContainerRestartRule]]
    """What happens when the container exits in a certain way. Default: `[]`."""
    volumeMounts: NotRequired[list[VolumeMount]]
    """The volumes that the container mounts; only their `bindMountOptions` matter to
    scheduling. Default: `[]`.
    """


class ContainerImage(TypedDict):
    """An image on a node."""

    names: NotRequired[list[str]]
    """Names by which the image is known. Default: `[]`."""
    sizeBytes: NotRequired[int]
    """Size of the image in bytes. Default: `0`."""


class ContainerPort(TypedDict):
    """A port of a container."""

    containerPort: int
    """Port inside the container."""
    hostPort: NotRequired[int]
    """Port taken on the node; 0 takes none. Default: `0`."""
    hostIP: NotRequired[str]
    """Address that `hostPort` is taken on; empty means all. Default: `""`."""
    protocol: NotRequired[Literal["SCTP", "TCP", "UDP"]]
    """Protocol of the port. Default: `"TCP"`."""


class ContainerRestartRule(TypedDict):
    """What happens when a container exits in a certain way."""

    action: NotRequired[str]
    """RestartAllContainers needs a node that declares the feature; see
    `status.declaredFeatures` of nodes. Default: `""`.
    """


class ContainerStatus(TypedDict):
    """What a running container was granted."""

    name: NotRequired[str]
    """Name of the container. Default: `""`."""
    resources: NotRequired[ResourceRequirements | None]
    """Requests and limits."""
    allocatedResources: NotRequired[dict[str, str | int | float] | None]
    """What the node has granted the container."""


class Counter(TypedDict):
    """An amount of a counter."""

    value: str | int | float
    """The quantity."""


class CounterConsumption(TypedDict):
    """What a device takes of a set of counters."""

    counterSet: str
    """Name of the set."""
    counters: NotRequired[dict[str, Counter]]
    """How much it takes, by name of the counter."""


class CounterSet(TypedDict):
    """Counters that the devices of a pool share."""

    name: str
    """Its name, unique in the pool."""
    counters: NotRequired[dict[str, Counter]]
    """How much there is, by name of the counter."""


class Culprit(TypedDict):
    """One thing that stands against a pod on one node."""

    plugin: str
    """The filter that refuses the node."""
    node: str
    """The node."""
    reason: str
    """The filter's reason in Kubernetes' words."""
    rule: str | None
    """The pod's own rule, by its place in the manifest or the configuration; null if it is a
    rule of the pods named here, or no rule of a pod at all.
    """
    pods: NotRequired[list[CulpritPod]]
    """Placed pods without which the rule would let the pod in, by namespace and name; the
    first 20.
    """
    otherPods: NotRequired[int]
    """How many more such pods there are. Default: `0`."""
    domain: NotRequired[CulpritDomain]
    """The domain that the rule is about; absent if it is about the node alone."""
    missing: NotRequired[dict[str, str]]
    """Resource to the quantity of it that the node lacks; absent if it lacks none."""


class CulpritDomain(TypedDict):
    """The topology domain of the node, as a rule counts it."""

    key: str
    """The topology key."""
    value: str | None
    """The node's value of it; null if the node does not have the label."""
    count: int
    """How many pods in the domain the rule is about."""
    skew: NotRequired[int]
    """The skew with the pod in the domain; absent if the rule is none of topology spread."""


class CulpritPod(TypedDict):
    """A placed pod because of which a rule refuses a node."""

    namespace: str
    """The pod's namespace."""
    name: str
    """The pod's name."""
    rule: str | None
    """The rule of this pod that keeps the other one out, by its place in this pod's
    manifest; null: the rule is the other pod's own.
    """


class DataAffinity(TypedDict):
    """Rules about the data that nodes have. Kubernetes has no such thing."""

    required: NotRequired[list[RequiredData]]
    """Data sets all of which the node has to have when the pod is placed. Default: `[]`."""
    preferred: NotRequired[list[PreferredData]]
    """Data sets that are weighed among the nodes that are feasible when the pod is placed.
    Default: `[]`.
    """


class DataDomains(TypedDict):
    """Topology domains of one key."""

    key: str
    """Node label whose values divide the nodes into domains."""
    values: list[str]
    """The domains that have the data, by their values of the label."""


class DataSet(TypedDict):
    """A Kubernetes DataSet. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: DataSetSpec
    """Where the data is."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"moorage.dev/v1alpha1"`."""
    kind: NotRequired[Literal["DataSet"]]
    """Kubernetes kind of the object. Default: `"DataSet"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class DataSetList(TypedDict):
    """Objects of the kind DataSet, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[DataSet]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["DataSetList"]]
    """Kubernetes kind of the object. Default: `"DataSetList"`."""


class DataSetSpec(TypedDict):
    """Where the data is: on all nodes that are named, and on all nodes of the domains."""

    nodes: NotRequired[list[str]]
    """Names of nodes that have the data; a node need not be there yet. Default: `[]`."""
    domains: NotRequired[list[DataDomains]]
    """Domains all of whose nodes have the data, or reach it as if they had it. Default:
    `[]`.
    """


class DataSetWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a DataSet."""

    kind: Literal["DataSet"]
    """Kind of the object."""
    object: DataSet
    """The object as of this revision; of a deleted one the last state."""


class DeleteOptions(TypedDict):
    """Kubernetes' DeleteOptions; all but `preconditions` is ignored."""

    preconditions: NotRequired[DeletePreconditions | None]
    """Preconditions on the object; if one does not hold, nothing is deleted."""


class DeletePreconditions(TypedDict):
    """What must be true of the object that is deleted."""

    uid: NotRequired[str | None]
    """Its `metadata.uid`."""
    resourceVersion: NotRequired[str | None]
    """Its `metadata.resourceVersion`."""


class DeletedCluster(TypedDict):
    """A cluster as it was before it was deleted."""

    name: str
    """Name of the cluster."""
    config: NotRequired[ClusterConfig]
    """Its settings. Absent if the configuration in the database could not be read."""
    revision: int
    """Revision of its last change."""
    counts: ClusterCounts
    """How many objects it held."""


class DeletionCommit(TypedDict):
    """One commit of a deletion of many objects."""

    revision: int
    """The revision of its last change."""
    deleted: int
    """How many objects it deleted."""


class DeletionResult(TypedDict):
    """What became of one object that was to be deleted."""

    namespace: str | None
    """Namespace of the object; null where its kind has none."""
    name: str
    """Name of the object."""
    uid: str
    """Its `metadata.uid`."""
    result: Literal["Conflict", "Deleted", "Forbidden"]
    """Conflict: it cannot be deleted now. Forbidden: the caller may not delete it."""
    revision: int | None
    """The revision of the deletion; null if the object is still there."""
    message: NotRequired[str | None]
    """Why it is still there."""


class Deletions(TypedDict):
    """What became of a deletion of many objects."""

    revision: int
    """The cluster's revision after the last commit."""
    deleted: int
    """How many objects were deleted."""
    remaining: int
    """How many more pass the filters and were not looked at."""
    commits: list[DeletionCommit]
    """Each commit that was made, in their order."""
    results: list[DeletionResult]
    """What became of each object, by namespace and name."""
    problem: NotRequired[Problem]
    """Why the server could not go on; absent if it could."""


class DeviceAttribute(TypedDict):
    """The value of an attribute; one of these."""

    int: NotRequired[int | None]
    """A number."""
    bool: NotRequired[bool | None]
    """True or false."""
    string: NotRequired[str | None]
    """A text."""
    version: NotRequired[str | None]
    """A semantic version."""


class DeviceCapacity(TypedDict):
    """How much a device has of something."""

    value: str | int | float
    """The quantity."""


class DeviceClaim(TypedDict):
    """Which devices are claimed. Other fields are kept and returned as they are."""

    requests: NotRequired[list[DeviceRequestBody]]
    """All of them have to be met. Default: `[]`."""
    constraints: NotRequired[list[DeviceConstraint]]
    """All of them have to hold. Default: `[]`."""
    config: NotRequired[list[Any]]
    """What drivers are told of the devices, perhaps of those for some of the requests.
    Default: `[]`.
    """


class DeviceClass(TypedDict):
    """A Kubernetes DeviceClass. Fields that scheduling does not read are kept and returned
    as they are.
    """

    spec: NotRequired[DeviceClassSpec]
    """Which devices are of it."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"resource.k8s.io/v1"`."""
    kind: NotRequired[Literal["DeviceClass"]]
    """Kubernetes kind of the object. Default: `"DeviceClass"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class DeviceClassList(TypedDict):
    """Objects of the kind DeviceClass, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[DeviceClass]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["DeviceClassList"]]
    """Kubernetes kind of the object. Default: `"DeviceClassList"`."""


class DeviceClassSpec(TypedDict):
    """Which devices are of a class. Other fields are kept and returned as they are."""

    selectors: NotRequired[list[DeviceSelector]]
    """All of them have to select a device. Default: `[]`."""
    config: NotRequired[list[Any]]
    """What drivers are told of devices that are allocated by the class. Default: `[]`."""


class DeviceClassWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a DeviceClass."""

    kind: Literal["DeviceClass"]
    """Kind of the object."""
    object: DeviceClass
    """The object as of this revision; of a deleted one the last state."""


class DeviceCondition(TypedDict):
    """A condition of a device that was given to a claim."""

    type: NotRequired[str]
    """What it is about. Default: `""`."""
    status: NotRequired[str]
    """True, False, or Unknown. Default: `""`."""


class DeviceConstraint(TypedDict):
    """A condition on the devices of several requests together."""

    requests: NotRequired[list[str]]
    """Names of the requests; none: all. Default: `[]`."""
    matchAttribute: NotRequired[str | None]
    """Full name of the attribute that has to be the same for all devices."""
    distinctAttribute: NotRequired[str | None]
    """Full name of an attribute that has to differ. A claim with such a condition is given
    no devices.
    """


class DeviceRequestBody(TypedDict):
    """A request for devices."""

    name: str
    """Its name, which containers and constraints use."""
    exactly: NotRequired[ExactDeviceRequest | None]
    """What is asked for."""
    firstAvailable: NotRequired[list[DeviceSubRequest]]
    """What is asked for, in order of preference. Default: `[]`."""


class DeviceResult(TypedDict):
    """A device that a claim was given."""

    request: str
    """Name of the request that it meets."""
    driver: str
    """Name of its driver."""
    pool: str
    """Name of its pool."""
    device: str
    """Its name."""
    adminAccess: NotRequired[bool]
    """Whether it stays free for others. Default: `false`."""
    bindingConditions: NotRequired[list[str]]
    """Conditions that have to be true of the device before pods may use it. Default: `[]`."""


class DeviceResults(TypedDict):
    """The devices that a claim was given."""

    results: NotRequired[list[DeviceResult]]
    """The devices. Default: `[]`."""


class DeviceSelector(TypedDict):
    """Selects devices."""

    cel: CELDeviceSelector
    """The expression that has to be true of a device."""


class DeviceSubRequest(TypedDict):
    """One of several requests of which the first that can be met is met."""

    name: str
    """Its name; allocations name it after that of the request, with a slash between."""
    deviceClassName: str
    """Name of the class of which the devices have to be."""
    selectors: NotRequired[list[DeviceSelector]]
    """All of them have to select a device, besides those of the class. Default: `[]`."""
    allocationMode: NotRequired[str]
    """ExactCount: as many devices as `count`; All: all that match. Default: `"ExactCount"`."""
    count: NotRequired[int]
    """How many devices. Default: `1`."""
    tolerations: NotRequired[list[DeviceToleration]]
    """The taints of devices that are tolerated; not read in Kubernetes v1.35. Default: `[]`."""
    capacity: NotRequired[CapacityRequirements | None]
    """How much of the capacities of a device is needed."""


class DeviceTaint(TypedDict):
    """Keeps claims that do not tolerate it from being given a device."""

    key: str
    """Name of the taint."""
    value: NotRequired[str]
    """Value of the taint. Default: `""`."""
    effect: NotRequired[Literal["", "NoExecute", "NoSchedule", "None"]]
    """NoSchedule, NoExecute: the device is given only to requests that tolerate the taint;
    None: nothing. Default: `""`.
    """


class DeviceToleration(TypedDict):
    """Which taints of devices a request tolerates."""

    key: NotRequired[str]
    """Name of the taints tolerated; empty: all. Default: `""`."""
    operator: NotRequired[Literal["", "Equal", "Exists"]]
    """Equal compares `value`, Exists does not. Default: `"Equal"`."""
    value: NotRequired[str]
    """Value of the taints tolerated. Default: `""`."""
    effect: NotRequired[Literal["", "NoExecute", "NoSchedule", "None"]]
    """Effect that is tolerated; empty: every effect. Default: `""`."""


class Domains(TypedDict):
    """Topology domains: the nodes that have one of the values for a label."""

    key: str
    """Label key of nodes."""
    values: list[str]
    """Values of the label."""


class DrainOptions(TypedDict):
    """How a node is drained."""

    whenUnschedulable: NotRequired[Literal["Evict", "Wait"]]
    """What becomes of a pod for which there is no other node now: it waits where it is, or
    is evicted all the same, as far as disruption budgets and rules of other pods allow
    it. Default: `"Wait"`.
    """


class DrainedNodes(TypedDict):
    """The nodes of a plan."""

    names: list[str]
    """Names of nodes; one that is not there is taken for empty."""


class DropRule(TypedDict):
    """The pod gives up one of its required rules."""

    op: Literal["DropRule"]
    """Tells which of the types it is."""
    path: str
    """Where the pod's manifest has the rule. A constraint on topology spread need not go: it
    is enough that it becomes `ScheduleAnyway`.
    """


class EphemeralVolumeSource(TypedDict):
    """A volume whose claim is made for the pod and named after it."""


class Event(TypedDict):
    """A Kubernetes Event: what happened to a pod, how often, and when."""

    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["Event"]]
    """Kubernetes kind of the object. Default: `"Event"`."""
    involvedObject: EventObject
    """The pod."""
    type: Literal["Normal", "Warning"]
    """Normal, or Warning where somebody may want to act."""
    reason: Literal["BindingForced", "Evicted", "EvictionBlocked", "FailedScheduling", "Scheduled"]
    """What happened, in one word."""
    message: str
    """What happened the last time, in a sentence; an eviction's names the rule."""
    count: int
    """How often it happened."""
    firstTimestamp: str
    """When it happened first, RFC 3339 in UTC."""
    lastTimestamp: str
    """When it happened last."""
    source: EventSource
    """Who tells of it."""


class EventList(TypedDict):
    """Events by namespace and name."""

    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Event]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["EventList"]]
    """Kubernetes kind of the object. Default: `"EventList"`."""


class EventObject(TypedDict):
    """What an event is about."""

    kind: NotRequired[Literal["Pod"]]
    """Kubernetes kind of the object. Default: `"Pod"`."""
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str
    """Identity of the one pod that is meant."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""


class EventSource(TypedDict):
    """Who tells of an event."""

    component: str
    """`moorage`."""


class Eviction(TypedDict):
    """A Kubernetes policy/v1 Eviction; which pod is meant is in the path."""

    apiVersion: NotRequired[Literal["policy/v1", "policy/v1beta1"] | None]
    """Kubernetes' version of `Eviction`."""
    kind: NotRequired[Literal["Eviction"] | None]
    """The kind, which can only be `Eviction`."""
    metadata: NotRequired[PodIdentity | None]
    """The pod; `uid` is not read here."""
    deleteOptions: NotRequired[DeleteOptions | None]
    """Options of the eviction, of which only preconditions on the pod are read."""


class ExactDeviceRequest(TypedDict):
    """How many devices of which class are asked for."""

    deviceClassName: str
    """Name of the class of which the devices have to be."""
    selectors: NotRequired[list[DeviceSelector]]
    """All of them have to select a device, besides those of the class. Default: `[]`."""
    allocationMode: NotRequired[str]
    """ExactCount: as many devices as `count`; All: all that match. Default: `"ExactCount"`."""
    count: NotRequired[int]
    """How many devices. Default: `1`."""
    tolerations: NotRequired[list[DeviceToleration]]
    """The taints of devices that are tolerated; not read in Kubernetes v1.35. Default: `[]`."""
    capacity: NotRequired[CapacityRequirements | None]
    """How much of the capacities of a device is needed."""
    adminAccess: NotRequired[bool]
    """Devices may be in use, and stay free for others; for namespaces that are labelled for
    it. Default: `false`.
    """


class Exemption(TypedDict):
    """A rule that was left out for a pod, and why."""

    rule: str
    """Where the manifest of the pod that has the rule states it."""
    ownerNamespace: str | None
    """The namespace of the placed pods that have the rule; null for a rule of the pod
    itself.
    """
    topologyKey: str
    """The key of the domains within which the rule would keep pods apart, or together."""
    reason: str
    """Why the rule was left out."""
    pods: int
    """How many placed pods the pod's own rule would be about, or how many have the rule."""
    nodes: int
    """How many nodes the rule would exclude."""


class Explanation(TypedDict):
    """The answer to `explain: Full`: what each plugin by itself says of every node."""

    prefilter: Prefilter | None
    """A plugin that rejected every node before they were filtered."""
    prefilterNodes: NotRequired[list[str]]
    """The nodes that a plugin's PreFilter left, by name; absent if no plugin named any."""
    filters: dict[str, dict[str, list[str]]]
    """The reasons by plugin and node, without the nodes that pass; the plugins in the order
    in which they filter.
    """
    unresolvable: dict[str, list[str]]
    """Nodes that no eviction could make feasible, with the plugins."""
    feasible: list[str]
    """Nodes that passed every filter, sorted."""
    scores: dict[str, dict[str, int]]
    """Normalised scores from 0 to 100, before weights, by plugin and node, of feasible
    nodes.
    """
    scoreSkipped: list[str]
    """Scoring plugins that had nothing to say of this pod."""
    total: dict[str, int]
    """Node to weighted sum of its scores."""
    best: list[str]
    """Nodes with the largest sum."""
    message: str | None
    """A sentence for people that says the same; null if there is nothing to say."""
    bindings: NotRequired[dict[str, dict[str, str]]]
    """Feasible node to claim to the volume that it would get there, or `provision` where
    that is still to be made. A caller who may not read all of the cluster sees `volume`
    in place of the name. Claims that have their volumes are left out; absent if the pod
    has no claims or no node is feasible.
    """
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    semantics: str
    """The preset of rules that was applied: Kubernetes or DesignDocuments."""
    exemptions: NotRequired[list[Exemption]]
    """The rules that were left out; absent if none was."""
    rulesFrom: NotRequired[RulesOrigin]
    """The annotation from which rules of the pod are; absent if all are in its spec."""
    culprits: NotRequired[list[Culprit]]
    """What stands against the pod on the node that was asked about, rule by rule; absent if
    no node was.
    """


class Extender(TypedDict):
    """A service that is asked over HTTP which nodes are left for a pod, and how good they
    are.
    """

    urlPrefix: str
    """The address to which `/` and a verb are added."""
    filterVerb: NotRequired[str]
    """The verb that filters; empty: it is not asked to filter. Default: `""`."""
    prioritizeVerb: NotRequired[str]
    """The verb that scores; empty: it is not asked to score. Default: `""`."""
    weight: NotRequired[int]
    """How much its scores count; needed with `prioritizeVerb`. Default: `0`."""
    enableHTTPS: NotRequired[bool]
    """Whether `urlPrefix` has to be an `https` address. Default: `false`."""
    tlsConfig: NotRequired[ExtenderTLSConfig | None]
    """How the extender is identified."""
    httpTimeout: NotRequired[str]
    """How long one call may take, such as `2s`; empty or zero: five seconds. Default: `""`."""
    nodeCacheCapable: NotRequired[bool]
    """Whether it knows the nodes, so that only their names are sent. Default: `false`."""
    managedResources: NotRequired[list[ExtenderManagedResource]]
    """It is asked only for pods that request or limit one of these; empty: for all. Default:
    `[]`.
    """
    ignorable: NotRequired[bool]
    """Whether pods are placed without it if it cannot be asked. Default: `false`."""


class ExtenderArgs(TypedDict):
    """The pod that kube-scheduler places, and its candidates."""

    Pod: dict[str, Any]
    """The whole pod; its `status` is not read."""
    Nodes: NotRequired[ExtenderNodes | None]
    """The candidates, if the extender is configured without `nodeCacheCapable`."""
    NodeNames: NotRequired[list[str] | None]
    """The names of the candidates, if it is configured with `nodeCacheCapable`."""


class ExtenderBindingArgs(TypedDict):
    """Which pod goes to which node."""

    PodName: str
    """Name of the pod."""
    PodNamespace: str
    """Namespace of the pod."""
    PodUID: str
    """The pod's `metadata.uid`."""
    Node: str
    """Name of the node."""


class ExtenderBindingResult(TypedDict):
    """Whether the pod is bound."""

    Error: NotRequired[str]
    """Why the pod is not bound; empty if it is. Default: `""`."""


class ExtenderFilterResult(TypedDict):
    """Which candidates are left, and why the others are not."""

    Nodes: NotRequired[ExtenderNodes | None]
    """The nodes that are left, as they were sent; null if names were sent."""
    NodeNames: NotRequired[list[str] | None]
    """The names of the nodes that are left; null if whole nodes were sent."""
    FailedNodes: dict[str, str]
    """The reasons against each node on which preemption could help."""
    FailedAndUnresolvableNodes: dict[str, str]
    """The reasons against each node on which it could not."""
    Error: NotRequired[str]
    """Why the pod cannot be judged; empty if it was. Default: `""`."""


class ExtenderManagedResource(TypedDict):
    """A resource that an extender manages."""

    name: str
    """Name of the resource."""
    ignoredByScheduler: NotRequired[bool]
    """May only be false: NodeResourcesFit judges every resource. Default: `false`."""


class ExtenderNodes(TypedDict):
    """A NodeList: whole nodes, as kube-scheduler knows them."""

    items: NotRequired[list[dict[str, Any]] | None]
    """The nodes; only their names are read, since Moorage judges its own nodes."""


class ExtenderPreemptionArgs(TypedDict):
    """The pod for which kube-scheduler makes room, and the nodes where it could."""

    Pod: dict[str, Any]
    """The whole pod; its `status` is not read."""
    NodeNameToVictims: NotRequired[dict[str, Victims | None] | None]
    """The nodes with their victims, if the extender is configured without
    `nodeCacheCapable`.
    """
    NodeNameToMetaVictims: NotRequired[dict[str, MetaVictims | None] | None]
    """The nodes with their victims, if it is configured with `nodeCacheCapable`."""


class ExtenderPreemptionResult(TypedDict):
    """The nodes that are left, each with the pods that would have to leave it."""

    NodeNameToMetaVictims: dict[str, MetaVictims]
    """The victims by node; nodes where nothing is gained are left out."""


class ExtenderTLSConfig(TypedDict):
    """How an extender at an `https` address is identified."""

    insecure: NotRequired[bool]
    """Whether its certificate is not verified. Default: `false`."""
    serverName: NotRequired[str]
    """The name that its certificate has to have; empty: the host of `urlPrefix`. Default:
    `""`.
    """
    caData: NotRequired[str]
    """PEM certificates, in base64, that have to have signed its own; empty: those that the
    server trusts. Default: `""`.
    """


class Features(TypedDict):
    """Which features are on."""

    PodAffinityNamespaceSelector: NotRequired[bool]
    """Whether terms of pod affinity and anti-affinity select namespaces by their labels
    (`namespaceSelector`), and new quotas may have the scope CrossNamespacePodAffinity.
    Default: `true`.
    """


class FieldError(TypedDict):
    """One wrong field of a request."""

    field: str
    """Path of the field in the request, such as `pods[3].spec.tolerations[0].key`."""
    message: str
    """What is wrong with it."""
    value: NotRequired[Any]
    """What was sent, where it is short enough to repeat."""


class FieldWarning(TypedDict):
    """A field of a manifest that is passed over, or a rule in it that has no effect."""

    field: str
    """Path of the field in the request, such as
    `pods[3].spec.volumes[0].persistentVolumeClaim`.
    """
    code: str
    """What sort of field it is, in CamelCase; `/warnings/<code>` has more about it."""
    message: str
    """What it means for the object."""


class GCEPersistentDiskVolumeSource(TypedDict):
    """A disk of Google's cloud."""

    pdName: str
    """Name of the disk."""
    readOnly: NotRequired[bool]
    """Whether it is only read, so that pods on one node may share it. Default: `false`."""


class GangSchedulingPolicy(TypedDict):
    """Pods get nodes together, or not at all."""

    minCount: int
    """So many pods have to have nodes before any of them may have one."""


class GeneratedName(TypedDict):
    """The name that an object was given which had only a `generateName`."""

    item: int
    """Its place in the `List`, which counts from 0."""
    kind: str
    """Its kind."""
    namespace: NotRequired[str]
    """Its namespace; absent if it has none. Default: `""`."""
    name: str
    """Its name."""


class Grant(TypedDict):
    """A role on one cluster or all, in one namespace or all."""

    role: str
    """Name of the role. A role unknown to this version (for example, from a newer one)
    grants nothing.
    """
    cluster: NotRequired[str | None]
    """Name of the cluster; absent: all."""
    namespace: NotRequired[str | None]
    """Name of the namespace; absent: all, and what is in none."""


class GrantSettings(TypedDict):
    """A role to give on one cluster or all, in one namespace or all."""

    role: Literal["admin", "editor", "observer", "orchestrator", "reader", "scheduler"]
    """What the role lets one do is told in the documentation."""
    cluster: NotRequired[str | None]
    """Name of the cluster; absent: all."""
    namespace: NotRequired[str | None]
    """Name of the namespace; absent: all, and what is in none."""


class Group(TypedDict):
    """A group that an identity provider names in its tokens."""

    name: str
    """Name of the group, as the provider's."""
    grants: list[Grant]
    """What those who are in it may do, and where."""
    createdAt: str
    """When it was made, RFC 3339 in UTC."""


class GroupComparison(TypedDict):
    """The pod group that the pod is in, as it is in this cluster."""

    name: str
    """The group's namespace and what it is called."""
    minMember: int
    """So many members have to have nodes before any of them may have one."""
    placed: int
    """How many members have a node here."""
    mayBeSplit: bool
    """Whether the group is known here, and its members need not be together in one domain of
    nodes.
    """


class GroupFailure(TypedDict):
    """Why a group was refused: the members that failed in the best attempt, and on which
    rule.
    """

    failed: list[PodRef]
    """The members that failed in the best attempt."""
    plugin: str | None
    """The rule on which they failed."""
    reason: NotRequired[str | None]
    """GroupSearchEnded: the search ended at `groupSearchSteps`, so there may be a placement."""
    message: str
    """A sentence for people that says the same; null if there is nothing to say."""


class GroupList(TypedDict):
    """All groups that have grants, by name."""

    items: list[Group]
    """The groups."""
    kind: NotRequired[str]
    """What this is. Default: `"GroupList"`."""


class HostPriority(TypedDict):
    """The score of one node."""

    Host: str
    """Name of the node."""
    Score: int
    """A score from 0 to 10; the best node has 10."""


class ISCSIVolumeSource(TypedDict):
    """A disk in the network, by iSCSI."""

    iqn: str
    """Name of the target."""
    readOnly: NotRequired[bool]
    """Whether it is only read, so that pods on one node may share it. Default: `false`."""


class ImageVolumeSource(TypedDict):
    """An image whose files a pod mounts."""

    reference: NotRequired[str]
    """Name of the image; a node that already holds it scores higher from Kubernetes 1.36 on.
    Default: `""`.
    """


JsonPatchOperation = TypedDict(
    "JsonPatchOperation",
    {
        "op": "Literal['add', 'copy', 'move', 'remove', 'replace', 'test']",
        "path": "str",
        "from": "NotRequired[str | None]",
        "value": "NotRequired[Any]",
    },
)
"""One step of a JSON patch (RFC 6902)."""


class KeptBounds(TypedDict):
    """What a plan may cost, whatever its goal is."""

    evictionsMax: NotRequired[int | None]
    """How many pods may be evicted for the plan from its beginning to its end; absent: any
    number.
    """
    protect: NotRequired[ProtectedPods | None]
    """The pods that are not evicted for the plan."""


class KeptGoal(TypedDict):
    """What a plan is to reach."""

    type: Literal["Drain", "Rebalance", "Replace"]
    """Drain: have all pods but daemons and static pods leave nodes that take no new ones.
    Replace: have pods of a template in place of those that are selected, wave by wave.
    Rebalance: move placed pods, wave by wave, until no move makes the objectives better.
    """
    nodes: NotRequired[DrainedNodes | None]
    """Drain: the nodes to be emptied."""
    namespace: NotRequired[str | None]
    """Replace: the namespace of the pods, old and new. Rebalance: that of the pods that may
    move; absent: all.
    """
    selector: NotRequired[LabelSelector | None]
    """Replace: a selector of the labels of the pods that are replaced; the new ones may have
    them, too. Rebalance: a selector of those that may move; absent: all.
    """
    owner: NotRequired[PodOwner | None]
    """Replace: who manages the pods that are replaced."""
    template: NotRequired[dict[str, Any] | None]
    """Replace: what the new pods have in common, a pod. They are named `<name>-0`,
    `<name>-1`, …; a pod of such a name that says the same is one of them.
    """
    replicas: NotRequired[int | None]
    """Replace: how many new pods."""
    maxSurge: NotRequired[int | str | None]
    """Replace: how many pods beyond `replicas` there may be, or how much of them; absent:
    25%. Percentages are rounded up.
    """
    maxUnavailable: NotRequired[int | str | None]
    """Replace: how many of the `replicas`, or how much of them, may be missing or not ready;
    absent: 25%. Percentages are rounded down. If both come to nothing, it is one pod.
    """
    progressDeadlineSeconds: NotRequired[int | None]
    """Replace: after how long without progress the status says so; absent: 600."""
    objectives: NotRequired[
        list[Literal["Fragmentation", "Packing", "Preferences", "Skew", "Spread", "Violations"]]
        | None
    ]
    """Rebalance: what is to become less, the most important first, as for a plan that is
    only made.
    """
    resource: NotRequired[str | None]
    """Rebalance: the resource of Fragmentation, which needs one."""
    block: NotRequired[int | str | None]
    """Rebalance: how much of the resource pods take at once, a quantity; what is free in no
    whole block is of no use. Absent: what is free on nodes of which some is in use.
    """
    movesMax: NotRequired[int | None]
    """Rebalance: how many pods may move in all; absent: any number."""


class LabelSelector(TypedDict):
    """`None` in place of a selector matches nothing, an empty selector everything."""

    matchLabels: NotRequired[dict[str, str] | None]
    """Labels that must be there with exactly these values."""
    matchExpressions: NotRequired[list[LabelSelectorRequirement] | None]
    """Requirements that all have to hold."""


class LabelSelectorRequirement(TypedDict):
    """One requirement on a label."""

    key: str
    """Label key."""
    operator: Literal["DoesNotExist", "Exists", "In", "NotIn"]
    """How the label is compared with `values`."""
    values: NotRequired[list[str] | None]
    """Values to compare with; none for Exists and DoesNotExist."""


class Lease(TypedDict):
    """The lease of a node, as a coordination.k8s.io/v1 Lease."""

    apiVersion: NotRequired[Literal["coordination.k8s.io/v1"] | None]
    """Version of the kind."""
    kind: NotRequired[Literal["Lease"] | None]
    """Kind of the object."""
    metadata: NotRequired[LeaseMeta | None]
    """Identity of the lease."""
    spec: NotRequired[LeaseSpec | None]
    """What the lease says."""


class LeaseMeta(TypedDict):
    """Identity of a node's lease."""

    name: NotRequired[str | None]
    """Name of the node."""
    namespace: NotRequired[str | None]
    """Namespace that Kubernetes keeps leases of nodes in, `kube-node-lease`."""


class LeaseSpec(TypedDict):
    """What a node's lease says; of one that is sent, nothing is read."""

    holderIdentity: NotRequired[str | None]
    """Name of the node."""
    leaseDurationSeconds: NotRequired[int | None]
    """After how long without another report the node counts as silent."""
    renewTime: NotRequired[str | None]
    """When the node last reported, RFC 3339, on the clock of the database."""


class LimitRange(TypedDict):
    """A Kubernetes LimitRange. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: NotRequired[LimitRangeSpec]
    """What holds for the objects of the namespace."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["LimitRange"]]
    """Kubernetes kind of the object. Default: `"LimitRange"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class LimitRangeItem(TypedDict):
    """Defaults and bounds for one type of objects."""

    type: str
    """Container, Pod or PersistentVolumeClaim."""
    default: NotRequired[dict[str, str | int | float] | None]
    """The limits of containers that state none."""
    defaultRequest: NotRequired[dict[str, str | int | float] | None]
    """The requests of containers that state none."""
    min: NotRequired[dict[str, str | int | float] | None]
    """The least that may be requested."""
    max: NotRequired[dict[str, str | int | float] | None]
    """The highest limit."""
    maxLimitRequestRatio: NotRequired[dict[str, str | int | float] | None]
    """How many times the request a limit may be at most."""


class LimitRangeList(TypedDict):
    """Objects of the kind LimitRange, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[LimitRange]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["LimitRangeList"]]
    """Kubernetes kind of the object. Default: `"LimitRangeList"`."""


class LimitRangeSpec(TypedDict):
    """What holds for the objects of the namespace."""

    limits: NotRequired[list[LimitRangeItem]]
    """Defaults and bounds, by the type of objects. Default: `[]`."""


class LimitRangeWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a LimitRange."""

    kind: Literal["LimitRange"]
    """Kind of the object."""
    object: LimitRange
    """The object as of this revision; of a deleted one the last state."""


class LimitedResource(TypedDict):
    """A resource that pods in these scopes may use only where a quota of the scope covers
    them.
    """

    resource: str
    """The resource, such as `pods`."""
    matchScopes: NotRequired[list[MatchScope]]
    """Each of these that a pod is in needs a quota of that scope. Default: `[]`."""


class LineResult(TypedDict):
    """What became of one line of an NDJSON `apply`, or of one report; they count from 1."""

    line: int
    """Number of the line or report."""
    kind: str | None
    """Kind of the object; null if it cannot be read."""
    namespace: str | None
    """Namespace of the object; null if it has none, or it cannot be read."""
    name: str | None
    """Name of the object; null if it cannot be read."""
    result: Literal[
        "Changed",
        "Conflict",
        "Created",
        "Deleted",
        "Denied",
        "Forbidden",
        "Invalid",
        "NotFound",
        "Unchanged",
    ]
    """What became of it."""
    revision: int | None
    """The revision of the line's change, or the one that last changed the object if none was
    needed.
    """
    errors: NotRequired[list[FieldError]]
    """Why nothing became of it."""
    warnings: NotRequired[list[FieldWarning]]
    """Fields of the line's object that are passed over; absent if there are none."""
    generated: NotRequired[bool]
    """Whether the name was made of a `generateName`; absent if it was not."""


class LinesAnswer(TypedDict):
    """What became of some lines of an NDJSON `apply`, or of some reports, in their order."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    results: list[LineResult]
    """What became of each."""


ListMeta = TypedDict(
    "ListMeta",
    {
        "resourceVersion": "str",
        "continue": "NotRequired[str | None]",
    },
)
"""Which state a list shows, and where it goes on."""


LowerRequest = TypedDict(
    "LowerRequest",
    {
        "op": "Literal['LowerRequest']",
        "resource": "str",
        "from": "str",
        "to": "str",
    },
)
"""The pod requests less of a resource, in all its containers together."""


class MatchScope(TypedDict):
    """A quota scope that a pod must be in; PriorityClass compares with `values`."""

    scopeName: str
    """Name of the quota scope."""
    operator: NotRequired[Literal["DoesNotExist", "Exists", "In", "NotIn"]]
    """How the scope is compared; only PriorityClass takes In and NotIn. Default: `"Exists"`."""
    values: NotRequired[list[str]]
    """Values to compare with; none for Exists and DoesNotExist. Default: `[]`."""


class MergePatch(TypedDict):
    """The fields to change, in the object's own shape; null removes one (RFC 7396)."""


class MetaPod(TypedDict):
    """A pod, by its uid alone."""

    UID: str
    """The pod's `metadata.uid`."""


class MetaVictims(TypedDict):
    """The pods that would have to leave one node, by their uids."""

    Pods: NotRequired[list[MetaPod] | None]
    """The victims, the most important first."""
    NumPDBViolations: NotRequired[int]
    """How many of them leave although their disruption budgets allow no more of that.
    Default: `0`.
    """


class Namespace(TypedDict):
    """A Kubernetes Namespace; its labels are what namespace selectors read."""

    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["Namespace"]]
    """Kubernetes kind of the object. Default: `"Namespace"`."""


class NamespaceList(TypedDict):
    """Namespaces, by name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Namespace]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["NamespaceList"]]
    """Kubernetes kind of the object. Default: `"NamespaceList"`."""


class NamespaceWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Namespace."""

    kind: Literal["Namespace"]
    """Kind of the object."""
    object: Namespace
    """The object as of this revision; of a deleted one the last state."""


class NewToken(TypedDict):
    """A token that was just made: its text is told this once."""

    id: str
    """What it is called, as in `mrg_<id>_<secret>`."""
    description: str
    """What it is for."""
    createdAt: str
    """When it was made, RFC 3339 in UTC."""
    expiresAt: NotRequired[str | None]
    """Until when it is taken; absent: for good."""
    lastUsedAt: NotRequired[str | None]
    """When it was used last, within a minute or so; absent: never."""
    token: str
    """What to send as `Authorization: Bearer <token>`."""


class NoOptions(TypedDict):
    """An object without fields."""


class Node(TypedDict):
    """A Kubernetes Node."""

    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["Node"]]
    """Kubernetes kind of the object. Default: `"Node"`."""
    spec: NotRequired[NodeSpec | None]
    """What keeps pods off."""
    status: NotRequired[NodeStatus | None]
    """What the node has to give."""


class NodeAffinity(TypedDict):
    """Rules about the labels of nodes."""

    requiredDuringSchedulingRequiredDuringExecution: NotRequired[NodeSelector | None]
    """Has to hold when the pod is placed, and as long as it runs: when a later change makes
    it false, Moorage evicts.
    """
    requiredDuringSchedulingIgnoredDuringExecution: NotRequired[NodeSelector | None]
    """Has to hold when the pod is placed."""
    preferredDuringSchedulingIgnoredDuringExecution: NotRequired[
        list[PreferredSchedulingTerm] | None
    ]
    """Weighed among the nodes that are feasible when the pod is placed."""


class NodeCondition(TypedDict):
    """One condition of a node, such as Ready."""

    type: str
    """What the condition is about; of Ready it depends whether the node has taints for that."""
    status: str
    """True, False or Unknown."""
    reason: NotRequired[str]
    """One word in CamelCase. Default: `""`."""
    message: NotRequired[str]
    """A sentence for people. Default: `""`."""
    lastHeartbeatTime: NotRequired[str]
    """When the condition was last reported, RFC 3339. Default: `""`."""
    lastTransitionTime: NotRequired[str]
    """When `status` last changed, RFC 3339. Default: `""`."""


class NodeList(TypedDict):
    """Nodes, by name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Node]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["NodeList"]]
    """Kubernetes kind of the object. Default: `"NodeList"`."""


class NodeReport(TypedDict):
    """Nodes that report, by name or by their leases."""

    nodes: NotRequired[list[str] | None]
    """Names of the nodes."""
    items: NotRequired[list[Lease] | None]
    """Their leases, as a list of the kind LeaseList has them."""


class NodeReportResult(TypedDict):
    """What became of the reports of many nodes."""

    renewed: int
    """How many of the nodes are known to have reported now."""
    unknown: list[str]
    """Names that no node of the cluster has."""


class NodeSelector(TypedDict):
    """Selects nodes: one of its terms has to match."""

    nodeSelectorTerms: list[NodeSelectorTerm | None]
    """Terms of which one has to match."""


class NodeSelectorRequirement(TypedDict):
    """One requirement on a label of a node."""

    key: str
    """Label key."""
    operator: Literal["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]
    """How the label is compared; Gt and Lt compare integers."""
    values: NotRequired[list[str] | None]
    """Values to compare with; none for Exists and DoesNotExist."""


class NodeSelectorTerm(TypedDict):
    """Requirements that all have to hold."""

    matchExpressions: NotRequired[list[NodeSelectorRequirement] | None]
    """Requirements on the node's labels that all have to hold."""
    matchFields: NotRequired[list[NodeSelectorRequirement] | None]
    """Requirements on the node's fields; only `metadata.name`."""


class NodeSpec(TypedDict):
    """What keeps pods off a node."""

    unschedulable: NotRequired[bool | None]
    """Takes no new pods that do not tolerate it."""
    taints: NotRequired[list[Taint] | None]
    """What keeps pods off that do not tolerate it."""


class NodeStatus(TypedDict):
    """What a node has to give, and the images that it already holds."""

    allocatable: NotRequired[dict[str, str | int | float] | None]
    """What pods may use, by resource name."""
    capacity: NotRequired[dict[str, str | int | float] | None]
    """Taken as allocatable where that is absent."""
    images: NotRequired[list[ContainerImage] | None]
    """Images on the node."""
    conditions: NotRequired[list[NodeCondition] | None]
    """What is known of the node, one condition for each type."""
    declaredFeatures: NotRequired[list[str] | None]
    """Features of the kubelet that pods may need, sorted by name. From Kubernetes 1.36 on, a
    node takes no pod that needs another one.
    """


class NodeWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Node."""

    kind: Literal["Node"]
    """Kind of the object."""
    object: Node
    """The object as of this revision; of a deleted one the last state."""


class ObjectList(TypedDict):
    """A Kubernetes List of objects of several kinds; each has its own `kind`."""

    items: list[ApplicableObject]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["List"]]
    """Kubernetes kind of the object. Default: `"List"`."""
    metadata: NotRequired[ListMeta | None]
    """Name, labels and identity."""


class ObjectMeta(TypedDict):
    """What every object says of itself. Other fields are kept and returned as they are."""

    name: str
    """Name, unique among the objects of its kind and namespace."""
    namespace: NotRequired[str | None]
    """Namespace; `default` where absent, none for nodes and namespaces."""
    labels: NotRequired[dict[str, str] | None]
    """What selectors read."""
    annotations: NotRequired[dict[str, str] | None]
    """Kept and returned. Scheduling reads one of pods, `rules.moorage.dev/v1alpha1`: rules
    as JSON.
    """
    uid: NotRequired[str | None]
    """Identity of this one object among all that ever had its name."""
    resourceVersion: NotRequired[str | None]
    """Revision that last changed the object; in PUT a precondition."""
    creationTimestamp: NotRequired[str | None]
    """When Moorage first stored the object, RFC 3339 in UTC."""
    deletionTimestamp: NotRequired[str | None]
    """Set while the object is being terminated, RFC 3339 in UTC."""


class ObjectiveProgress(TypedDict):
    """What a plan makes better."""

    name: NotRequired[str]
    """The objective. Default: `""`."""
    before: NotRequired[int | None]
    """How much there was of it when the plan began; less is better."""
    now: NotRequired[int | None]
    """How much there was at the last look, with all pods that are moved on their new nodes."""


class ObjectiveTotal(TypedDict):
    """What one objective of a rebalance measures; less is better."""

    objective: Literal["Fragmentation", "Packing", "Preferences", "Skew", "Spread", "Violations"]
    """The objective."""
    value: int
    """Violations: required rules that placed pods break. Skew: pods that domains have beyond
    the emptiest one's and `maxSkew`, over all `ScheduleAnyway` constraints. Preferences:
    the weights of preferred terms that hold, negated. Spread: the squares of the shares
    of cpu and memory that are requested, in thousandths, over all nodes. Packing: nodes
    with pods other than daemons. Fragmentation: what is free of the resource and part of
    no block.
    """
    tieBreak: NotRequired[int]
    """What is less by the better of two states with equal values. Packing: the squares of
    Spread, negated. Fragmentation: the squares of the free amounts of nodes, in
    thousandths of the greatest amount that a node has, negated. Absent for other
    objectives.
    """


class OverClustersAnswer(TypedDict):
    """What became of the pods, in the order asked."""

    committed: bool
    """Whether this call wrote something in any cluster."""
    revisions: dict[str, int]
    """The revision at which each cluster that was asked has answered last."""
    kubernetes: dict[str, str]
    """The Kubernetes version whose kube-scheduler each of them followed."""
    results: list[OverClustersResult]
    """What became of each pod."""


class OverClustersRequest(TypedDict):
    """What to place in which clusters: exactly one of `pods`, or `template` with `replicas`."""

    clusters: NotRequired[list[str]]
    """The names of the clusters, in the caller's order; if absent, all where the caller may
    place all of these pods, by name.
    """
    strategy: NotRequired[Literal["AsListed", "LeastAllocated"]]
    """Of the clusters that the rules allow: LeastAllocated takes the one with the smallest
    share of cpu or memory requested; AsListed takes the first of `clusters`. Default:
    `"LeastAllocated"`.
    """
    splitGroups: NotRequired[bool]
    """Whether pods that have to be placed all or none, and members of a PodGroup, may be
    placed in several clusters if no single one takes all of them: in all of these
    clusters, or in none. Default: `false`.
    """
    pods: NotRequired[list[Pod]]
    """Manifests, each with a name."""
    template: NotRequired[PodTemplate]
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: NotRequired[int]
    """How many pods of the template."""
    policy: NotRequired[Literal["AllOrNothing", "BestEffort"]]
    """AllOrNothing places all of them in one cluster in one commit, or none; see
    `splitGroups`. Default: `"BestEffort"`.
    """
    onUnschedulable: NotRequired[Literal["Queue", "Reject"]]
    """Queue keeps what no cluster can place now as pending pods of the first cluster that
    the rules over clusters allow. Default: `"Reject"`.
    """
    dryRun: NotRequired[bool]
    """Whether to answer as if each pod were placed, by itself, but change nothing. Default:
    `false`.
    """


class OverClustersResult(TypedDict):
    """What became of one pod that was to be placed in one of several clusters."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    outcome: Literal["AlreadyPlaced", "Denied", "GroupRefused", "Placed", "Queued", "Unschedulable"]
    """What became of the pod."""
    cluster: NotRequired[str | None]
    """The cluster that has the pod now; null if none has."""
    uid: NotRequired[str | None]
    """The uid of the pod there."""
    nodeName: NotRequired[str | None]
    """The node; null if there is none."""
    score: NotRequired[int | None]
    """The node's weighted score."""
    refusals: list[ClusterRefusal]
    """Why clusters that come before it did not take the pod, or, if none did, why each did
    not.
    """


class Overhead(TypedDict):
    """What a pod of the class costs beside its containers."""

    podFixed: NotRequired[dict[str, str | int | float] | None]
    """Amounts by resource name, which are the same for every pod."""


class PersistentVolume(TypedDict):
    """A Kubernetes PersistentVolume. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: NotRequired[PersistentVolumeSpec]
    """What it offers."""
    status: NotRequired[PhaseStatus]
    """Whether it is free."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PersistentVolume"]]
    """Kubernetes kind of the object. Default: `"PersistentVolume"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class PersistentVolumeClaim(TypedDict):
    """A Kubernetes PersistentVolumeClaim. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: NotRequired[PersistentVolumeClaimSpec]
    """What it asks for."""
    status: NotRequired[PhaseStatus]
    """How far its binding has come."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PersistentVolumeClaim"]]
    """Kubernetes kind of the object. Default: `"PersistentVolumeClaim"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class PersistentVolumeClaimList(TypedDict):
    """Objects of the kind PersistentVolumeClaim, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[PersistentVolumeClaim]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PersistentVolumeClaimList"]]
    """Kubernetes kind of the object. Default: `"PersistentVolumeClaimList"`."""


class PersistentVolumeClaimSpec(TypedDict):
    """What a claim asks for. Other fields are kept and returned as they are."""

    accessModes: NotRequired[list[str]]
    """How the volume is to be mounted; it has to offer all of these. Default: `[]`."""
    resources: NotRequired[StorageRequirements | None]
    """How large the volume has to be."""
    selector: NotRequired[LabelSelector | None]
    """Which volumes may be bound, by their labels; absent: any."""
    storageClassName: NotRequired[str | None]
    """Name of the class."""
    volumeAttributesClassName: NotRequired[str | None]
    """Name of the class of attributes that the volume has to have."""
    volumeMode: NotRequired[str]
    """Filesystem or Block. Default: `"Filesystem"`."""
    volumeName: NotRequired[str]
    """Name of the volume that it is bound to. Default: `""`."""


class PersistentVolumeClaimVolumeSource(TypedDict):
    """A claim in the pod's namespace."""

    claimName: str
    """Name of the claim."""


class PersistentVolumeClaimWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a PersistentVolumeClaim."""

    kind: Literal["PersistentVolumeClaim"]
    """Kind of the object."""
    object: PersistentVolumeClaim
    """The object as of this revision; of a deleted one the last state."""


class PersistentVolumeList(TypedDict):
    """Objects of the kind PersistentVolume, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[PersistentVolume]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PersistentVolumeList"]]
    """Kubernetes kind of the object. Default: `"PersistentVolumeList"`."""


class PersistentVolumeSpec(TypedDict):
    """What a volume offers. Other fields are kept and returned as they are."""

    capacity: NotRequired[dict[str, str | int | float] | None]
    """The size, as `storage`."""
    accessModes: NotRequired[list[str]]
    """How it can be mounted. Default: `[]`."""
    claimRef: NotRequired[ClaimRef | None]
    """The claim that it is bound to, or kept for."""
    storageClassName: NotRequired[str | None]
    """Name of the class."""
    volumeAttributesClassName: NotRequired[str | None]
    """Name of the class of its attributes."""
    volumeMode: NotRequired[str]
    """Filesystem or Block. Default: `"Filesystem"`."""
    nodeAffinity: NotRequired[VolumeNodeAffinity | None]
    """The nodes on which it can be used."""
    csi: NotRequired[CSIVolumeSource | None]
    """Where it comes from, if from a CSI driver."""
    awsElasticBlockStore: NotRequired[AWSElasticBlockStoreVolumeSource | None]
    """The disk of Amazon's cloud that it is."""
    gcePersistentDisk: NotRequired[GCEPersistentDiskVolumeSource | None]
    """The disk of Google's cloud that it is."""
    azureDisk: NotRequired[AzureDiskVolumeSource | None]
    """The disk of Microsoft's cloud that it is."""
    cinder: NotRequired[CinderVolumeSource | None]
    """The disk of OpenStack that it is."""
    portworxVolume: NotRequired[PortworxVolumeSource | None]
    """The volume of Portworx that it is."""


class PersistentVolumeWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a PersistentVolume."""

    kind: Literal["PersistentVolume"]
    """Kind of the object."""
    object: PersistentVolume
    """The object as of this revision; of a deleted one the last state."""


class PhaseStatus(TypedDict):
    """How far an object has come."""

    phase: NotRequired[str]
    """The phase: of a claim Pending, Bound or Lost; of a volume Pending, Available, Bound,
    Released or Failed. Default: `""`.
    """


class PlacementAnswer(TypedDict):
    """What became of the pods, in the order asked."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    warnings: NotRequired[list[FieldWarning]]
    """Fields that are passed over; absent if there are none."""
    committed: bool
    """Whether this call wrote something."""
    attempts: int
    """How often the request was decided; more than once if races were lost."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    results: list[PlacementResult]
    """What became of each pod."""
    group: NotRequired[GroupFailure | None]
    """Why a group was refused; null otherwise."""


class PlacementRequest(TypedDict):
    """What to place: exactly one of `pods`, `podRefs`, or `template` with `replicas`."""

    pods: NotRequired[list[Pod]]
    """Manifests; stored if they are new. Their `nodeName` is a wish, not a fact."""
    podRefs: NotRequired[list[PodRef]]
    """Pods that are stored already."""
    template: NotRequired[PodTemplate]
    """What the replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: NotRequired[int]
    """How many pods of the template: at most as many as the server takes in one request."""
    policy: NotRequired[Literal["AllOrNothing", "BestEffort"]]
    """AllOrNothing places all of them in one commit, or none. Default: `"BestEffort"`."""
    onUnschedulable: NotRequired[Literal["Queue", "Reject"]]
    """Queue keeps what cannot be placed now as pending pods. Default: `"Reject"`."""
    dryRun: NotRequired[bool]
    """Whether to answer as if the pods were placed, but change nothing. Default: `false`."""
    explain: NotRequired[Literal["Full", "None", "Summary"]]
    """How much to explain. Default: `"None"`."""
    preemption: NotRequired[Literal["Evict", "Never", "Propose"]]
    """Propose says of each pod that fits nowhere which pods of lower priority would have to
    leave which node. Evict marks them as to be stopped, of the namespaces where the
    caller may evict, and the pod waits for their room (`status.nominatedNodeName`). Not
    for members of groups. Default: `"Never"`.
    """
    preemptionScope: NotRequired[Literal["Domains", "Node"]]
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods
    on other nodes because of which a rule of anti-affinity or a hard spread constraint
    refuses the node. Default: `"Node"`.
    """
    compare: NotRequired[bool]
    """Whether to tell with each pod what placements over several clusters compare of this
    cluster. Default: `false`.
    """


class PlacementResult(TypedDict):
    """What became of one pod."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str | None
    """None if the pod is not stored."""
    outcome: Literal["AlreadyPlaced", "Denied", "GroupRefused", "Placed", "Queued", "Unschedulable"]
    """What became of the pod."""
    nodeName: NotRequired[str | None]
    """The node; null if there is none."""
    score: NotRequired[int | None]
    """The node's weighted score among those that the pod could choose from. A node that was
    nominated for the pod, or that a lost race left it, is the only one.
    """
    plannedRevision: int
    """The revision of the state that `score` and `explanation` belong to."""
    reason: NotRequired[str | None]
    """If the pod is Denied: the rule that denies it, in CamelCase. GroupSearchEnded: the
    search for its group ended at `groupSearchSteps`, so there may be a placement.
    """
    message: NotRequired[str | None]
    """A sentence for people that says the same; null if there is nothing to say."""
    explanation: NotRequired[Explanation | Summary | None]
    """The explanation that was asked for with `explain`; null for None."""
    preemption: NotRequired[Proposal | None]
    """With `Propose` and `Evict`, of a pod that fits nowhere: where room can be made, or is
    made; null if it cannot be made, and `message` then says why, as Kubernetes words it.
    """
    comparison: NotRequired[ClusterComparison]
    """With `compare`: the state of this cluster before the pods were placed."""
    difference: NotRequired[ChoiceDifference]
    """In simulations with `compareTo`: the node that the other Kubernetes version's kube-
    scheduler chooses; absent if it is the same.
    """


class Plan(TypedDict):
    """A Kubernetes Plan. Fields that scheduling does not read are kept and returned as they
    are.
    """

    spec: PlanSpec
    """What it is to reach."""
    status: NotRequired[PlanProgress]
    """How far it has come."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"moorage.dev/v1alpha1"`."""
    kind: NotRequired[Literal["Plan"]]
    """Kubernetes kind of the object. Default: `"Plan"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class PlanAnswer(TypedDict):
    """What would happen, and what is to be done."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    status: Literal["Committed", "Planned"]
    """Planned: nothing of it was done, and the cluster stays as it is. Committed: all of it
    was done.
    """
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed, after all changes."""
    complete: bool
    """Whether the goal is reached: every pod gets a node, or as many go as are to go."""
    changed: list[int]
    """How many objects each of the changes is about."""
    steps: list[PlanStep]
    """The first steps of the plan in their order, at most `stepsMax`."""
    stepsTotal: int
    """How many steps there are that the caller may see."""
    unplaced: list[Unplaced]
    """The first pods that get no node, at most `stepsMax`."""
    unplacedTotal: int
    """How many pods that the caller may see get no node."""
    otherSteps: NotRequired[int]
    """How many more steps there are, each about a pod of another tenant, in a namespace that
    the caller may not read; absent if there are none.
    """
    otherUnplaced: NotRequired[int]
    """How many pods of other tenants get no node; absent if there are none."""
    compared: NotRequired[int]
    """Compare: how many placed pods that the caller may see were judged before and after the
    changes, each as if it alone were placed anew; absent for other goals.
    """
    differences: NotRequired[list[ChoiceDifference]]
    """Compare: the first pods that would get another node after the changes, at most
    `stepsMax`; absent for other goals.
    """
    differencesTotal: NotRequired[int]
    """Compare: how many such pods there are that the caller may see; absent for other goals."""
    repairs: NotRequired[list[Repair]]
    """Fit: what would let the pod fit that fits nowhere, the least changes first; absent for
    other goals.
    """
    unfinished: NotRequired[str]
    """Fit: what ended the search for repairs early, so that there may be others, and smaller
    ones; absent if nothing did.
    """
    before: PlanTotals
    """The cluster as it is."""
    after: PlanTotals
    """The cluster after the changes and all steps."""


class PlanBounds(TypedDict):
    """What a plan may cost; what it does not reach within them is told as not tried."""

    evictionsMax: NotRequired[int | None]
    """How many pods may leave their nodes for the goal. Those that the changes displace or
    remove do not count.
    """
    movesMax: NotRequired[int | None]
    """How many displaced or evicted pods may get another node."""
    seconds: NotRequired[float | None]
    """How long planning may take; the server has a limit of its own."""
    respectBudgets: NotRequired[bool]
    """Remove, Fit: whether disruption budgets keep pods from going, as they do not in
    Kubernetes for Remove. Default: `false`.
    """
    protect: NotRequired[ProtectedPods | None]
    """Pods that do not leave their nodes for the goal, whoever asks."""


class PlanChange(TypedDict):
    """A change to the fork of the cluster on which a plan is made; it is not made to the
    cluster.
    """

    op: Literal[
        "AddNodes",
        "CordonNodes",
        "PutPods",
        "RemoveNodes",
        "RemovePods",
        "SetConfig",
        "SetLabels",
        "SetNamespaceLabels",
        "SetTaints",
        "UncordonNodes",
    ]
    """What is changed."""
    names: NotRequired[list[str] | None]
    """Names of nodes, pods or namespaces."""
    selector: NotRequired[LabelSelector | None]
    """A selector of the labels of nodes, pods or namespaces."""
    topology: NotRequired[Domains | None]
    """Nodes in these domains, or pods on such nodes. Of AddNodes: the domains that nodes get
    in turn.
    """
    namespace: NotRequired[str | None]
    """RemovePods: the namespace of the pods. With `names`, `default` if it is absent; else
    all in which the caller may place pods.
    """
    template: NotRequired[Node | None]
    """AddNodes: a node; the new ones are named `<name>-0`, `<name>-1`, …"""
    count: NotRequired[int | None]
    """AddNodes: how many."""
    labels: NotRequired[dict[str, str | None] | None]
    """SetLabels, SetNamespaceLabels: the labels to set; null removes a label."""
    taints: NotRequired[list[Taint] | None]
    """SetTaints: all taints that the nodes have then."""
    pods: NotRequired[list[Pod] | None]
    """PutPods: pods that are there then; with a `nodeName` they are on that node."""
    config: NotRequired[dict[str, Any] | None]
    """SetConfig: settings of the cluster to change, as in a merge patch."""


class PlanCommit(TypedDict):
    """A plan to make and to carry out in one commit."""

    changes: NotRequired[list[PlanChange] | None]
    """Changes to a fork of the cluster; the cluster itself is not changed."""
    goal: NotRequired[PlanGoal | None]
    """What is to be reached after the changes; without it, only figures are told."""
    bounds: NotRequired[PlanBounds]
    """What the plan may cost."""
    explain: NotRequired[Literal["Full", "None", "Summary"]]
    """Summary and Full count broken rules and skew, and explain why pods get no node.
    Default: `"None"`.
    """
    stepsMax: NotRequired[int]
    """How many steps, and how many pods without a node, the answer has at most. Default:
    `1000`.
    """
    steps: NotRequired[list[PlannedStep] | None]
    """The steps that the plan has to have, as it told them before; without them, whatever it
    has.
    """


class PlanGoal(TypedDict):
    """What a plan is to reach."""

    type: Literal["Compare", "Drain", "Fit", "Place", "Rebalance", "Remove", "Replace"]
    """Place: find nodes for pods. Drain: have all pods but daemons leave nodes, in waves.
    Remove: find the pods without which the others are left best. Replace: have pods of a
    template in place of selected ones, in waves. Rebalance: move placed pods, in waves,
    so that the objectives become less. Fit: find a node for one pod, or else the least
    changes after which it fits. Compare: find the placed pods that would get another node
    by the changed settings, such as another Kubernetes version.
    """
    pods: NotRequired[list[Pod] | None]
    """Pods, new or stored. Their `nodeName` is a wish, not a fact."""
    podRefs: NotRequired[list[PodRef] | None]
    """Pods that are stored."""
    template: NotRequired[PodTemplate | None]
    """What replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: NotRequired[int | None]
    """How many pods of the template."""
    displaced: NotRequired[bool | None]
    """All pods that lose their nodes by the changes, whoever owns them: by priority, the
    oldest first.
    """
    nodes: NotRequired[PlanNodes | None]
    """Drain: the nodes to be emptied."""
    namespace: NotRequired[str | None]
    """Remove, Replace, Rebalance, Compare: the namespace of the pods."""
    selector: NotRequired[LabelSelector | None]
    """Remove, Replace, Rebalance, Compare: a selector of the pods' labels. Pods that are
    leaving or have ended do not count. New pods of a Replace may have the labels, too.
    """
    owner: NotRequired[PodOwner | None]
    """Replace: who manages the pods that are replaced."""
    maxSurge: NotRequired[int | str | None]
    """Replace: how many pods beyond `replicas` there may be between two waves, or how much
    of them; absent: 25%. Percentages are rounded up.
    """
    maxUnavailable: NotRequired[int | str | None]
    """Replace: how many of the `replicas`, or how much of them, may be missing or not ready
    between two waves; absent: 25%. Percentages are rounded down. If both come to nothing,
    it is one pod.
    """
    objectives: NotRequired[
        list[Literal["Fragmentation", "Packing", "Preferences", "Skew", "Spread", "Violations"]]
        | None
    ]
    """Rebalance: what is to become less, the most important first; absent: Violations, then
    Skew. Violations: rules of placed pods that do not hold. Skew: pods that domains have
    too many by constraints with `ScheduleAnyway`. Preferences: weights of preferred terms
    that do not hold. Spread: load that is uneven over nodes. Packing: nodes with pods.
    Fragmentation: what is free of a resource in rests that are of no use. Each counts the
    whole cluster; `objectives` in the plan's totals says how.
    """
    movesMax: NotRequired[int | None]
    """Rebalance: how many pods may move."""
    resource: NotRequired[str | None]
    """Rebalance: the resource of which Fragmentation is, as in `nvidia.com/gpu`."""
    block: NotRequired[int | str | float | None]
    """Rebalance: how much of the resource is needed at once on one node, a quantity; absent:
    all that a node has.
    """
    count: NotRequired[int | None]
    """Remove: how many of the pods are to go."""
    pod: NotRequired[Pod | None]
    """Fit: the pod, new or stored."""
    podRef: NotRequired[PodRef | None]
    """Fit: a pod that is stored."""
    changesMax: NotRequired[int | None]
    """Fit: how many changes of the pod and of nodes a repair may have; 3 if it is absent."""
    limit: NotRequired[int | None]
    """Fit: how many repairs are told; 10 if it is absent."""


class PlanList(TypedDict):
    """Objects of the kind Plan, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Plan]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PlanList"]]
    """Kubernetes kind of the object. Default: `"PlanList"`."""


PlanMove = TypedDict(
    "PlanMove",
    {
        "namespace": "NotRequired[str]",
        "name": "NotRequired[str]",
        "from": "NotRequired[str]",
        "to": "NotRequired[str]",
        "since": "NotRequired[str]",
    },
)
"""A pod that was evicted for a move, and in whose place no other has come yet."""


class PlanNodes(TypedDict):
    """Nodes; if several of the fields are given, all have to hold."""

    names: NotRequired[list[str] | None]
    """Names of nodes."""
    selector: NotRequired[LabelSelector | None]
    """A selector of the nodes' labels."""
    topology: NotRequired[Domains | None]
    """Domains that the nodes are in."""


class PlanProgress(TypedDict):
    """How far a plan has come; the server writes it."""

    phase: NotRequired[Literal["Cancelled", "Paused", "Running", "Succeeded"]]
    """Succeeded and Cancelled plans have ended. Default: `"Running"`."""
    startedAt: NotRequired[str]
    """When the server has begun with it, RFC 3339. Default: `""`."""
    endedAt: NotRequired[str]
    """When it ended, RFC 3339; absent until then. Default: `""`."""
    evicted: NotRequired[int]
    """How many pods were evicted for the plan so far. Default: `0`."""
    leaving: NotRequired[int]
    """How many of the pods that are to leave were evicted and are not gone yet: whoever runs
    them stops them. Default: `0`.
    """
    waiting: NotRequired[int]
    """How many pods still have to be evicted. Default: `0`."""
    staying: NotRequired[int]
    """How many daemons and static pods are on the nodes, which stay there. Default: `0`."""
    waves: NotRequired[int]
    """Replace: how many waves were begun. Default: `0`."""
    placed: NotRequired[int]
    """Replace: how many new pods were placed for the plan so far. Default: `0`."""
    updated: NotRequired[int]
    """Replace: how many new pods there are now. Default: `0`."""
    ready: NotRequired[int]
    """Replace: how many of the new pods are reported as ready. Default: `0`."""
    progressedAt: NotRequired[str]
    """Replace: when pods were last placed, ready, evicted or gone, RFC 3339. Default: `""`."""
    reason: NotRequired[str | None]
    """Replace: ProgressDeadlineExceeded if that is longer ago than allowed. The server goes
    on trying. Rebalance: why it ended before no move was better: MovesMax, EvictionsMax,
    or SecondsOver, if the time of the last search was over.
    """
    moved: NotRequired[int]
    """Rebalance: in place of how many pods others have come on the nodes that were chosen
    for them. Default: `0`.
    """
    elsewhere: NotRequired[int]
    """Rebalance: in place of how many pods others have come on other nodes. Default: `0`."""
    missing: NotRequired[int]
    """Rebalance: in place of how many pods nobody came for so long that room is no longer
    kept. Default: `0`.
    """
    moves: NotRequired[list[PlanMove]]
    """Rebalance: the moves that are under way. Default: `[]`."""
    objectives: NotRequired[list[ObjectiveProgress]]
    """Rebalance: what is made better, the most important first. Default: `[]`."""
    waitingPods: NotRequired[list[WaitingPod]]
    """The first of the pods that cannot be evicted or placed now. Default: `[]`."""


class PlanRequest(TypedDict):
    """What to plan: changes in their order, then a goal."""

    changes: NotRequired[list[PlanChange] | None]
    """Changes to a fork of the cluster; the cluster itself is not changed."""
    goal: NotRequired[PlanGoal | None]
    """What is to be reached after the changes; without it, only figures are told."""
    bounds: NotRequired[PlanBounds]
    """What the plan may cost."""
    explain: NotRequired[Literal["Full", "None", "Summary"]]
    """Summary and Full count broken rules and skew, and explain why pods get no node.
    Default: `"None"`.
    """
    stepsMax: NotRequired[int]
    """How many steps, and how many pods without a node, the answer has at most. Default:
    `1000`.
    """


class PlanSpec(TypedDict):
    """What a plan is to reach, and whether the server is to go on with it."""

    goal: KeptGoal
    """What is to be reached."""
    state: NotRequired[Literal["Cancelled", "Paused", "Running"]]
    """Paused: nobody is evicted for now. Cancelled: nobody ever is again; what was done
    stays done. Default: `"Running"`.
    """
    whenUnschedulable: NotRequired[Literal["Evict", "Wait"]]
    """What becomes of a pod for which there is no other node now: it waits where it is, or
    is evicted all the same, as far as disruption budgets allow it. Default: `"Wait"`.
    """
    bounds: NotRequired[KeptBounds]
    """What the plan may cost."""


PlanStep = TypedDict(
    "PlanStep",
    {
        "action": "Literal['Cordon', 'Delete', 'Evict', 'Place']",
        "namespace": "NotRequired[str]",
        "name": "str",
        "from": "NotRequired[str]",
        "to": "NotRequired[str]",
        "wave": "int",
        "reason": "str",
    },
)
"""One step of a plan."""


class PlanTotals(TypedDict):
    """The state of a cluster in figures."""

    nodes: int
    """Nodes."""
    pods: int
    """Pods on nodes, in the namespaces that the caller may read."""
    resources: dict[str, ResourceTotal]
    """Each resource that nodes have before the plan or after it: 0 if the last node that has
    it goes.
    """
    violations: NotRequired[int]
    """Required rules that placed pods break, in these namespaces; absent without `explain`."""
    skew: NotRequired[list[ConstraintSkew]]
    """The topology spread constraints of placed pods in these namespaces, the greatest skew
    first, at most a hundred; absent without `explain`.
    """
    objectives: NotRequired[list[ObjectiveTotal]]
    """Rebalance: what its objectives measure, in their order; what is about pods counts
    those of these namespaces. Absent for other goals.
    """


class PlanWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Plan."""

    kind: Literal["Plan"]
    """Kind of the object."""
    object: Plan
    """The object as of this revision; of a deleted one the last state."""


PlannedStep = TypedDict(
    "PlannedStep",
    {
        "action": "Literal['Cordon', 'Delete', 'Evict', 'Place']",
        "namespace": "NotRequired[str | None]",
        "name": "str",
        "from": "NotRequired[str | None]",
        "to": "NotRequired[str | None]",
        "wave": "NotRequired[int | None]",
        "reason": "NotRequired[str | None]",
    },
)
"""A step as a plan has told it."""


class Plugin(TypedDict):
    """A plugin switched on or off; weight 0 means that none is given."""

    name: str
    """Name of the plugin."""
    weight: NotRequired[int]
    """Weight of its score among those of the other plugins. Default: `0`."""


class PluginConfig(TypedDict):
    """The arguments of one plugin; their shape is the plugin's (`NodeResourcesFitArgs`, …)."""

    name: str
    """Name of the plugin."""
    args: NotRequired[dict[str, Any]]
    """The plugin's arguments, as in KubeSchedulerConfiguration v1."""


class PluginSet(TypedDict):
    """The plugins that are switched on and off at one step, or at all of them."""

    enabled: NotRequired[list[Plugin]]
    """Plugins switched on. Default: `[]`."""
    disabled: NotRequired[list[Plugin]]
    """Plugins switched off; `*` means all that are on by default. Default: `[]`."""


class Plugins(TypedDict):
    """Which plugins are on; `multi_point` stands for all steps."""

    filter: NotRequired[PluginSet]
    """Which plugins filter."""
    score: NotRequired[PluginSet]
    """Which plugins score, and with which weights."""
    multiPoint: NotRequired[PluginSet]
    """Both at once."""


class Pod(TypedDict):
    """A Kubernetes Pod. Without `spec.nodeName` it is pending."""

    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["Pod"]]
    """Kubernetes kind of the object. Default: `"Pod"`."""
    spec: PodSpec
    """What the pod needs, and where it may go."""
    status: NotRequired[PodStatus | None]
    """What is known of the pod's life."""


class PodAffinity(TypedDict):
    """Also the shape of `podAntiAffinity`."""

    requiredDuringSchedulingRequiredDuringExecution: NotRequired[list[PodAffinityTerm] | None]
    """Has to hold when the pod is placed, and as long as it runs: when a later change makes
    it false, Moorage evicts.
    """
    requiredDuringSchedulingIgnoredDuringExecution: NotRequired[list[PodAffinityTerm] | None]
    """Has to hold when the pod is placed."""
    preferredDuringSchedulingIgnoredDuringExecution: NotRequired[
        list[WeightedPodAffinityTerm] | None
    ]
    """Weighed among the nodes that are feasible when the pod is placed."""
    toleranceSeconds: NotRequired[int | None]
    """How long each term that is required during execution may be broken before the pod is
    evicted; null: as `affinityViolationGraceSeconds` of the cluster says. Only for
    `podAffinity`.
    """


class PodAffinityTerm(TypedDict):
    """One term; `matchLabelKeys` and `mismatchLabelKeys` are already merged into the
    selector.
    """

    topologyKey: str
    """Node label whose values divide the nodes into domains."""
    labelSelector: NotRequired[LabelSelector | None]
    """Which pods the rule is about; null selects no pod, `{}` every pod."""
    namespaces: NotRequired[list[str] | None]
    """Namespaces whose pods count, together with those that `namespaceSelector` selects;
    both absent means the pod's own.
    """
    namespaceSelector: NotRequired[LabelSelector | None]
    """Selects namespaces by their labels; `{}` means all."""
    exceptNamespaceSelector: NotRequired[LabelSelector | None]
    """Selects namespaces whose pods do not count for this term, though `namespaces` or
    `namespaceSelector` has them; `{}` means all, absent none. Kubernetes has no such
    field.
    """
    matchLabelKeys: NotRequired[list[str] | None]
    """Pod label keys whose values, taken from the pod itself, are added to the selector when
    the pod is created.
    """
    mismatchLabelKeys: NotRequired[list[str] | None]
    """Like `matchLabelKeys`, but the values must differ."""
    toleranceSeconds: NotRequired[int | None]
    """How long the term may be broken before the pod is evicted; null: as `podAffinity`
    says. Only for terms of `podAffinity` that are required during execution.
    """
    maxPerDomain: NotRequired[int | None]
    """In required anti-affinity: the most matching pods that may be in one domain with the
    pod, itself included if it matches; absent means no other. Kubernetes has no such
    field.
    """
    firstPodExempt: NotRequired[bool]
    """In affinity required for scheduling only: the term is left out for a pod while no
    other pod of its controller that has such a term is placed; without a controller, none
    of the same labels. Kubernetes has no such field. Default: `false`.
    """


class PodCondition(TypedDict):
    """One condition, such as PodScheduled, which says why a pending pod waits."""

    type: str
    """What the condition is about."""
    status: str
    """True, False or Unknown."""
    reason: NotRequired[str | None]
    """One word in CamelCase."""
    message: NotRequired[str | None]
    """A sentence for people."""
    lastTransitionTime: NotRequired[str | None]
    """When `status` last changed, RFC 3339."""


class PodConnection(TypedDict):
    """Pods that a pod talks with, and how much. Kubernetes has no such thing."""

    topologyKey: str
    """Node label whose values divide the nodes into domains."""
    labelSelector: NotRequired[LabelSelector | None]
    """Which pods the rule is about; null selects no pod, `{}` every pod."""
    namespaces: NotRequired[list[str] | None]
    """Namespaces whose pods are connected; absent means the pod's own."""
    weight: int
    """How much the two pods talk with each other, from 1 to 1000000."""


class PodDisruptionBudget(TypedDict):
    """A Kubernetes PodDisruptionBudget. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: NotRequired[PodDisruptionBudgetSpec]
    """Whom it protects, and how far."""
    status: NotRequired[PodDisruptionBudgetStatus]
    """What it allows now."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"policy/v1"`."""
    kind: NotRequired[Literal["PodDisruptionBudget"]]
    """Kubernetes kind of the object. Default: `"PodDisruptionBudget"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class PodDisruptionBudgetList(TypedDict):
    """Objects of the kind PodDisruptionBudget, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[PodDisruptionBudget]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PodDisruptionBudgetList"]]
    """Kubernetes kind of the object. Default: `"PodDisruptionBudgetList"`."""


class PodDisruptionBudgetSpec(TypedDict):
    """Whom a budget protects, and how far. Other fields are kept and returned as they are."""

    selector: NotRequired[LabelSelector | None]
    """Selects the pods; if it is absent, none."""
    minAvailable: NotRequired[int | str | None]
    """How many pods, or how much of what is wanted (`50%`), have to stay."""
    maxUnavailable: NotRequired[int | str | None]
    """How many pods, or how much of what is wanted, may be away."""
    unhealthyPodEvictionPolicy: NotRequired[Literal["AlwaysAllow", "IfHealthyBudget"] | None]
    """Whether a pod that is not ready may be evicted only while enough others are healthy
    (IfHealthyBudget, the default), or always.
    """


class PodDisruptionBudgetStatus(TypedDict):
    """What a budget allows now. For a stored budget it is computed for each answer."""

    disruptionsAllowed: NotRequired[int]
    """How many of the pods may be evicted now. Default: `0`."""
    currentHealthy: NotRequired[int]
    """How many of the pods are placed, not leaving, and do not report that they are not
    ready. Default: `0`.
    """
    desiredHealthy: NotRequired[int]
    """How many of them there have to be. Default: `0`."""
    expectedPods: NotRequired[int]
    """How many are wanted. Default: `0`."""
    disruptedPods: NotRequired[dict[str, str]]
    """The names of pods whose eviction was allowed already, with the times of that."""


class PodDisruptionBudgetWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a PodDisruptionBudget."""

    kind: Literal["PodDisruptionBudget"]
    """Kind of the object."""
    object: PodDisruptionBudget
    """The object as of this revision; of a deleted one the last state."""


class PodGroup(TypedDict):
    """A PodGroup as kubernetes-sigs/scheduler-plugins or Kubernetes itself has it."""

    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"scheduling.x-k8s.io/v1alpha1"`."""
    kind: NotRequired[Literal["PodGroup"]]
    """Kubernetes kind of the object. Default: `"PodGroup"`."""
    spec: NotRequired[PodGroupSpec | None]
    """What the group needs."""
    status: NotRequired[PodGroupStatus | None]
    """How its members fare. Watches and exports leave it out: it changes with every member.
    That of a group of `scheduling.k8s.io` is kept as it was sent.
    """


class PodGroupList(TypedDict):
    """Pod groups, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[PodGroup]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PodGroupList"]]
    """Kubernetes kind of the object. Default: `"PodGroupList"`."""


class PodGroupSchedulingConstraints(TypedDict):
    """Where the pods of a group may go."""

    topology: NotRequired[list[TopologyConstraint]]
    """At most one. Default: `[]`."""


class PodGroupSchedulingPolicy(TypedDict):
    """How the pods of a group are placed: exactly one of its fields is set."""

    gang: NotRequired[GangSchedulingPolicy | None]
    """They get nodes together, or not at all."""
    basic: NotRequired[dict[str, Any] | None]
    """Each of them is placed like any other pod."""


class PodGroupSpec(TypedDict):
    """What a group needs."""

    minMember: NotRequired[int | None]
    """So many members have to be there, and to have a place, before any of them gets a node;
    1 if absent.
    """
    minResources: NotRequired[dict[str, str | int | float] | None]
    """Kept, but not read: the search for places knows what each member needs."""
    scheduleTimeoutSeconds: NotRequired[int | None]
    """Members that have waited so long are told so; they go on waiting."""
    schedulingPolicy: NotRequired[PodGroupSchedulingPolicy | None]
    """How the members are placed; required in `scheduling.k8s.io`."""
    schedulingConstraints: NotRequired[PodGroupSchedulingConstraints | None]
    """Where the members may go."""


class PodGroupStatus(TypedDict):
    """How the members fare, exactly as of the answer's revision; ignored where it is sent."""

    phase: NotRequired[
        Literal["Failed", "Finished", "Pending", "Running", "Scheduling", "Unknown"] | None
    ]
    """Scheduling: at least `minMember` have nodes; Running: and run. Unknown: fewer have."""
    members: NotRequired[int | None]
    """Pods of the namespace that have the group's label."""
    scheduled: NotRequired[int | None]
    """Members that have a node and have not ended."""
    running: NotRequired[int | None]
    """Members whose `status.phase` is Running."""
    succeeded: NotRequired[int | None]
    """Members whose `status.phase` is Succeeded."""
    failed: NotRequired[int | None]
    """Members whose `status.phase` is Failed."""
    scheduleStartTime: NotRequired[str | None]
    """Since when the group waits: the time of `scheduleTimeoutSeconds` counts from here."""


class PodGroupWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a PodGroup."""

    kind: Literal["PodGroup"]
    """Kind of the object."""
    object: PodGroup
    """The object as of this revision; of a deleted one the last state."""


class PodIdentity(TypedDict):
    """Which pod is meant; all other metadata is ignored."""

    name: NotRequired[str | None]
    """The pod's name; it has to be that of the path."""
    namespace: NotRequired[str | None]
    """The pod's namespace; it has to be that of the path."""
    uid: NotRequired[str | None]
    """The pod's `metadata.uid`; if it is another one by now, the pod is not bound."""


class PodList(TypedDict):
    """Pods, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Pod]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["PodList"]]
    """Kubernetes kind of the object. Default: `"PodList"`."""


class PodName(TypedDict):
    """Names a stored pod."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""


class PodOwner(TypedDict):
    """Who manages pods, as their `ownerReferences` name it."""

    kind: str
    """Kind of the owner, such as ReplicaSet."""
    name: str
    """Name of the owner."""


class PodRef(TypedDict):
    """Names a stored pod."""

    namespace: NotRequired[str]
    """Namespace of the pod. Default: `"default"`."""
    name: str
    """Name of the pod."""


class PodResourceClaim(TypedDict):
    """A claim to devices; either it is there, or it is made for the pod from a template."""

    name: str
    """Name by which containers refer to the claim."""
    resourceClaimName: NotRequired[str | None]
    """Name of a ResourceClaim in the pod's namespace."""
    resourceClaimTemplateName: NotRequired[str | None]
    """Name of a ResourceClaimTemplate in the pod's namespace."""


class PodResourceClaimStatus(TypedDict):
    """Which claim was made for one of the templates that the pod's `resourceClaims` name."""

    name: str
    """The pod's own name for the claim."""
    resourceClaimName: NotRequired[str | None]
    """Name of the ResourceClaim in the pod's namespace."""


class PodSchedulingGate(TypedDict):
    """Keeps the pod from being tried."""

    name: str
    """Name of the gate."""


class PodSchedulingGroup(TypedDict):
    """The group whose members get nodes together, as Kubernetes has it since v1.36."""

    podGroupName: str
    """Name of a PodGroup in the pod's namespace; until it exists, the pod waits."""


class PodSpec(TypedDict):
    """What scheduling reads of a pod. Other fields are kept and returned as they are."""

    containers: NotRequired[list[Container]]
    """The pod's containers. Default: `[]`."""
    initContainers: NotRequired[list[Container]]
    """Containers that run before the others, and sidecars. Default: `[]`."""
    hostNetwork: NotRequired[bool | None]
    """Whether the ports of containers are ports of the node."""
    hostUsers: NotRequired[bool | None]
    """False, together with `hostNetwork`, needs a node that declares the feature
    UserNamespacesHostNetworkSupport.
    """
    overhead: NotRequired[dict[str, str | int | float] | None]
    """What the pod itself costs beside its containers."""
    resources: NotRequired[ResourceRequirements | None]
    """Requests and limits."""
    nodeSelector: NotRequired[dict[str, str] | None]
    """Node labels that must be there; holds beside node affinity."""
    affinity: NotRequired[Affinity | None]
    """Rules about nodes and about other pods."""
    tolerations: NotRequired[list[Toleration]]
    """Taints that the pod tolerates. Default: `[]`."""
    topologySpreadConstraints: NotRequired[list[TopologySpreadConstraint]]
    """How evenly pods have to be spread over domains. Default: `[]`."""
    connections: NotRequired[list[PodConnection]]
    """Pods that the pod talks with, so that it is preferred in their domains. Kubernetes has
    no such field. Default: `[]`.
    """
    dataAffinity: NotRequired[DataAffinity | None]
    """Rules about the data that nodes have. Kubernetes has no such field."""
    schedulingGates: NotRequired[list[PodSchedulingGate]]
    """While there are any, the pod is not tried. Default: `[]`."""
    schedulerName: NotRequired[str]
    """The scheduling profile that places the pod. Default: `"default-scheduler"`."""
    priority: NotRequired[int | None]
    """Pods with a higher priority are tried first."""
    priorityClassName: NotRequired[str]
    """Name of the class that gives the pod its priority. Default: `""`."""
    preemptionPolicy: NotRequired[Literal["Never", "PreemptLowerPriority"]]
    """Never: no pod is proposed to make room for this one. Default:
    `"PreemptLowerPriority"`.
    """
    runtimeClassName: NotRequired[str]
    """Name of the RuntimeClass, whose overhead, node selector and tolerations the pod gets
    when it is created. Default: `""`.
    """
    activeDeadlineSeconds: NotRequired[int | None]
    """How long the pod may run; read by quota scopes."""
    resourceClaims: NotRequired[list[PodResourceClaim]]
    """Claims to devices, which the pod is given together with its node. With other values of
    the setting `deviceClaims` it is refused, or they are passed over. Default: `[]`.
    """
    volumes: NotRequired[list[Volume]]
    """What the pod's containers mount; claims and disks decide where it can go. Default:
    `[]`.
    """
    nodeName: NotRequired[str | None]
    """The node that the pod is bound to; absent while it is pending."""
    schedulingGroup: NotRequired[PodSchedulingGroup | None]
    """The PodGroup that the pod is a member of."""
    workloadRef: NotRequired[WorkloadReference | None]
    """The pod group of a Workload that the pod is a member of."""


class PodStatus(TypedDict):
    """What is known of a pod's life. It is stored as sent, with what Moorage has written
    into it.
    """

    phase: NotRequired[str | None]
    """Pending, Running, Succeeded, Failed or Unknown; finished pods hold nothing."""
    startTime: NotRequired[str | None]
    """Since when it runs; of pods of one priority, preemption evicts the youngest first."""
    nominatedNodeName: NotRequired[str | None]
    """The node on which preemption makes room for the pod."""
    conditions: NotRequired[list[PodCondition] | None]
    """What is known of the pod, one condition for each type."""
    containerStatuses: NotRequired[list[ContainerStatus] | None]
    """Resources granted to running containers."""
    initContainerStatuses: NotRequired[list[ContainerStatus] | None]
    """Resources granted to running init containers."""
    resources: NotRequired[ResourceRequirements | None]
    """Requests and limits of the pod as a whole, as they are in force."""
    allocatedResources: NotRequired[dict[str, str | int | float] | None]
    """What the node has granted the pod as a whole."""
    resourceClaimStatuses: NotRequired[list[PodResourceClaimStatus] | None]
    """Claims that were made from templates, one for each."""


class PodTemplate(TypedDict):
    """A PodTemplateSpec; its name is the prefix of the pods' names."""

    metadata: ObjectMeta
    """Name, labels and identity."""
    spec: PodSpec
    """The spec that all pods of the template share."""


class PodWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Pod."""

    kind: Literal["Pod"]
    """Kind of the object."""
    object: Pod
    """The object as of this revision; of a deleted one the last state."""


class PortworxVolumeSource(TypedDict):
    """A volume of Portworx."""

    volumeID: str
    """Name of the volume."""


class PreferredData(TypedDict):
    """Data that a pod should be near, and how much that counts."""

    weight: int
    """How much the preference counts, from 1 to 100."""
    dataSet: str
    """Name of a DataSet of the pod's namespace."""


class PreferredSchedulingTerm(TypedDict):
    """A node selector term and how much it counts."""

    weight: int
    """How much the preference counts, from 1 to 100."""
    preference: NodeSelectorTerm
    """The node selector term that is preferred."""


class Prefilter(TypedDict):
    """A plugin whose PreFilter rejected every node."""

    plugin: str
    """The plugin."""
    code: str
    """Its verdict in Kubernetes' words."""
    reasons: list[str]
    """Its reasons."""


class Principal(TypedDict):
    """Somebody who may make requests."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    createdAt: str
    """When it was made, RFC 3339 in UTC."""
    tokens: list[Token]
    """Its tokens, the oldest first."""


class PrincipalList(TypedDict):
    """All principals, by name."""

    items: list[Principal]
    """The principals."""
    kind: NotRequired[str]
    """What this is. Default: `"PrincipalList"`."""


class PrincipalSettings(TypedDict):
    """What PUT of a principal or a group takes."""

    grants: list[GrantSettings]
    """All its grants."""


class PriorityClass(TypedDict):
    """A Kubernetes PriorityClass, which `apply` takes as an entry of `priorityClasses`."""

    value: int
    """The priority of pods of this class."""
    globalDefault: NotRequired[bool]
    """Whether pods that name no class get this one; at most one class has it. Default:
    `false`.
    """
    preemptionPolicy: NotRequired[Literal["Never", "PreemptLowerPriority"]]
    """Never: no pod is proposed to make room for one of this class. Default:
    `"PreemptLowerPriority"`.
    """
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"scheduling.k8s.io/v1"`."""
    kind: NotRequired[Literal["PriorityClass"]]
    """Kubernetes kind of the object. Default: `"PriorityClass"`."""


class PriorityClassEntry(TypedDict):
    """An entry that says more than a number."""

    value: int
    """The priority of pods of this class."""
    globalDefault: NotRequired[bool]
    """Whether pods that name no class get this one; at most one class has it. Default:
    `false`.
    """
    preemptionPolicy: NotRequired[Literal["Never", "PreemptLowerPriority"]]
    """Never: no pod is proposed to make room for one of this class. Default:
    `"PreemptLowerPriority"`.
    """


class Problem(TypedDict):
    """What went wrong (RFC 9457)."""

    type: str
    """The page that explains this code."""
    code: str
    """Stable name of what went wrong, in CamelCase."""
    title: str
    """What the code means, always the same."""
    status: int
    """The answer's HTTP status."""
    detail: str
    """What went wrong this time, for people."""
    instance: str
    """The path that was asked."""
    requestId: NotRequired[str]
    """The id of the request, as in `X-Request-ID`; the server's log and the audit have it,
    too. Default: `""`.
    """
    errors: NotRequired[list[FieldError] | None]
    """Every wrong field, all at once; of a binding that is not confirmed, every rule that
    does not hold.
    """
    reasons: NotRequired[dict[str, list[str]] | None]
    """Why a pod does not fit the node: what each plugin says. Why it cannot be evicted:
    `DisruptionBudget`.
    """


class Profile(TypedDict):
    """A profile as configured."""

    schedulerName: NotRequired[str]
    """The `spec.schedulerName` that selects the profile. Default: `"default-scheduler"`."""
    plugins: NotRequired[Plugins]
    """Plugins switched on and off, and their weights."""
    pluginConfig: NotRequired[list[PluginConfig]]
    """Arguments of plugins. Default: `[]`."""
    extenders: NotRequired[list[Extender]]
    """Services that are asked, in this order, after the profile's own filters. Default:
    `[]`.
    """


class Proposal(TypedDict):
    """Where room can be made for a pod that fits nowhere, at the least cost."""

    victims: list[PodRef]
    """The pods that the caller may see, the most important first."""
    otherVictims: NotRequired[int]
    """How many more there are, of namespaces that the caller may not read; absent if there
    are none.
    """
    budgetViolations: int
    """How many of them leave although their disruption budgets allow no more of that."""
    nodeName: str
    """The node that costs least, as Kubernetes compares them."""
    candidates: NotRequired[dict[str, ProposedVictims]]
    """All nodes on which room can be made; only with Full explanations."""


class ProposedVictims(TypedDict):
    """The pods that would have to leave one node so that another pod fits there."""

    victims: list[PodRef]
    """The pods that the caller may see, the most important first."""
    otherVictims: NotRequired[int]
    """How many more there are, of namespaces that the caller may not read; absent if there
    are none.
    """
    budgetViolations: int
    """How many of them leave although their disruption budgets allow no more of that."""


class ProtectedPods(TypedDict):
    """Placed pods that stay where they are; if both fields are given, one of them has to
    hold.
    """

    priority: NotRequired[int | None]
    """Pods of at least this priority."""
    selector: NotRequired[LabelSelector | None]
    """Pods with such labels."""


class QuotaScopeSelector(TypedDict):
    """Scopes with operators; a pod has to be in all of them."""

    matchExpressions: NotRequired[list[MatchScope] | None]
    """The scopes; PriorityClass compares the pod's class with `values`."""


class RBDVolumeSource(TypedDict):
    """An image in a Ceph cluster."""

    monitors: list[str]
    """Addresses of the cluster's monitors."""
    image: str
    """Name of the image."""
    pool: NotRequired[str]
    """Name of the pool that it is in. Default: `"rbd"`."""
    readOnly: NotRequired[bool]
    """Whether it is only read, so that pods on one node may share it. Default: `false`."""


class ReadableRevisions(TypedDict):
    """Which revisions of a cluster can be read."""

    revision: int
    """The present revision, the newest that can be read."""
    oldestRevision: int
    """The oldest revision at which the configuration and objects of every kind can be read."""
    oldestByKind: dict[str, int]
    """The oldest revision at which all objects of a kind can be read. Later revisions can be
    read as well.
    """
    at: NotRequired[str | None]
    """When the revision that was asked about was committed; absent if the log does not, or
    no longer, tell.
    """


class Readiness(TypedDict):
    """Whether this process can serve."""

    status: Literal["ok"]
    """Always `ok`; a process that cannot serve answers 503 instead."""


class RemovePods(TypedDict):
    """Placed pods go."""

    op: Literal["RemovePods"]
    """Tells which of the types it is."""
    namespace: str
    """The namespace of these pods."""
    names: list[str]
    """The pods."""


class Repair(TypedDict):
    """Changes after which the pod fits, and of which none can be left out."""

    changes: list[
        DropRule
        | AddToleration
        | LowerRequest
        | UncordonNodes
        | SetLabels
        | SetTaints
        | AddNodes
        | RemovePods
    ]
    """The changes, those of the pod first."""
    places: str
    """The node that the pod then gets."""
    why: str
    """Why these changes help, for people."""
    moves: NotRequired[list[RepairMove]]
    """Where the pods that go would find room, one after the other; absent if none goes."""


class RepairMove(TypedDict):
    """A pod that goes, and the node that would take it then."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    to: str | None
    """The node that it would get once the other one is there; null if there is none for it."""


class RepairsAnswer(TypedDict):
    """The repairs of a pod, the least ones first."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    fits: bool
    """Whether the pod fits as everything is now; then there are no repairs."""
    message: str | None
    """Why the pod fits nowhere; null if it does."""
    repairs: list[Repair]
    """The repairs, by the number of their changes, in which each pod that goes counts as
    one.
    """
    complete: bool
    """Whether the search came to its end; if not, there may be other repairs, and smaller
    ones.
    """
    unfinished: str | None
    """What ended the search early; null if nothing did."""


class ReplicaSet(TypedDict):
    """A Kubernetes ReplicaSet. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: NotRequired[ReplicaSetSpec]
    """Which pods it manages."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"apps/v1"`."""
    kind: NotRequired[Literal["ReplicaSet"]]
    """Kubernetes kind of the object. Default: `"ReplicaSet"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ReplicaSetList(TypedDict):
    """Objects of the kind ReplicaSet, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ReplicaSet]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ReplicaSetList"]]
    """Kubernetes kind of the object. Default: `"ReplicaSetList"`."""


class ReplicaSetSpec(TypedDict):
    """Which pods a replica set manages. Other fields are kept and returned as they are."""

    selector: NotRequired[LabelSelector | None]
    """Selects its pods."""
    replicas: NotRequired[int]
    """How many pods there should be. Default: `1`."""


class ReplicaSetWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ReplicaSet."""

    kind: Literal["ReplicaSet"]
    """Kind of the object."""
    object: ReplicaSet
    """The object as of this revision; of a deleted one the last state."""


class ReplicationController(TypedDict):
    """A Kubernetes ReplicationController. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: NotRequired[ReplicationControllerSpec]
    """Which pods it manages."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ReplicationController"]]
    """Kubernetes kind of the object. Default: `"ReplicationController"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ReplicationControllerList(TypedDict):
    """Objects of the kind ReplicationController, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ReplicationController]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ReplicationControllerList"]]
    """Kubernetes kind of the object. Default: `"ReplicationControllerList"`."""


class ReplicationControllerSpec(TypedDict):
    """Which pods a controller manages. Other fields are kept and returned as they are."""

    selector: NotRequired[dict[str, str] | None]
    """Labels that its pods have."""
    replicas: NotRequired[int]
    """How many pods there should be. Default: `1`."""


class ReplicationControllerWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ReplicationController."""

    kind: Literal["ReplicationController"]
    """Kind of the object."""
    object: ReplicationController
    """The object as of this revision; of a deleted one the last state."""


class RequestedToCapacityRatio(TypedDict):
    """How a node's score follows from its utilization, by rising utilization."""

    shape: NotRequired[list[ShapePoint]]
    """Scores by utilization, interpolated between the points. Default: `[]`."""


class RequiredData(TypedDict):
    """Data that a pod cannot do without."""

    dataSet: str
    """Name of a DataSet of the pod's namespace."""


class ReservationComparison(TypedDict):
    """Says that a node is reserved here for the pod, as part of a group that is placed in
    several clusters.
    """

    group: str
    """The id of the group."""
    home: str
    """The name of the cluster that decides whether the group is placed."""


class ResourceClaim(TypedDict):
    """A Kubernetes ResourceClaim. Fields that scheduling does not read are kept and returned
    as they are.
    """

    spec: NotRequired[ResourceClaimSpec]
    """What is claimed."""
    status: NotRequired[ResourceClaimStatus]
    """What it was given."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"resource.k8s.io/v1"`."""
    kind: NotRequired[Literal["ResourceClaim"]]
    """Kubernetes kind of the object. Default: `"ResourceClaim"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ResourceClaimList(TypedDict):
    """Objects of the kind ResourceClaim, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ResourceClaim]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ResourceClaimList"]]
    """Kubernetes kind of the object. Default: `"ResourceClaimList"`."""


class ResourceClaimSpec(TypedDict):
    """What is claimed."""

    devices: NotRequired[DeviceClaim]
    """The devices."""


class ResourceClaimStatus(TypedDict):
    """What a claim was given, and for whom."""

    allocation: NotRequired[AllocationResult | None]
    """What it was given; absent: nothing yet."""
    reservedFor: NotRequired[list[ConsumerReference]]
    """Who may use it; at most 256. Default: `[]`."""
    devices: NotRequired[list[AllocatedDevice]]
    """What drivers say about the devices. Default: `[]`."""


class ResourceClaimTemplate(TypedDict):
    """A Kubernetes ResourceClaimTemplate. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: NotRequired[TemplateSpec]
    """The claims that are made, each for one pod."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"resource.k8s.io/v1"`."""
    kind: NotRequired[Literal["ResourceClaimTemplate"]]
    """Kubernetes kind of the object. Default: `"ResourceClaimTemplate"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ResourceClaimTemplateList(TypedDict):
    """Objects of the kind ResourceClaimTemplate, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ResourceClaimTemplate]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ResourceClaimTemplateList"]]
    """Kubernetes kind of the object. Default: `"ResourceClaimTemplateList"`."""


class ResourceClaimTemplateWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ResourceClaimTemplate."""

    kind: Literal["ResourceClaimTemplate"]
    """Kind of the object."""
    object: ResourceClaimTemplate
    """The object as of this revision; of a deleted one the last state."""


class ResourceClaimWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ResourceClaim."""

    kind: Literal["ResourceClaim"]
    """Kind of the object."""
    object: ResourceClaim
    """The object as of this revision; of a deleted one the last state."""


class ResourcePool(TypedDict):
    """The pool that a slice is of."""

    name: str
    """Its name, unique for the driver."""
    generation: NotRequired[int]
    """Raised by the driver with every change: slices of an older generation do not count.
    Default: `0`.
    """
    resourceSliceCount: NotRequired[int]
    """The number of slices of which the pool is made: while some are missing, no device of
    it is given. Default: `1`.
    """


class ResourceQuota(TypedDict):
    """A Kubernetes ResourceQuota."""

    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ResourceQuota"]]
    """Kubernetes kind of the object. Default: `"ResourceQuota"`."""
    spec: NotRequired[ResourceQuotaSpec | None]
    """What is limited."""
    status: NotRequired[ResourceQuotaStatus | None]
    """What is used. Watches and exports leave it out: it changes with every pod."""


class ResourceQuotaList(TypedDict):
    """Quotas, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ResourceQuota]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ResourceQuotaList"]]
    """Kubernetes kind of the object. Default: `"ResourceQuotaList"`."""


class ResourceQuotaSpec(TypedDict):
    """How much the pods of a namespace may use, and which pods are meant."""

    hard: NotRequired[dict[str, str | int | float] | None]
    """Limits by resource: `pods`, `requests.…`, `limits.…`, `cpu`, `memory`,
    `opportunity.…`.
    """
    scopes: NotRequired[list[str] | None]
    """Scopes that a pod has to be in to count; all of them."""
    scopeSelector: NotRequired[QuotaScopeSelector | None]
    """Scopes that are given with operators; a pod has to be in all of them, too."""


class ResourceQuotaStatus(TypedDict):
    """What is used of a quota, exactly as of the answer's revision; ignored where it is
    sent.
    """

    hard: NotRequired[dict[str, str | int | float] | None]
    """The limits, as in `spec`."""
    used: NotRequired[dict[str, str | int | float] | None]
    """What the pods that are covered are charged, by resource."""


class ResourceQuotaWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ResourceQuota."""

    kind: Literal["ResourceQuota"]
    """Kind of the object."""
    object: ResourceQuota
    """The object as of this revision; of a deleted one the last state."""


class ResourceRequirements(TypedDict):
    """`requests` are already defaulted from `limits`."""

    requests: NotRequired[dict[str, str | int | float] | None]
    """What is set aside, by resource name; taken from `limits` where absent."""
    limits: NotRequired[dict[str, str | int | float] | None]
    """The most that may be used, by resource name."""


class ResourceSlice(TypedDict):
    """A Kubernetes ResourceSlice. Fields that scheduling does not read are kept and returned
    as they are.
    """

    spec: ResourceSliceSpec
    """The devices."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"resource.k8s.io/v1"`."""
    kind: NotRequired[Literal["ResourceSlice"]]
    """Kubernetes kind of the object. Default: `"ResourceSlice"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ResourceSliceList(TypedDict):
    """Objects of the kind ResourceSlice, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[ResourceSlice]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ResourceSliceList"]]
    """Kubernetes kind of the object. Default: `"ResourceSliceList"`."""


class ResourceSliceSpec(TypedDict):
    """The devices that a driver has somewhere. Other fields are kept and returned as they
    are.
    """

    driver: str
    """Name of the driver."""
    pool: ResourcePool
    """The pool of which the devices are."""
    nodeName: NotRequired[str | None]
    """The node that reaches the devices."""
    nodeSelector: NotRequired[NodeSelector | None]
    """Selects the nodes that reach the devices."""
    allNodes: NotRequired[bool]
    """All nodes reach the devices. Default: `false`."""
    perDeviceNodeSelection: NotRequired[bool | None]
    """Whether each device states the nodes that can access it. In Kubernetes v1.35, such a
    slice is ignored.
    """
    sharedCounters: NotRequired[list[CounterSet]]
    """Counters that devices in other slices of the pool consume; such a slice has no
    devices. Default: `[]`.
    """
    devices: NotRequired[list[SliceDevice]]
    """The devices. Default: `[]`."""


class ResourceSliceWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a ResourceSlice."""

    kind: Literal["ResourceSlice"]
    """Kind of the object."""
    object: ResourceSlice
    """The object as of this revision; of a deleted one the last state."""


class ResourceTotal(TypedDict):
    """One resource of all nodes together."""

    allocatable: str
    """What all nodes have."""
    requested: str
    """What the pods on them have requested."""
    utilization: float
    """The second divided by the first, rounded to four digits; 0 if there is nothing to
    request.
    """
    largestFree: str
    """The most that a single node has left that takes new pods."""


class RulesOrigin(TypedDict):
    """An annotation of the pod from which some of its rules are."""

    annotation: str
    """The key of the annotation."""
    mode: Literal["Add", "Replace"]
    """Whether they were added to those of the spec, or count in their place."""
    rules: list[str]
    """Where they stand among all rules of the pod, as other answers name them: after those
    of the spec, unless they replace these.
    """


class RuntimeClass(TypedDict):
    """A Kubernetes RuntimeClass. Fields that scheduling does not read are kept and returned
    as they are.
    """

    handler: str
    """What the nodes call the runtime."""
    overhead: NotRequired[Overhead | None]
    """What a pod costs beside its containers."""
    scheduling: NotRequired[RuntimeClassScheduling | None]
    """Where pods can go; absent: to all nodes."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"node.k8s.io/v1"`."""
    kind: NotRequired[Literal["RuntimeClass"]]
    """Kubernetes kind of the object. Default: `"RuntimeClass"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class RuntimeClassList(TypedDict):
    """Objects of the kind RuntimeClass, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[RuntimeClass]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["RuntimeClassList"]]
    """Kubernetes kind of the object. Default: `"RuntimeClassList"`."""


class RuntimeClassScheduling(TypedDict):
    """Where pods of the class can go."""

    nodeSelector: NotRequired[dict[str, str] | None]
    """Labels of the nodes that support the class; added to the pods' own."""
    tolerations: NotRequired[list[Toleration]]
    """Taints of these nodes; added to what the pods tolerate. Default: `[]`."""


class RuntimeClassWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a RuntimeClass."""

    kind: Literal["RuntimeClass"]
    """Kind of the object."""
    object: RuntimeClass
    """The object as of this revision; of a deleted one the last state."""


class Service(TypedDict):
    """A Kubernetes Service. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: NotRequired[ServiceSpec]
    """Which pods it is for."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["Service"]]
    """Kubernetes kind of the object. Default: `"Service"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class ServiceList(TypedDict):
    """Objects of the kind Service, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Service]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["ServiceList"]]
    """Kubernetes kind of the object. Default: `"ServiceList"`."""


class ServiceSpec(TypedDict):
    """Which pods a service is for. Other fields are kept and returned as they are."""

    selector: NotRequired[dict[str, str] | None]
    """Labels that its pods have; absent or empty: it selects no pods."""


class ServiceWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Service."""

    kind: Literal["Service"]
    """Kind of the object."""
    object: Service
    """The object as of this revision; of a deleted one the last state."""


class SetLabels(TypedDict):
    """Nodes get labels beside those that they have."""

    op: Literal["SetLabels"]
    """Tells which of the types it is."""
    names: list[str]
    """The nodes."""
    labels: dict[str, str]
    """The labels."""


class SetTaints(TypedDict):
    """Nodes get these taints in place of those that they have."""

    op: Literal["SetTaints"]
    """Tells which of the types it is."""
    names: list[str]
    """The nodes."""
    taints: list[Taint]
    """All taints that the nodes have then."""


class ShapePoint(TypedDict):
    """A point of a piecewise linear function: utilization 0 to 100, score 0 to 10."""

    utilization: int
    """Utilization in percent, from 0 to 100."""
    score: int
    """Score at that utilization, from 0 to 10."""


class SimulationRequest(TypedDict):
    """A cluster written out, and the pods to place in it: exactly one of `pod` and `place`."""

    config: NotRequired[ClusterConfig | None]
    """Its settings."""
    namespaces: NotRequired[list[Namespace] | None]
    """Its namespaces."""
    nodes: NotRequired[list[Node] | None]
    """Its nodes."""
    objects: NotRequired[list[RuleObject] | None]
    """What rules read besides, such as services; each has its own `apiVersion` and `kind`."""
    pods: NotRequired[list[Pod] | None]
    """What is there already; those without `nodeName` are pending and not tried."""
    pod: NotRequired[Pod]
    """The one pod to place."""
    place: NotRequired[list[Pod]]
    """The pods to place in order, each seeing those before it."""
    policy: NotRequired[Literal["AllOrNothing", "BestEffort"]]
    """AllOrNothing places all of `place`, or none. Default: `"BestEffort"`."""
    preemption: NotRequired[Literal["Never", "Propose"]]
    """Propose says of each pod that fits nowhere which pods of lower priority would have to
    leave which node. Members of groups get no proposals. Default: `"Never"`.
    """
    preemptionScope: NotRequired[Literal["Domains", "Node"]]
    """Node: only pods of that node would have to leave, as in Kubernetes. Domains: also pods
    on other nodes because of which a rule of anti-affinity or a hard spread constraint
    refuses the node. Default: `"Node"`.
    """
    compareTo: NotRequired[Literal["1.35", "1.36", "1.37"] | None]
    """Another Kubernetes version: each result says which node its kube-scheduler chooses
    (`difference`), if another one. Each version places all pods in turn, so that later
    pods see its own choices.
    """


class SliceDevice(TypedDict):
    """A device of a slice."""

    name: str
    """Its name, unique in the pool."""
    attributes: NotRequired[dict[str, DeviceAttribute]]
    """What the device is like, by name; the domain of a name without one is the driver."""
    capacity: NotRequired[dict[str, DeviceCapacity]]
    """How much it has, by name."""
    consumesCounters: NotRequired[list[CounterConsumption]]
    """What it takes of counters that the pool shares. In Kubernetes v1.35 such a device is
    never given. Default: `[]`.
    """
    bindingConditions: NotRequired[list[str]]
    """Conditions for which binding waits. A device that has any is never given. Default:
    `[]`.
    """
    bindsToNode: NotRequired[bool]
    """A claim that is given the device can be used only on the node for which it was given.
    Default: `false`.
    """
    taints: NotRequired[list[DeviceTaint]]
    """Keep claims that do not tolerate them away; not read in Kubernetes v1.35. Default:
    `[]`.
    """
    nodeName: NotRequired[str | None]
    """The node that reaches the device, in a slice with `perDeviceNodeSelection`."""
    nodeSelector: NotRequired[NodeSelector | None]
    """Selects the nodes that reach the device, in a slice with `perDeviceNodeSelection`."""
    allNodes: NotRequired[bool]
    """All nodes reach the device, in a slice with `perDeviceNodeSelection`. Default:
    `false`.
    """


class SpreadOverClusters(TypedDict):
    """One topology spread constraint of the pod with the key `moorage.dev/cluster`, in this
    cluster.
    """

    maxSkew: int
    """By how many matching pods two clusters may differ."""
    required: bool
    """Whether the constraint filters clusters; if not, it only ranks them."""
    eligible: bool
    """Whether any node of the cluster counts for the constraint; if not, the cluster is no
    domain.
    """
    pods: int
    """The matching pods on nodes of this cluster."""
    countsItself: bool
    """Whether the pod matches its own constraint."""


class StatefulSet(TypedDict):
    """A Kubernetes StatefulSet. Fields that scheduling does not read are kept and returned
    as they are.
    """

    spec: NotRequired[StatefulSetSpec]
    """Which pods it manages."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"apps/v1"`."""
    kind: NotRequired[Literal["StatefulSet"]]
    """Kubernetes kind of the object. Default: `"StatefulSet"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class StatefulSetList(TypedDict):
    """Objects of the kind StatefulSet, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[StatefulSet]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["StatefulSetList"]]
    """Kubernetes kind of the object. Default: `"StatefulSetList"`."""


class StatefulSetSpec(TypedDict):
    """Which pods a stateful set manages. Other fields are kept and returned as they are."""

    selector: NotRequired[LabelSelector | None]
    """Selects its pods."""
    replicas: NotRequired[int]
    """How many pods there should be. Default: `1`."""


class StatefulSetWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a StatefulSet."""

    kind: Literal["StatefulSet"]
    """Kind of the object."""
    object: StatefulSet
    """The object as of this revision; of a deleted one the last state."""


class StatusReport(TypedDict):
    """What one pod's `status` has to be changed to."""

    namespace: NotRequired[str]
    """Namespace of the pod. Default: `"default"`."""
    name: str
    """Name of the pod."""
    uid: NotRequired[str | None]
    """If given, its `metadata.uid` has to be this one."""
    resourceVersion: NotRequired[str | None]
    """If given, its `metadata.resourceVersion` has to be this one."""
    status: dict[str, Any]
    """A merge patch of its status: fields that are absent stay, null removes a field."""


class StatusReports(TypedDict):
    """Reports on many pods."""

    items: list[StatusReport]
    """One for each pod; for one pod there may be several, which count in their order."""


class StorageClass(TypedDict):
    """A Kubernetes StorageClass. Fields that scheduling does not read are kept and returned
    as they are.
    """

    provisioner: str
    """Name of the driver that makes volumes of the class."""
    volumeBindingMode: NotRequired[str]
    """Immediate, or WaitForFirstConsumer: claims are bound when a pod that uses them is
    placed. Default: `"Immediate"`.
    """
    allowedTopologies: NotRequired[list[TopologySelectorTerm]]
    """The nodes for which volumes can be made: any of these; none: all. Default: `[]`."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"storage.k8s.io/v1"`."""
    kind: NotRequired[Literal["StorageClass"]]
    """Kubernetes kind of the object. Default: `"StorageClass"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class StorageClassList(TypedDict):
    """Objects of the kind StorageClass, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[StorageClass]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["StorageClassList"]]
    """Kubernetes kind of the object. Default: `"StorageClassList"`."""


class StorageClassWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a StorageClass."""

    kind: Literal["StorageClass"]
    """Kind of the object."""
    object: StorageClass
    """The object as of this revision; of a deleted one the last state."""


class StorageRequirements(TypedDict):
    """How large a volume has to be."""

    requests: NotRequired[dict[str, str | int | float] | None]
    """The least size, as `storage`."""


class StrategicMergePatch(TypedDict):
    """A merge patch that merges lists by the key that Kubernetes gives them."""


class Summary(TypedDict):
    """The answer to `explain: Summary`: how many nodes were first rejected for which reason."""

    message: str | None
    """A sentence for people that says the same; null if there is nothing to say."""
    feasibleCount: int
    """How many nodes passed every filter."""
    nodes: int
    """How many nodes there are."""
    reasons: dict[str, dict[str, int]]
    """Plugin to reason to the number of nodes that it rejected first."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    semantics: str
    """The preset of rules that was applied: Kubernetes or DesignDocuments."""
    exemptions: NotRequired[list[Exemption]]
    """The rules that were left out; absent if none was."""
    rulesFrom: NotRequired[RulesOrigin]
    """The annotation from which rules of the pod are; absent if all are in its spec."""


class Taint(TypedDict):
    """Keeps pods off a node that do not tolerate it."""

    key: str
    """Name of the taint."""
    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]
    """What the taint does to pods that do not tolerate it."""
    value: NotRequired[str]
    """Value of the taint. Default: `""`."""
    timeAdded: NotRequired[str | None]
    """When the taint was added, RFC 3339."""


class TemplateSpec(TypedDict):
    """The claims that are made."""

    spec: NotRequired[ResourceClaimSpec]
    """What they claim."""


class Token(TypedDict):
    """A token of a principal, without its secret."""

    id: str
    """What it is called, as in `mrg_<id>_<secret>`."""
    description: str
    """What it is for."""
    createdAt: str
    """When it was made, RFC 3339 in UTC."""
    expiresAt: NotRequired[str | None]
    """Until when it is taken; absent: for good."""
    lastUsedAt: NotRequired[str | None]
    """When it was used last, within a minute or so; absent: never."""


class TokenSettings(TypedDict):
    """What a new token is to be."""

    description: NotRequired[str]
    """What it is for. Default: `""`."""
    expiresInSeconds: NotRequired[int | None]
    """How long it is taken from now on; absent: for good."""


class Toleration(TypedDict):
    """`Lt` and `Gt` are behind a gate that Kubernetes has off up to v1.37, so they are
    refused.
    """

    key: NotRequired[str]
    """Name of the taints tolerated; empty with Exists means all. Default: `""`."""
    operator: NotRequired[Literal["", "Equal", "Exists"]]
    """Equal compares `value`, Exists does not. Default: `"Equal"`."""
    value: NotRequired[str]
    """Value of the taints tolerated. Default: `""`."""
    effect: NotRequired[Literal["", "NoExecute", "NoSchedule", "PreferNoSchedule"]]
    """Effect that is tolerated; empty means every effect. Default: `""`."""
    tolerationSeconds: NotRequired[int | None]
    """How long NoExecute is tolerated once the taint was added; None: for ever. Placing
    ignores it.
    """


class TopologyAnswer(TypedDict):
    """The domains of one topology key, by value."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    key: str
    """The topology key."""
    domains: list[TopologyDomain]
    """Its domains, by value."""
    nodesWithoutKey: list[str]
    """Nodes that lack the label."""


class TopologyConstraint(TypedDict):
    """All members of the group have to be in one domain."""

    key: str
    """The label of nodes whose values are the domains."""


class TopologyDomain(TypedDict):
    """One value of a topology key."""

    value: str
    """The label's value."""
    nodes: list[str]
    """The nodes that carry it."""
    pods: int
    """How many pods are placed on these nodes, of those that the caller may read."""
    free: dict[str, str]
    """Allocatable less requested, by resource, as quantities; negative where over-committed."""


class TopologySelectorLabelRequirement(TypedDict):
    """A label that nodes have to have."""

    key: str
    """Label key."""
    values: list[str]
    """The values, of which the node has to have one."""


class TopologySelectorTerm(TypedDict):
    """Labels that nodes have to have."""

    matchLabelExpressions: NotRequired[list[TopologySelectorLabelRequirement]]
    """Requirements that all have to hold; none match no node. Default: `[]`."""


class TopologySpreadConstraint(TypedDict):
    """How evenly matching pods have to be spread over domains."""

    topologyKey: str
    """Node label whose values divide the nodes into domains."""
    maxSkew: NotRequired[int]
    """By how many matching pods two domains may differ. Default: `1`."""
    whenUnsatisfiable: NotRequired[Literal["DoNotSchedule", "FallbackWhenFull", "ScheduleAnyway"]]
    """Whether the constraint filters nodes or only ranks them. `FallbackWhenFull`, which
    Kubernetes does not have, filters while that leaves a node on which the pod fits, and
    else only ranks. Default: `"DoNotSchedule"`.
    """
    labelSelector: NotRequired[LabelSelector | None]
    """Which pods the rule is about; null selects no pod, `{}` every pod."""
    minDomains: NotRequired[int | None]
    """With fewer eligible domains, the smallest count is taken as zero."""
    nodeAffinityPolicy: NotRequired[Literal["Honor", "Ignore"]]
    """Whether only nodes that the pod's node affinity lets in make up the domains. Default:
    `"Honor"`.
    """
    nodeTaintsPolicy: NotRequired[Literal["Honor", "Ignore"]]
    """Whether only nodes whose taints the pod tolerates make up the domains. Default:
    `"Ignore"`.
    """
    matchLabelKeys: NotRequired[list[str] | None]
    """Pod label keys whose values, taken from the pod itself, are added to the selector when
    the pod is created.
    """
    namespaceSelector: NotRequired[LabelSelector | None]
    """Selects namespaces by their labels: the pods in these count, and no others; `{}` means
    all, absent the pod's own alone. Kubernetes has no such field.
    """


class UncordonNodes(TypedDict):
    """Nodes take new pods again."""

    op: Literal["UncordonNodes"]
    """Tells which of the types it is."""
    names: list[str]
    """The nodes."""


Unplaced = TypedDict(
    "Unplaced",
    {
        "namespace": "str",
        "name": "str",
        "from": "NotRequired[str]",
        "reason": "str",
        "message": "str",
        "explanation": "NotRequired[Explanation | Summary]",
    },
)
"""A pod for which the plan has no node, or that has to stay though too few others go."""


class Victims(TypedDict):
    """The pods that kube-scheduler would have leave one node, as it knows them."""

    Pods: NotRequired[list[dict[str, Any]] | None]
    """The pods; they are not read, since Moorage chooses among its own."""
    NumPDBViolations: NotRequired[int]
    """How many of them leave against their disruption budgets; not read. Default: `0`."""


class ViolationItem(TypedDict):
    """One required rule that one placed pod breaks."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    nodeName: str
    """The node that the pod is on."""
    plugin: str
    """The filter that would refuse the pod there."""
    rule: str
    """The path of the rule in the pod's manifest, or in the configuration for default
    constraints.
    """
    execution: Literal["Ignored", "Required"]
    """Whether the rule only bound scheduling, or is required during execution, too."""
    reason: str
    """Why the node is not feasible, in kube-scheduler's words."""
    conflictsWith: list[PodName]
    """The first of the pods that anti-affinity matches, by namespace and name."""
    skew: int | None
    """By how many pods the domain exceeds the least one, if a spread constraint is broken."""
    since: str | None
    """When the rule broke; known only for pod affinity that is required during execution."""


class ViolationsAnswer(TypedDict):
    """All violations, by namespace, name and rule."""

    revision: int
    """The cluster's revision that the answer belongs to."""
    items: list[ViolationItem]
    """The objects themselves."""


class Volume(TypedDict):
    """A volume of a pod, with one source; of sources that are not named here scheduling
    reads nothing.
    """

    name: NotRequired[str]
    """Name of the volume. Default: `""`."""
    persistentVolumeClaim: NotRequired[PersistentVolumeClaimVolumeSource | None]
    """A claim to a volume that lasts longer than the pod."""
    ephemeral: NotRequired[EphemeralVolumeSource | None]
    """A volume whose claim is made for the pod and named after both."""
    gcePersistentDisk: NotRequired[GCEPersistentDiskVolumeSource | None]
    """A disk of Google's cloud."""
    awsElasticBlockStore: NotRequired[AWSElasticBlockStoreVolumeSource | None]
    """A disk of Amazon's cloud."""
    azureDisk: NotRequired[AzureDiskVolumeSource | None]
    """A disk of Microsoft's cloud."""
    cinder: NotRequired[CinderVolumeSource | None]
    """A disk of OpenStack."""
    portworxVolume: NotRequired[PortworxVolumeSource | None]
    """A volume of Portworx."""
    iscsi: NotRequired[ISCSIVolumeSource | None]
    """A disk in the network, by iSCSI."""
    rbd: NotRequired[RBDVolumeSource | None]
    """An image in a Ceph cluster."""
    image: NotRequired[ImageVolumeSource | None]
    """An image whose files the pod mounts."""


class VolumeAttachment(TypedDict):
    """A Kubernetes VolumeAttachment. Fields that scheduling does not read are kept and
    returned as they are.
    """

    spec: VolumeAttachmentSpec
    """Which volume is attached to which node."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"storage.k8s.io/v1"`."""
    kind: NotRequired[Literal["VolumeAttachment"]]
    """Kubernetes kind of the object. Default: `"VolumeAttachment"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class VolumeAttachmentList(TypedDict):
    """Objects of the kind VolumeAttachment, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[VolumeAttachment]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["VolumeAttachmentList"]]
    """Kubernetes kind of the object. Default: `"VolumeAttachmentList"`."""


class VolumeAttachmentSource(TypedDict):
    """What is attached."""

    persistentVolumeName: NotRequired[str]
    """Name of the volume. Default: `""`."""


class VolumeAttachmentSpec(TypedDict):
    """Which volume is attached to which node, and by whom."""

    attacher: str
    """Name of the driver."""
    nodeName: str
    """Name of the node."""
    source: NotRequired[VolumeAttachmentSource]
    """What is attached."""


class VolumeAttachmentWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a VolumeAttachment."""

    kind: Literal["VolumeAttachment"]
    """Kind of the object."""
    object: VolumeAttachment
    """The object as of this revision; of a deleted one the last state."""


class VolumeMount(TypedDict):
    """A volume as a container mounts it."""

    bindMountOptions: NotRequired[list[str]]
    """Options of the mount, for which the node has to declare the feature
    VolumeBindMountOptions. Default: `[]`.
    """


class VolumeNodeAffinity(TypedDict):
    """The nodes on which a volume can be used."""

    required: NotRequired[NodeSelector | None]
    """Selects the nodes; absent: all."""


class VolumeNodeResources(TypedDict):
    """What a driver can do on a node."""

    count: NotRequired[int | None]
    """How many volumes can be attached; absent: any number."""


class WaitingPod(TypedDict):
    """A pod that has to leave, but cannot be evicted now, or a new one that cannot be
    placed.
    """

    namespace: NotRequired[str]
    """Namespace of the pod. Default: `""`."""
    name: NotRequired[str]
    """Name of the pod. Default: `""`."""
    reason: NotRequired[str]
    """DisruptionBudget, Unschedulable or BreaksRule, as in the `unplaced` of a plan.
    Replace: NotReady, too, of a new pod for which the next wave waits, PodDiffers, of a
    pod that has the name of a new one, and GroupTooLarge and TooManyObjects, of a new pod
    that the bounds or `objects_max` keep away. EvictionsMax and Protected: the plan's
    `bounds` keep it. Rebalance: Unschedulable, too, if its node does not take it yet.
    Default: `""`.
    """
    message: NotRequired[str]
    """A sentence for people that says the same. Default: `""`."""
    budget: NotRequired[str | None]
    """The disruption budget that does not allow it, in the pod's namespace."""


class WatchCluster(TypedDict):
    """A cluster's configuration as of a change of it."""

    kind: NotRequired[Literal["Cluster"]]
    """What this is. Default: `"Cluster"`."""
    metadata: WatchClusterMeta
    """The cluster's name, and when its configuration changed."""
    config: ClusterConfig
    """Its settings; one that is absent has its default."""


class WatchClusterMeta(TypedDict):
    """The cluster's name, and when its configuration changed."""

    name: str
    """Name of the cluster."""
    resourceVersion: str
    """Revision of the change."""


class WatchMessage(TypedDict):
    """One message of a watch, as Server-Sent Events have them."""

    id: NotRequired[str]
    """The revision; absent in ERROR events."""
    event: Literal["ADDED", "BOOKMARK", "DELETED", "ERROR", "MODIFIED"]
    """What happened to the object."""
    data: str
    """A WatchEvent as JSON; of an ERROR event a Problem."""


class Webhook(TypedDict):
    """A webhook, without its secret."""

    name: str
    """Name of the webhook."""
    url: str
    """Where messages are sent."""
    events: Literal["Bindings"]
    """What is delivered."""
    namespace: NotRequired[str | None]
    """Only pods in this namespace; absent: all."""
    disabled: bool
    """Whether nothing is delivered for now."""
    createdAt: str
    """When it was made, RFC 3339 in UTC."""
    previousSecretUntil: NotRequired[str | None]
    """Until when messages are signed with the earlier secret as well, RFC 3339 in UTC."""
    status: WebhookStatus
    """How far deliveries are."""
    secret: NotRequired[str | None]
    """The key with which messages are signed, `whsec_…`; only told when it is made."""


class WebhookList(TypedDict):
    """All webhooks of a cluster, by name."""

    items: list[Webhook]
    """The webhooks."""
    kind: NotRequired[str]
    """What this is. Default: `"WebhookList"`."""


class WebhookPatch(TypedDict):
    """What PATCH of a webhook takes: the settings to change; null gives one its default."""

    url: NotRequired[str]
    """Where messages are sent by POST; it begins with `https://`."""
    events: NotRequired[Literal["Bindings"]]
    """What is delivered: Bindings are the records of `watchBindings`."""
    namespace: NotRequired[str | None]
    """Only pods in this namespace; null: all."""
    disabled: NotRequired[bool | None]
    """Whether nothing is delivered for now."""
    afterRevision: NotRequired[int | None]
    """The next record is the first one after this revision; absent: it goes on where it was."""


class WebhookPing(TypedDict):
    """What came of a test message."""

    acknowledged: bool
    """Whether the receiver answered with a status from 200 to 299."""
    status: NotRequired[int | None]
    """The status that the receiver answered; absent: there was no answer."""
    error: NotRequired[str | None]
    """Why the message was not acknowledged; absent: it was."""


class WebhookSettings(TypedDict):
    """What PUT of a webhook takes."""

    url: str
    """Where messages are sent by POST; it begins with `https://`."""
    events: Literal["Bindings"]
    """What is delivered: Bindings are the records of `watchBindings`."""
    namespace: NotRequired[str | None]
    """Only pods in this namespace; absent: all."""
    disabled: NotRequired[bool]
    """Whether nothing is delivered for now; it is delivered later, as far as the log reaches
    back. Default: `false`.
    """
    afterRevision: NotRequired[int | None]
    """The first record is the first one after this revision; absent: the present revision
    for a new webhook, and where it was for another.
    """


class WebhookStatus(TypedDict):
    """How far deliveries are."""

    revision: int
    """The receiver has acknowledged everything up to this revision."""
    behind: int
    """By how many revisions the cluster is further."""
    failures: int
    """How many attempts have failed one after the other."""
    stopped: bool
    """Whether nothing is sent any more after too many failures, or since the receiver
    answered 410; changing the webhook ends that.
    """
    lastDeliveredAt: NotRequired[str | None]
    """When the receiver last acknowledged a message, RFC 3339 in UTC; absent: never."""
    lastError: NotRequired[str | None]
    """Why the last attempt failed; absent: it did not."""
    nextAttemptAt: NotRequired[str | None]
    """Before this time nothing is sent, RFC 3339 in UTC; absent: no attempt has failed."""


class WeightedPodAffinityTerm(TypedDict):
    """A pod affinity term and how much it counts."""

    weight: int
    """How much the preference counts, from 1 to 100."""
    podAffinityTerm: PodAffinityTerm
    """The term that is preferred."""


class Workload(TypedDict):
    """A Kubernetes Workload. Fields that scheduling does not read are kept and returned as
    they are.
    """

    spec: WorkloadSpec
    """The groups of an application."""
    metadata: ObjectMeta
    """Name, labels and identity."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"scheduling.k8s.io/v1alpha1"`."""
    kind: NotRequired[Literal["Workload"]]
    """Kubernetes kind of the object. Default: `"Workload"`."""
    warnings: NotRequired[list[FieldWarning]]
    """In the answer to a write: fields that are passed over. Ignored where it is sent."""


class WorkloadList(TypedDict):
    """Objects of the kind Workload, by namespace and name."""

    unreadable: NotRequired[list[str]]
    """Objects missing from the list because their rows cannot be read, as `namespace/name`
    or `name`. Absent if there are none.
    """
    metadata: ListMeta
    """Name, labels and identity."""
    items: list[Workload]
    """The objects themselves."""
    apiVersion: NotRequired[str]
    """Kubernetes API version of the object. Default: `"v1"`."""
    kind: NotRequired[Literal["WorkloadList"]]
    """Kubernetes kind of the object. Default: `"WorkloadList"`."""


class WorkloadPodGroup(TypedDict):
    """A pod group within a Workload."""

    name: str
    """The name by which pods name it."""
    policy: PodGroupSchedulingPolicy
    """How its pods are placed."""


class WorkloadReference(TypedDict):
    """The group whose members get nodes together, as Kubernetes v1.35 has it."""

    name: str
    """Name of a Workload in the pod's namespace; until it exists, the pod waits."""
    podGroup: str
    """Name of a pod group of the Workload."""
    podGroupReplicaKey: NotRequired[str | None]
    """Tells the replicas of the pod group apart: each is a group of its own."""


class WorkloadSpec(TypedDict):
    """The groups of an application. Other fields are kept and returned as they are."""

    podGroups: NotRequired[list[WorkloadPodGroup]]
    """The pod groups that pods name in `workloadRef`; only in v1alpha1. Default: `[]`."""


class WorkloadWatchEvent(TypedDict):
    """The `data` of an event of a watch that is about a Workload."""

    kind: Literal["Workload"]
    """Kind of the object."""
    object: Workload
    """The object as of this revision; of a deleted one the last state."""


ApplicableObject = (
    Node
    | Namespace
    | Pod
    | ResourceQuota
    | PodGroup
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PodDisruptionBudget
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | DeviceClass
    | ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | RuntimeClass
    | LimitRange
    | Workload
    | DataSet
    | Plan
    | PriorityClass
)


RuleObject = (
    Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PodDisruptionBudget
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | DeviceClass
    | ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | RuntimeClass
    | LimitRange
    | Workload
    | DataSet
    | Plan
)
