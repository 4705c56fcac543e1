"""Stored plans, which the server carries out step by step: their goals and progress."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from service.model.core import names
from service.model.core.kind import KindSpec
from service.model.core.primitives import Int32, LabelSelector, Partial, Strict
from service.model.core.selector_rules import LABEL_SELECTOR
from service.model.core.type_rules import declared
from service.model.core.validators import (
    INT32_MAX,
    Problems,
    Record,
    at,
    list_of,
    record,
    text,
    whole_number,
)
from service.model.plans.rebalance_objectives import MEASURED, Objective, fits_objectives
from service.model.plans.rollouts import AMOUNTS, PodOwner, is_possible, selects_pods

Phase = Literal["Running", "Paused", "Succeeded", "Cancelled"]
PlanState = Literal["Running", "Paused", "Cancelled"]
WhenUnschedulable = Literal["Wait", "Evict"]


class DrainedNodes(Strict, frozen=True, kw_only=True):
    """The nodes of a plan."""

    names: tuple[str, ...]
    """Names of nodes; one that is not there is taken for empty."""


class KeptGoal(Strict, frozen=True, kw_only=True):
    """What a plan is to reach.

    Drain takes `nodes`. Replace takes `namespace`, `selector` or `owner` or both, `template` and
    `replicas`, and the other fields if they are given. Rebalance takes `namespace`, `selector`,
    `objectives` and `movesMax`, if they are given.
    """

    type: Literal["Drain", "Replace", "Rebalance"]
    """Drain: have all pods but daemons and static pods leave nodes that take no new ones. Replace: have
    pods of a template in place of those that are selected, wave by wave. Rebalance: move placed pods, wave by
    wave, until no move makes the objectives better."""
    nodes: DrainedNodes | None = None
    """Drain: the nodes to be emptied."""
    namespace: str | None = None
    """Replace: the namespace of the pods, old and new. Rebalance: that of the pods that may move; absent:
    all."""
    selector: LabelSelector | None = None
    """Replace: a selector of the labels of the pods that are replaced; the new ones may have them, too.
    Rebalance: a selector of those that may move; absent: all."""
    owner: PodOwner | None = None
    """Replace: who manages the pods that are replaced."""
    template: dict[str, Any] | None = None
    """Replace: what the new pods have in common, a pod. They are named `<name>-0`, `<name>-1`, …; a pod of
    such a name that says the same is one of them."""
    replicas: int | None = None
    """Replace: how many new pods."""
    max_surge: int | str | None = None
    """Replace: how many pods beyond `replicas` there may be, or how much of them; absent: 25%. Percentages
    are rounded up."""
    max_unavailable: int | str | None = None
    """Replace: how many of the `replicas`, or how much of them, may be missing or not ready; absent: 25%.
    Percentages are rounded down. If both come to nothing, it is one pod."""
    progress_deadline_seconds: int | None = None
    """Replace: after how long without progress the status says so; absent: 600."""
    objectives: tuple[Objective, ...] | None = None
    """Rebalance: what is to become less, the most important first, as for a plan that is only made."""
    resource: str | None = None
    """Rebalance: the resource of Fragmentation, which needs one."""
    block: int | str | None = None
    """Rebalance: how much of the resource pods take at once, a quantity; what is free in no whole block is
    of no use. Absent: what is free on nodes of which some is in use."""
    moves_max: int | None = None
    """Rebalance: how many pods may move in all; absent: any number."""

    @property
    def node_names(self) -> tuple[str, ...]:
        """The nodes to drain."""
        return () if self.nodes is None else self.nodes.names


class ProtectedPods(Strict, frozen=True, kw_only=True):
    """Placed pods that stay where they are; if both fields are given, one of them has to hold."""

    priority: Int32 | None = None
    """Pods of at least this priority."""
    selector: LabelSelector | None = None
    """Pods with such labels."""


class KeptBounds(Strict, frozen=True, kw_only=True):
    """What a plan may cost, whatever its goal is."""

    evictions_max: int | None = None
    """How many pods may be evicted for the plan from its beginning to its end; absent: any number."""
    protect: ProtectedPods | None = None
    """The pods that are not evicted for the plan."""


class PlanSpec(Strict, frozen=True, kw_only=True):
    """What a plan is to reach, and whether the server is to go on with it."""

    goal: KeptGoal
    """What is to be reached."""
    state: PlanState = "Running"
    """Paused: nobody is evicted for now. Cancelled: nobody ever is again; what was done stays done."""
    when_unschedulable: WhenUnschedulable = "Wait"
    """What becomes of a pod for which there is no other node now: it waits where it is, or is evicted
    all the same, as far as disruption budgets allow it."""
    bounds: KeptBounds = KeptBounds()
    """What the plan may cost."""


class WaitingPod(Partial, frozen=True, kw_only=True):
    """A pod that has to leave, but cannot be evicted now, or a new one that cannot be placed."""

    namespace: str = ""
    """Namespace of the pod."""
    name: str = ""
    """Name of the pod."""
    reason: str = ""
    """DisruptionBudget, Unschedulable or BreaksRule, as in the `unplaced` of a plan. Replace: NotReady, too,
    of a new pod for which the next wave waits, PodDiffers, of a pod that has the name of a new one, and
    GroupTooLarge and TooManyObjects, of a new pod that the bounds or `objects_max` keep away. EvictionsMax
    and Protected: the plan's `bounds` keep it. Rebalance: Unschedulable, too, if its node does not take
    it yet."""
    message: str = ""
    """A sentence for people that says the same."""
    budget: str | None = None
    """The disruption budget that does not allow it, in the pod's namespace."""


