"""Plans: hypothetical changes to a cluster, a goal, bounds, and the resulting steps."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from service.model.core.primitives import LabelSelector, Strict, Taint
from service.model.core.selectors import matches
from service.model.plans.plan import ProtectedPods
from service.model.plans.rebalance_objectives import Objective
from service.model.plans.rollouts import PodOwner, RolloutBounds, bounds_of
from service.model.registry.manifests import NodeManifest, PodManifest
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.choices import ChoiceDifference
from service.scheduler.protocol.placements import PodRef
from service.scheduler.protocol.repairs import Repair

Action = Literal["Place", "Cordon", "Evict", "Delete"]
PlanStatus = Literal["Planned", "Committed"]


class Domains(Strict, frozen=True, kw_only=True):
    """Topology domains: the nodes that have one of the values for a label."""

    key: str
    """Label key of nodes."""
    values: tuple[str, ...]
    """Values of the label."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a change selects: those that match every field given."""

    names: tuple[str, ...] | None = None
    """The names of the objects, or None for any."""
    selector: LabelSelector | None = None
    """A selector of the objects' labels."""
    topology: Domains | None = None
    """Domains: nodes that are in one of them, or pods on such nodes."""
    namespace: str | None = None
    """For pods: their namespace, or None for all in which the caller may place pods."""

    @property
    def named(self) -> float:
        """The number of objects selected by name, or infinity if objects are selected otherwise."""
        return float("inf") if self.names is None else len(self.names)


class RemoveNodes(msgspec.Struct, frozen=True):
    """Remove nodes, displacing their pods; pods that name their node are deleted."""

    nodes: Selection


class CordonNodes(msgspec.Struct, frozen=True):
    """Cordon nodes, so that they accept no new pods."""

    nodes: Selection


class UncordonNodes(msgspec.Struct, frozen=True):
    """Uncordon nodes, so that they accept new pods again."""

    nodes: Selection


class AddNodes(msgspec.Struct, frozen=True):
    """Add nodes named `<template's name>-0` and so on, assigned to the given domains in turn."""

    template: NodeManifest
    count: int
    topology: Domains | None = None


class SetLabels(msgspec.Struct, frozen=True):
    """Add or change labels of nodes; None removes a label."""

    nodes: Selection
    labels: Mapping[str, str | None]


class SetTaints(msgspec.Struct, frozen=True):
    """Replace all taints of nodes."""

    nodes: Selection
    taints: tuple[Taint, ...]


class RemovePods(msgspec.Struct, frozen=True):
    """Delete pods without displacing them."""

    pods: Selection


class PutPods(msgspec.Struct, frozen=True):
    """Add or replace pods; those with a `nodeName` are placed on that node."""

    pods: tuple[PodManifest, ...]


class SetConfig(msgspec.Struct, frozen=True):
    """Change settings of the cluster, as by a merge patch."""

    config: Mapping[str, Any]


class SetNamespaceLabels(msgspec.Struct, frozen=True):
    """Add or change labels of namespaces; None removes a label."""

    namespaces: Selection
    labels: Mapping[str, str | None]


PlanChange = (
    RemoveNodes
    | CordonNodes
    | UncordonNodes
    | AddNodes
    | SetLabels
    | SetTaints
    | RemovePods
    | PutPods
    | SetConfig
    | SetNamespaceLabels
)
"""A change to the fork."""

