"""Schemas of requests for plans, drains, and repairs."""

from typing import Annotated, Any, Literal

import msgspec

from service.api.resources.objects.types import Node, Pod, PodTemplate
from service.model.core import primitives
from service.model.core.primitives import Strict
from service.model.plans.plan import WhenUnschedulable
from service.model.plans.rebalance_objectives import Objective
from service.model.plans.rollouts import PodOwner
from service.scheduler.protocol.placements import Explain, PodRef
from service.scheduler.protocol.plans import CHANGES, Action, Domains, PlanBounds


class PlanChange(Strict, frozen=True, kw_only=True):
    """A change to the fork of the cluster on which a plan is made; it is not made to the cluster.

    Objects are named by `names`, `selector` and `topology`; if there are several of them, all have to
    hold.
    """

    op: Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted(CHANGES)})]
    """What is changed."""
    names: list[str] | None = None
    """Names of nodes, pods or namespaces."""
    selector: primitives.LabelSelector | None = None
    """A selector of the labels of nodes, pods or namespaces."""
    topology: Domains | None = None
    """Nodes in these domains, or pods on such nodes. Of AddNodes: the domains that nodes get in turn."""
    namespace: str | None = None
    """RemovePods: the namespace of the pods. With `names`, `default` if it is absent; else all in
    which the caller may place pods."""
    template: Node | None = None
    """AddNodes: a node; the new ones are named `<name>-0`, `<name>-1`, …"""
    count: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """AddNodes: how many."""
    labels: dict[str, str | None] | None = None
    """SetLabels, SetNamespaceLabels: the labels to set; null removes a label."""
    taints: list[primitives.Taint] | None = None
    """SetTaints: all taints that the nodes have then."""
    pods: list[Pod] | None = None
    """PutPods: pods that are there then; with a `nodeName` they are on that node."""
    config: dict[str, Any] | None = None
    """SetConfig: settings of the cluster to change, as in a merge patch."""


class PlanNodes(Strict, frozen=True, kw_only=True):
    """Nodes; if several of the fields are given, all have to hold."""

    names: list[str] | None = None
    """Names of nodes."""
    selector: primitives.LabelSelector | None = None
    """A selector of the nodes' labels."""
    topology: Domains | None = None
    """Domains that the nodes are in."""


REPAIR_CHANGES, REPAIR_CHANGES_MAX = 3, 4

REPAIRS, REPAIRS_MAX = 10, 100