class PlanMove(Partial, frozen=True, kw_only=True):
    """A pod that was evicted for a move, and in whose place no other has come yet."""

    namespace: str = ""
    """Namespace of the pod."""
    name: str = ""
    """Name of the pod."""
    from_node: str = msgspec.field(name="from", default="")
    """The node that it leaves."""
    to: str = ""
    """The node on which room is kept for the pod that comes in its place: one of the same name, or of the
    same controller."""
    since: str = ""
    """When it was evicted, RFC 3339."""


class ObjectiveProgress(Partial, frozen=True, kw_only=True):
    """What a plan makes better."""

    name: str = ""
    """The objective."""
    before: int | None = None
    """How much there was of it when the plan began; less is better."""
    now: int | None = None
    """How much there was at the last look, with all pods that are moved on their new nodes."""


class PlanProgress(Partial, frozen=True, kw_only=True):
    """How far a plan has come; the server writes it."""

    phase: Phase = "Running"
    """Succeeded and Cancelled plans have ended."""
    started_at: str = ""
    """When the server has begun with it, RFC 3339."""
    ended_at: str = ""
    """When it ended, RFC 3339; absent until then."""
    evicted: int = 0
    """How many pods were evicted for the plan so far."""
    leaving: int = 0
    """How many of the pods that are to leave were evicted and are not gone yet: whoever runs them stops
    them."""
    waiting: int = 0
    """How many pods still have to be evicted."""
    staying: int = 0
    """How many daemons and static pods are on the nodes, which stay there."""
    waves: int = 0
    """Replace: how many waves were begun."""
    placed: int = 0
    """Replace: how many new pods were placed for the plan so far."""
    updated: int = 0
    """Replace: how many new pods there are now."""
    ready: int = 0
    """Replace: how many of the new pods are reported as ready."""
    progressed_at: str = ""
    """Replace: when pods were last placed, ready, evicted or gone, RFC 3339."""
    reason: str | None = None
    """Replace: ProgressDeadlineExceeded if that is longer ago than allowed. The server goes on trying.
    Rebalance: why it ended before no move was better: MovesMax, EvictionsMax, or SecondsOver, if the time
    of the last search was over."""
    moved: int = 0
    """Rebalance: in place of how many pods others have come on the nodes that were chosen for them."""
    elsewhere: int = 0
    """Rebalance: in place of how many pods others have come on other nodes."""
    missing: int = 0
    """Rebalance: in place of how many pods nobody came for so long that room is no longer kept."""
    moves: tuple[PlanMove, ...] = ()
    """Rebalance: the moves that are under way."""
    objectives: tuple[ObjectiveProgress, ...] = ()
    """Rebalance: what is made better, the most important first."""
    waiting_pods: tuple[WaitingPod, ...] = ()
    """The first of the pods that cannot be evicted or placed now."""


class PlanBody(Partial, frozen=True, kw_only=True):
    """The fields of a plan besides its metadata."""

    spec: PlanSpec
    """What it is to reach."""
    status: PlanProgress = PlanProgress()
    """How far it has come."""

    @property
    def has_ended(self) -> bool:
        """Whether the plan has reached a final phase."""
        return self.status.phase in ("Succeeded", "Cancelled")