CHANGES: Mapping[str, type[PlanChange]] = {
    change.__name__: change for change in get_args(PlanChange)
}
"""The types of changes by the `op` that requests give them."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that pods get nodes: new pods, stored pods, or all displaced pods."""

    pods: tuple[PodManifest, ...] = ()
    pod_refs: tuple[PodRef, ...] = ()
    path: Literal["pods", "podRefs", "template"] = "pods"
    """The goal's field that holds the pods, for the paths in errors."""
    displaced: bool = False


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that nodes are cordoned and run only daemons."""

    nodes: Selection


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that `count` of the selected pods are removed with the least harm to the rest."""

    pods: Selection
    count: int


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that selected pods are placed better, by as few moves as possible."""

    pods: Selection
    objectives: tuple[Objective, ...]
    """The quantities to minimize, the most important first."""
    moves_max: int | None = None
    resource: str | None = None
    """Fragmentation: the resource whose free amounts should be concentrated."""
    block: int | None = None
    """Fragmentation: the amount that pods need at once on a node, in the units of nodes' amounts, or
    None for a whole node."""


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that `replicas` pods of a template replace the selected pods."""

    namespace: str
    """The namespace of the pods, old and new."""
    selector: LabelSelector | None = None
    """A selector of the old pods' labels, or None for any labels."""
    owner: PodOwner | None = None
    """The owner of the old pods, or None for any owner or none."""
    template: PodManifest
    """What the new pods have in common. They are named `<name>-0` and so on."""
    replicas: int
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None

    @property
    def bounds(self) -> RolloutBounds:
        """The bounds on existing and available pods between two waves."""
        return bounds_of(self.replicas, self.max_surge, self.max_unavailable)

    def is_about(self, pod: PodManifest) -> bool:
        """Return whether a pod of the namespace matches selector and owner; new pods may, too."""
        if self.selector is not None and not matches(self.selector, pod.labels):
            return False
        owner, controller = self.owner, pod.pod.controller
        if owner is None:
            return True
        return controller is not None and (controller.kind, controller.name) == (
            owner.kind,
            owner.name,
        )


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The goal to place one pod, or else to find the repairs that would let it fit."""

    pod: Place
    """The pod, new or stored."""
    changes_max: int
    """How many changes, of the pod and of nodes, a repair may have."""
    repairs_max: int
    """How many repairs are reported."""


class Compare(msgspec.Struct, frozen=True, kw_only=True):
    """The goal that placed pods are compared: which would get another node by changed settings."""

    pods: Selection


Goal = Place | Drain | Remove | Replace | Rebalance | Fit | Compare
"""The goal of a plan."""


class PlanBounds(Strict, frozen=True, kw_only=True):
    """What a plan may cost; what it does not reach within them is told as not tried."""

    evictions_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many pods may leave their nodes for the goal. Those that the changes displace or remove do not
    count."""

    moves_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many displaced or evicted pods may get another node."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """How long planning may take; the server has a limit of its own."""
    respect_budgets: bool = False
    """Remove, Fit: whether disruption budgets keep pods from going, as they do not in Kubernetes for
    Remove."""
    protect: ProtectedPods | None = None
    """Pods that do not leave their nodes for the goal, whoever asks."""


class PlanStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a plan."""

    action: Action
    """What is to be done. Place: a pod gets a node. Evict: a pod leaves its node; the one that comes in
    its place gets the node `to`, if it says so. Delete: a pod goes, and none comes in its place. Cordon: a
    node takes no new pods."""
    namespace: str | msgspec.UnsetType = msgspec.UNSET
    """Namespace of the pod; absent if the step is about a node."""
    name: str
    """Name of the pod or node."""
    from_node: str | msgspec.UnsetType = msgspec.field(name="from", default=msgspec.UNSET)
    """The node that the pod was on; absent if it was on none."""
    to: str | msgspec.UnsetType = msgspec.UNSET
    """The node that the pod gets; absent if it goes, and if the step is about a node."""
    wave: int
    """Steps of one wave may be taken together, in one commit; waves are taken in order."""
    reason: str
    """Why the step is taken."""


class PlanStepKey(NamedTuple):
    """What a step does, without its reason; plans with equal keys in the same order are equal."""

    action: str
    namespace: str | None
    name: str
    from_node: str | None
    to: str | None

    @classmethod
    def of(cls, step: PlanStep) -> "PlanStepKey":
        """Return the key of a step."""
        return cls(
            step.action,
            step.namespace or None,
            step.name,
            step.from_node or None,
            step.to or None,
        )