class PlanGoal(Strict, frozen=True, kw_only=True):
    """What a plan is to reach.

    Place takes exactly one of `pods`, `podRefs`, `template` and `displaced`; Drain takes `nodes`;
    Remove takes `namespace`, `selector` and `count`; Replace takes `namespace`, `selector` or `owner` or
    both, `template`, `replicas`, and if wanted `maxSurge` and `maxUnavailable`; Rebalance takes, if wanted,
    `namespace`, `selector`, `objectives` and `movesMax`, and `resource` and if wanted `block` with
    Fragmentation; Fit takes `pod` or `podRef`, and if wanted `changesMax` and `limit`; Compare takes, if
    wanted, `namespace` and `selector`, and the plan's changes are one or more SetConfig.
    """

    type: Literal["Place", "Drain", "Remove", "Replace", "Rebalance", "Fit", "Compare"]
    """Place: find nodes for pods. Drain: have all pods but daemons leave nodes, in waves. Remove: find
    the pods without which the others are left best. Replace: have pods of a template in place of selected
    ones, in waves. Rebalance: move placed pods, in waves, so that the objectives become less. Fit: find
    a node for one pod, or else the least changes after which it fits. Compare: find the placed pods that
    would get another node by the changed settings, such as another Kubernetes version."""
    pods: list[Pod] | None = None
    """Pods, new or stored. Their `nodeName` is a wish, not a fact."""
    pod_refs: list[PodRef] | None = None
    """Pods that are stored."""
    template: PodTemplate | None = None
    """What replicas have in common; they are named `<name>-0`, `<name>-1`, …"""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    """How many pods of the template."""
    displaced: bool | None = None
    """All pods that lose their nodes by the changes, whoever owns them: by priority, the oldest first."""
    nodes: PlanNodes | None = None
    """Drain: the nodes to be emptied."""
    namespace: str | None = None
    """Remove, Replace, Rebalance, Compare: the namespace of the pods."""
    selector: primitives.LabelSelector | None = None
    """Remove, Replace, Rebalance, Compare: a selector of the pods' labels. Pods that are leaving or have ended do
    not count. New pods of a Replace may have the labels, too."""
    owner: PodOwner | None = None
    """Replace: who manages the pods that are replaced."""
    max_surge: int | str | None = None
    """Replace: how many pods beyond `replicas` there may be between two waves, or how much of them; absent:
    25%. Percentages are rounded up."""
    max_unavailable: int | str | None = None
    """Replace: how many of the `replicas`, or how much of them, may be missing or not ready between two
    waves; absent: 25%. Percentages are rounded down. If both come to nothing, it is one pod."""
    objectives: list[Objective] | None = None
    """Rebalance: what is to become less, the most important first; absent: Violations, then Skew.
    Violations: rules of placed pods that do not hold. Skew: pods that domains have too many by constraints
    with `ScheduleAnyway`. Preferences: weights of preferred terms that do not hold. Spread: load that is
    uneven over nodes. Packing: nodes with pods. Fragmentation: what is free of a resource in rests that
    are of no use. Each counts the whole cluster; `objectives` in the plan's totals says how."""
    moves_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Rebalance: how many pods may move."""
    resource: str | None = None
    """Rebalance: the resource of which Fragmentation is, as in `nvidia.com/gpu`."""
    block: int | str | float | None = None
    """Rebalance: how much of the resource is needed at once on one node, a quantity; absent: all that a node
    has."""
    count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Remove: how many of the pods are to go."""
    pod: Pod | None = None
    """Fit: the pod, new or stored."""
    pod_ref: PodRef | None = None
    """Fit: a pod that is stored."""
    changes_max: Annotated[int, msgspec.Meta(ge=1, le=REPAIR_CHANGES_MAX)] | None = None
    """Fit: how many changes of the pod and of nodes a repair may have; 3 if it is absent."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=REPAIRS_MAX)] | None = None
    """Fit: how many repairs are told; 10 if it is absent."""


class PlanRequest(Strict, frozen=True, kw_only=True):
    """What to plan: changes in their order, then a goal."""

    changes: list[PlanChange] | None = None
    """Changes to a fork of the cluster; the cluster itself is not changed."""
    goal: PlanGoal | None = None
    """What is to be reached after the changes; without it, only figures are told."""
    bounds: PlanBounds = PlanBounds()
    """What the plan may cost."""
    explain: Explain = "None"
    """Summary and Full count broken rules and skew, and explain why pods get no node."""
    steps_max: Annotated[int, msgspec.Meta(ge=0)] = 1000
    """How many steps, and how many pods without a node, the answer has at most."""


class PlannedStep(Strict, frozen=True, kw_only=True):
    """A step as a plan has told it."""

    action: Action
    """What is to be done."""
    namespace: str | None = None
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    from_node: str | None = msgspec.field(name="from", default=None)
    """The node that the pod was on."""
    to: str | None = None
    """The node that the pod gets."""
    wave: int | None = None
    """Is not compared."""
    reason: str | None = None
    """Is not compared."""


class PlanCommit(PlanRequest, frozen=True, kw_only=True):
    """A plan to make and to carry out in one commit."""

    steps: list[PlannedStep] | None = None
    """The steps that the plan has to have, as it told them before; without them, whatever it has."""


class NoOptions(Strict, frozen=True, kw_only=True):
    """An object without fields."""


class DrainOptions(Strict, frozen=True, kw_only=True):
    """How a node is drained."""

    when_unschedulable: WhenUnschedulable = "Wait"
    """What becomes of a pod for which there is no other node now: it waits where it is, or is evicted
    all the same, as far as disruption budgets and rules of other pods allow it."""
