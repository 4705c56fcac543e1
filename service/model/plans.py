"""Plans that are kept: what is to be reached, and how far it has come. The server carries them out step by step."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.kept_object import KeptKind
from service.model.objects import Partial, Strict
from service.model.validation import names
from service.model.validation.combinators import list_of, record, text
from service.model.validation.declarations import declared

Phase = Literal["Running", "Paused", "Succeeded", "Cancelled"]
PlanState = Literal["Running", "Paused", "Cancelled"]
WhenUnschedulable = Literal["Wait", "Evict"]


class DrainedNodes(Strict, frozen=True, kw_only=True):
    """The nodes of a plan."""

    names: tuple[str, ...]
    """Names of nodes; one that is not there is taken for empty."""


class KeptGoal(Strict, frozen=True, kw_only=True):
    """What a plan is to reach."""

    type: Literal["Drain"]
    """Drain: have all pods but daemons and static pods leave nodes that take no new ones."""
    nodes: DrainedNodes
    """The nodes to be emptied."""


class PlanSpec(Strict, frozen=True, kw_only=True):
    """What a plan is to reach, and whether the server is to go on with it."""

    goal: KeptGoal
    """What is to be reached."""
    state: PlanState = "Running"
    """Paused: nobody is evicted for now. Cancelled: nobody ever is again; what was done stays done."""
    when_unschedulable: WhenUnschedulable = "Wait"
    """What becomes of a pod for which there is no other node now: it waits where it is, or is evicted
    all the same, as far as disruption budgets allow it."""


class WaitingPod(Partial, frozen=True, kw_only=True):
    """A pod that has to leave, but cannot be evicted now."""

    namespace: str = ""
    """Namespace of the pod."""
    name: str = ""
    """Name of the pod."""
    reason: str = ""
    """DisruptionBudget, Unschedulable or BreaksRule, as in the `unplaced` of a plan."""
    message: str = ""
    """The same for people."""
    budget: str | None = None
    """The disruption budget that does not allow it, in the pod's namespace."""


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
    """How many pods are on the nodes that are to be stopped, by whoever runs them."""
    waiting: int = 0
    """How many pods still have to be evicted."""
    staying: int = 0
    """How many daemons and static pods are on the nodes, which stay there."""
    waiting_pods: tuple[WaitingPod, ...] = ()
    """The first of the pods that cannot be evicted now."""


class PlanBody(Partial, frozen=True, kw_only=True):
    """A plan beside its metadata."""

    spec: PlanSpec
    """What it is to reach."""
    status: PlanProgress = PlanProgress()
    """How far it has come."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing is to be done for it any more."""
        return self.status.phase in ("Succeeded", "Cancelled")


_EXAMPLE: Mapping[str, object] = {
    "metadata": {"name": "drain-node-7"},
    "spec": {"goal": {"type": "Drain", "nodes": {"names": ["node-7"]}}},
}

PLAN = KeptKind(
    kind="Plan",
    plural="plans",
    api_version="moorage.dev/v1alpha1",
    body=PlanBody,
    fields={
        "spec": declared(
            PlanSpec,
            {
                "goal": declared(
                    KeptGoal,
                    {
                        "nodes": declared(
                            DrainedNodes,
                            {
                                "names": list_of(
                                    text(names.dns_subdomain),
                                    at_least="must name at least one node",
                                    values=True,
                                )
                            },
                        )
                    },
                )
            },
        ),
        "status": record(
            {"startedAt": text(names.timestamp), "endedAt": text(names.timestamp)}, closed=False
        ),
    },
    required=("spec",),
    namespaced=False,
    changed_by="evict",
    description="Plans that are kept, and carried out step by step by the server. "
    "Their `status`, which only the server writes, says how far they have come. "
    "An hour after a plan has ended, it is deleted. Kubernetes has no such kind.",
    example=_EXAMPLE,
)


def ended(status: PlanProgress, phase: Phase, at: str) -> PlanProgress:
    """Return the status of a plan that has ended."""
    return msgspec.structs.replace(status, phase=phase, ended_at=at, waiting=0, waiting_pods=())