class Unplaced(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod for which the plan has no node, or that has to stay though too few others go."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    from_node: str | msgspec.UnsetType = msgspec.field(name="from", default=msgspec.UNSET)
    """The node that it was on; absent if it was on none."""
    reason: str
    """Unschedulable: it fits nowhere. DisruptionBudget: a budget does not allow that it leaves.
    BreaksRule: if it left, a required rule of another pod would not hold any more. Protected: the
    plan's bounds say that it stays. EvictionsMax, MovesMax, SecondsOver: it was not tried any more. MaxSurge, MaxUnavailable: a rolling release would have too many
    pods with it, or too few without it. Otherwise the rule that denies it a node, in CamelCase."""
    message: str
    """A sentence for people that says the same."""
    explanation: Any = msgspec.UNSET
    """The explanation that was asked for with `explain`; absent for None, and for all but the first of equal pods."""


class ResourceTotal(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource of all nodes together."""

    allocatable: str
    """What all nodes have."""
    requested: str
    """What the pods on them have requested."""
    utilization: float
    """The second divided by the first, rounded to four digits; 0 if there is nothing to request."""
    largest_free: str
    """The most that a single node has left that takes new pods."""


class ConstraintSkew(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How unevenly the pods of a topology spread constraint are spread."""

    namespace: str
    """Namespace of the pods that have the constraint."""
    topology_key: str
    """The label of nodes whose values are the domains."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """Whether the constraint is required."""
    max_skew: int
    """The skew that the constraint allows."""
    skew: int
    """The pods in the fullest eligible domain, less those in the emptiest one."""
    counted: int
    """How many pods the constraint counts, in all eligible domains together."""


class ObjectiveTotal(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one objective of a rebalance measures; less is better."""

    objective: Objective
    """The objective."""
    value: int
    """Violations: required rules that placed pods break. Skew: pods that domains have beyond the
    emptiest one's and `maxSkew`, over all `ScheduleAnyway` constraints. Preferences: the weights of
    preferred terms that hold, negated. Spread: the squares of the shares of cpu and memory that are
    requested, in thousandths, over all nodes. Packing: nodes with pods other than daemons.
    Fragmentation: what is free of the resource and part of no block."""
    tie_break: int | msgspec.UnsetType = msgspec.UNSET
    """What is less by the better of two states with equal values. Packing: the squares of Spread, negated.
    Fragmentation: the squares of the free amounts of nodes, in thousandths of the greatest amount that
    a node has, negated. Absent for other objectives."""


class PlanTotals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a cluster in figures."""

    nodes: int
    """Nodes."""
    pods: int
    """Pods on nodes, in the namespaces that the caller may read."""
    resources: dict[str, ResourceTotal]
    """Each resource that nodes have before the plan or after it: 0 if the last node that has it goes."""
    violations: int | msgspec.UnsetType = msgspec.UNSET
    """Required rules that placed pods break, in these namespaces; absent without `explain`."""
    skew: list[ConstraintSkew] | msgspec.UnsetType = msgspec.UNSET
    """The topology spread constraints of placed pods in these namespaces, the greatest skew first, at
    most a hundred; absent without `explain`."""
    objectives: list[ObjectiveTotal] | msgspec.UnsetType = msgspec.UNSET
    """Rebalance: what its objectives measure, in their order; what is about pods counts those of these
    namespaces. Absent for other goals."""


class ObjectiveTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The value of one objective by namespace; node objectives use the empty namespace."""

    objective: Objective
    value: Mapping[str, int]
    tie_break: Mapping[str, int] | None = None


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster's figures, by namespace where visibility depends on the namespace."""

    nodes: int
    pods: Mapping[str, int]
    resources: dict[str, ResourceTotal]
    violations: Mapping[str, int] | None
    skew: list[ConstraintSkew] | None
    objectives: list[ObjectiveTotals] | None = None


class Planned(Answer, frozen=True, kw_only=True):
    """A plan as decided, before parts hidden from its caller are removed."""

    kubernetes: str
    complete: bool
    changed: list[int]
    steps: list[PlanStep]
    unplaced: list[Unplaced]
    before: Counted
    after: Counted
    status: PlanStatus = "Planned"
    compared: Mapping[str, int] | None = None
    """How many pods of each namespace were compared, or None if the goal does not ask for it."""
    differences: list[ChoiceDifference] | None = None
    repairs: list[Repair] | None = None
    """The repairs, or None if the goal does not ask for any."""
    unfinished: str | None = None


class PlanAnswer(Answer, frozen=True, kw_only=True):
    """What would happen, and what is to be done."""

    status: PlanStatus
    """Planned: nothing of it was done, and the cluster stays as it is. Committed: all of it was done."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed, after all changes."""
    complete: bool
    """Whether the goal is reached: every pod gets a node, or as many go as are to go."""
    changed: list[int]
    """How many objects each of the changes is about."""
    steps: list[PlanStep]
    """The first steps of the plan in their order, at most `stepsMax`."""
    steps_total: int
    """How many steps there are that the caller may see."""
    unplaced: list[Unplaced]
    """The first pods that get no node, at most `stepsMax`."""
    unplaced_total: int
    """How many pods that the caller may see get no node."""
    other_steps: int | msgspec.UnsetType = msgspec.UNSET
    """How many more steps there are, each about a pod of another tenant, in a namespace that the
    caller may not read; absent if there are none."""
    other_unplaced: int | msgspec.UnsetType = msgspec.UNSET
    """How many pods of other tenants get no node; absent if there are none."""
    compared: int | msgspec.UnsetType = msgspec.UNSET
    """Compare: how many placed pods that the caller may see were judged before and after the changes, each as
    if it alone were placed anew; absent for other goals."""
    differences: list[ChoiceDifference] | msgspec.UnsetType = msgspec.UNSET
    """Compare: the first pods that would get another node after the changes, at most `stepsMax`; absent for
    other goals."""
    differences_total: int | msgspec.UnsetType = msgspec.UNSET
    """Compare: how many such pods there are that the caller may see; absent for other goals."""
    repairs: list[Repair] | msgspec.UnsetType = msgspec.UNSET
    """Fit: what would let the pod fit that fits nowhere, the least changes first; absent for other goals."""
    unfinished: str | msgspec.UnsetType = msgspec.UNSET
    """Fit: what ended the search for repairs early, so that there may be others, and smaller ones; absent if
    nothing did."""
    before: PlanTotals
    """The cluster as it is."""
    after: PlanTotals
    """The cluster after the changes and all steps."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A search for the next moves of a stored plan, made by planning its goal."""

    plan: str
    """The name of the stored plan."""
    uid: str
    goal: Rebalance
    bounds: PlanBounds
    under_way: int
    """How many of the plan's moves were in progress when the search was requested."""


class FoundMoves(msgspec.Struct, frozen=True, kw_only=True):
    """The moves found by a search; each is checked again before it is made."""

    search: Search
    steps: tuple[PlanStep, ...]
    complete: bool
    """Whether the search tried everything."""


class PlansAnswer(Answer, frozen=True, kw_only=True):
    """The work that a step of the stored plans leaves for later."""

    due: datetime | None
    """When the next step is due even without changes, or None."""
    evicted: int = 0
    """How many pods were evicted."""
    searches: tuple[Search, ...] = ()
    """Searches that plans need before they can continue."""