_EXAMPLE: Mapping[str, object] = {
    "metadata": {"name": "drain-node-7"},
    "spec": {"goal": {"type": "Drain", "nodes": {"names": ["node-7"]}}},
}
_RELEASE: Mapping[str, object] = {
    "metadata": {"name": "replace-web-v2"},
    "spec": {
        "goal": {
            "type": "Replace",
            "namespace": "shop",
            "owner": {"kind": "ReplicaSet", "name": "web-v1"},
            "template": {
                "metadata": {"name": "web-v2", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:2"}]},
            },
            "replicas": 6,
            "maxSurge": 1,
            "maxUnavailable": "25%",
            "progressDeadlineSeconds": 600,
        }
    },
}
_BALANCE: Mapping[str, object] = {
    "metadata": {"name": "rebalance-shop"},
    "spec": {
        "goal": {
            "type": "Rebalance",
            "namespace": "shop",
            "objectives": ["Violations", "Skew"],
            "movesMax": 20,
        },
        "bounds": {"protect": {"priority": 1000}},
    },
}

DEADLINE_SECONDS = 600
"""The default time, in seconds, that a plan may make no progress, as for a Deployment."""


class GoalFields(NamedTuple):
    """The fields, besides `type`, that a goal of one type accepts."""

    needed: Sequence[str] = ()
    optional: Sequence[str] = ()

    def has(self, name: str) -> bool:
        """Return whether the goal accepts a field."""
        return name in self.needed or name in self.optional


GOALS: Mapping[str, GoalFields] = {
    "Drain": GoalFields(needed=("nodes",)),
    "Replace": GoalFields(
        needed=("namespace", "template", "replicas"), optional=("selector", "owner", *AMOUNTS)
    ),
    "Rebalance": GoalFields(
        optional=("namespace", "selector", "objectives", "movesMax", "resource", "block")
    ),
}
"""The fields of each type of goal, for plans that are stored and plans that are only computed."""
_OF_KEPT_PLANS: Mapping[str, Sequence[str]] = {"Replace": ("progressDeadlineSeconds",)}
"""Additional fields of goals of stored plans."""


def _fits_type(goal: Record, path: str, problems: Problems) -> None:
    type_ = goal.get("type")
    if not isinstance(type_, str) or type_ not in GOALS:
        return
    fields, besides = GOALS[type_], _OF_KEPT_PLANS.get(type_, ())
    for name in fields.needed:
        if goal.get(name) is None:
            problems.add(at(path, name), f"is required by {type_}")
    for name in sorted(name for name, value in goal.items() if value is not None):
        if name != "type" and name not in besides and not fields.has(name):
            problems.add(at(path, name), f"is not a field of {type_}")
    fits_across_fields(goal, path, problems)


def fits_across_fields(goal: Record, path: str, problems: Problems) -> None:
    """Check the fields of a goal together, according to its type."""
    if goal.get("type") == "Rebalance":
        fits_objectives(goal, path, problems)
    if goal.get("type") == "Replace":
        selects_pods(goal, path, problems)
        is_possible(goal, path, problems)


_NODES = declared(
    DrainedNodes,
    {
        "names": list_of(
            text(names.dns_subdomain), at_least="must name at least one node", values=True
        )
    },
)
_GOAL = declared(
    KeptGoal,
    {
        "nodes": _NODES,
        "namespace": text(names.dns_label),
        "selector": LABEL_SELECTOR,
        "owner": declared(PodOwner, {}),
        "template": record({}, closed=False),
        "replicas": whole_number(1, INT32_MAX),
        "progressDeadlineSeconds": whole_number(1, INT32_MAX),
        **MEASURED,
        "movesMax": whole_number(0, INT32_MAX),
        **AMOUNTS,
    },
    also=(_fits_type,),
)
PROTECTED_PODS = declared(ProtectedPods, {"selector": LABEL_SELECTOR})
_BOUNDS = declared(
    KeptBounds,
    {
        "evictionsMax": whole_number(0, INT32_MAX),
        "protect": PROTECTED_PODS,
    },
)
_TIMES = {name: text(names.timestamp) for name in ("startedAt", "endedAt", "progressedAt")}

PLAN = KindSpec(
    kind="Plan",
    plural="plans",
    api_version="moorage.dev/v1alpha1",
    body=PlanBody,
    fields={
        "spec": declared(PlanSpec, {"goal": _GOAL, "bounds": _BOUNDS}),
        "status": record(_TIMES, closed=False),
    },
    required=("spec",),
    namespaced=False,
    changed_by="evict",
    description="Plans that are kept, and carried out step by step by the server. "
    "Their `status`, which only the server writes, says how far they have come. "
    "An hour after a plan has ended, it is deleted. Kubernetes has no such kind.",
    example=_EXAMPLE,
    examples={"Drain": _EXAMPLE, "Replace": _RELEASE, "Rebalance": _BALANCE},
)


def ended(status: PlanProgress, phase: Phase, at: str) -> PlanProgress:
    """Return the status of a plan that ends in this phase."""
    return msgspec.structs.replace(
        status, phase=phase, ended_at=at, waiting=0, waiting_pods=(), moves=()
    )
