"""Requests to a cluster: frozen values, already parsed and validated on their own.

Whether an intent can be carried out depends on the cluster's state, and is decided in
`service.scheduler.decide`. The type parameter is the type of the answer.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from service.model.cluster.cluster_config import PreemptionScope
from service.model.cluster.extender_config import ExtenderHosts
from service.model.core.errors import Forbidden, InvalidManifest
from service.model.core.primitives import ObjectName
from service.model.json.patch import PatchType
from service.model.log.lease import HeldLeases
from service.model.plans.plan import PlanState, WhenUnschedulable
from service.model.registry.manifests import AnyManifest, Applicable, PodManifest
from service.model.selection.object_filters import ObjectFilter
from service.scheduler.protocol.answers import (
    Answer,
    ApplyAnswer,
    CapacityAnswer,
    ComputedAnswer,
    ConfigAnswer,
    ConfirmationAnswer,
    DeletionsAnswer,
    EvictionsAnswer,
    LinesAnswer,
    NodesAnswer,
    ObjectAnswer,
    PendingAnswer,
    TopologyAnswer,
    ViolationsAnswer,
)
from service.scheduler.protocol.callers import ANYBODY, Caller
from service.scheduler.protocol.extenders import ExtenderVerdict
from service.scheduler.protocol.pending_attempts import Attempts
from service.scheduler.protocol.placements import (
    Explain,
    ExplanationAnswer,
    PlacementAnswer,
    PodRef,
    Preemption,
    VictimsAnswer,
)
from service.scheduler.protocol.plans import (
    FoundMoves,
    Goal,
    Place,
    PlanBounds,
    PlanChange,
    Planned,
    PlansAnswer,
    PlanStepKey,
    PutPods,
    RemovePods,
)
from service.scheduler.protocol.repairs import RepairsAnswer
from service.scheduler.protocol.split_groups import GroupAnswer, GroupStep, ReservationTerms

A = TypeVar("A", bound=Answer)


class Intent(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """Base class of all intents; `A` is the type of its answer."""


class DryRun(Intent[A], Generic[A], frozen=True, kw_only=True):
    """Decide another intent as usual, but change nothing."""

    intent: Intent[A]
    dry_run: ClassVar[bool] = True


class Preconditions(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that the stored object has to meet for the intent to be decided."""

    resource_version: str | None = None
    """The `metadata.resourceVersion` sent; a different stored one raises RevisionConflict."""
    uid: str | None = None
    """The `metadata.uid` sent; a different stored one raises RevisionConflict."""
    if_match: tuple[str, ...] | None = None
    """The acceptable resourceVersions, or `("*",)` for any object. A stored object with none of
    them raises PreconditionFailed."""
    if_none_match: tuple[str, ...] | None = None
    """The unacceptable resourceVersions, or `("*",)` if the object must not exist. A stored object
    with one of them raises PreconditionFailed."""


NO_PRECONDITIONS = Preconditions()
UNKNOWN_MANAGER = "unknown"
"""The manager of fields changed by clients that give no name."""


class PutObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Create an object, or replace the one with the same key; with `create`, none may exist."""

    manifest: AnyManifest
    manager: str = UNKNOWN_MANAGER
    create: bool = False
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class PatchObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Change an object; `patch` is the decoded body."""

    kind: str
    namespace: str = ""
    name: str
    patch_type: PatchType
    patch: Any
    manager: str = UNKNOWN_MANAGER
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class ApplyPatch(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Apply a manager's fields to an object, or create it (server-side apply)."""

    kind: str
    namespace: str = ""
    name: str
    applied: Any
    """The decoded body, a JSON object."""
    manager: str
    force: bool = False
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class DeleteObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Delete an object. A namespace is deleted with everything in it."""

    kind: str
    namespace: str = ""
    name: str
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class DeleteObjects(Intent[DeletionsAnswer], frozen=True, kw_only=True):
    """Delete objects of a kind that match a filter, by namespace and name, in one commit.

    The answer reports objects that cannot be deleted now, or not by this caller; they do not stop
    the others.
    """

    kind: str
    object_filter: ObjectFilter
    namespaces: frozenset[str] | None = None
    """The namespaces to search, or None for all."""
    deletable: frozenset[str] | None = None
    """The namespaces where the caller may delete objects of this kind, or None for all."""
    after: ObjectName | None = None
    """The namespace and name of the last object to skip, or None."""
    count: int
    """The maximum number of objects to examine."""
    caller: Caller = ANYBODY


class ApplyObjects(Intent[ApplyAnswer], frozen=True, kw_only=True):
    """Put all objects of a `List` in one commit, or none. PriorityClasses change the configuration.

    Of the kinds in `prune`, all other objects that have not changed since `prune_before` are
    deleted.
    """

    manifests: tuple[Applicable, ...]
    undrawn: bool = False
    """Whether some names still have to be generated (`service.model.core.generate_name`)."""
    prune: frozenset[str] = frozenset()
    prune_before: int | None = None
    caller: Caller = ANYBODY


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """One line's request to delete an object, if it is the intended one."""

    kind: str
    namespace: str = ""
    name: str
    preconditions: Preconditions = NO_PRECONDITIONS


class ApplyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of NDJSON: an object, or the error that the line is invalid or not allowed."""

    line: int
    object: Applicable | Deletion | InvalidManifest | Forbidden
    kind: str | None = None
    """The kind that an invalid line names, if readable; valid lines have it in their object."""
    namespace: str | None = None
    name: str | None = None


class ApplyLines(Intent[LinesAnswer], frozen=True, kw_only=True):
    """Put or delete objects in one commit; invalid lines do not stop the others."""

    lines: tuple[ApplyLine, ...]
    caller: Caller = ANYBODY


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """A merge patch (RFC 7396) of a pod's status, applied only to the intended pod."""

    kind: ClassVar[str] = PodManifest.kind
    namespace: str
    name: str
    status: bytes
    """The patch as compact JSON, an object."""
    preconditions: Preconditions = NO_PRECONDITIONS


class ReportLine(msgspec.Struct, frozen=True, kw_only=True):
    """A report, or the error that it is invalid or not allowed; reports are numbered from 1."""

    line: int
    report: StatusReport | InvalidManifest | Forbidden
    namespace: str | None = None
    """The namespace that an invalid report names, if readable; likewise its `name`."""
    name: str | None = None


class ReportStatus(Intent[LinesAnswer], frozen=True, kw_only=True):
    """Change the status of pods in one commit; invalid reports do not stop the others."""

    lines: tuple[ReportLine, ...]
    caller: Caller = ANYBODY


class PutConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Replace the configuration, or create the cluster with it; `config` is decoded JSON.

    If `config` is None, a new cluster gets the default configuration, and an existing one keeps its
    own.
    """

    config: Mapping[str, Any] | None
    preconditions: Preconditions = NO_PRECONDITIONS
    hosts: ExtenderHosts | None = None
    """The hosts allowed for newly configured extenders, or None for any host."""


class PatchConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Change individual settings; `patch` is the decoded body."""

    patch_type: PatchType
    patch: Any
    preconditions: Preconditions = NO_PRECONDITIONS
    hosts: ExtenderHosts | None = None
    """The hosts allowed for extenders, as in `PutConfig`."""


NO_VERDICTS: Mapping[ObjectName, ExtenderVerdict] = MappingProxyType({})
"""An empty set of verdicts, for a request whose extenders are queried when needed."""


class PlacePods(Intent[PlacementAnswer], frozen=True, kw_only=True):
    """Place pods, either new or stored (`pods`) or all stored (`pod_refs`); the other is empty."""

    pods: tuple[PodManifest, ...] = ()
    undrawn: bool = False
    """Whether some names still have to be generated (`service.model.core.generate_name`)."""
    pod_refs: tuple[PodRef, ...] = ()
    path: Literal["pods", "podRefs", "template", "place", "pod"] = "pods"
    """The request field that holds the pods, for the paths in errors (see `place_of`)."""
    all_or_nothing: bool = False
    queue: bool = False
    """Whether unschedulable pods are stored as pending pods."""
    dry_run: bool = False
    explain: Explain = "None"
    preemption: Preemption = "Never"
    """Propose: report which pods would have to leave for a pod that fits nowhere. Evict: evict
    those pods."""
    preemption_scope: PreemptionScope = "Node"
    """Node: evict only pods on the pod's future node. Domains: also pods on other nodes that rules
    blame."""
    budgets_as_given: bool = False
    """Whether disruption budgets allow what their `status` says, instead of what the pods imply."""
    without_groups: bool = False
    """Whether PodGroups are ignored, so that their members are treated like all other pods."""
    compare: bool = False
    """Whether results include the data that multi-cluster placements compare."""
    leases: HeldLeases | None = None
    """Leases that must still be held when the pods are placed; otherwise the request is refused."""
    reserving: ReservationTerms | None = None
    """If given, the pods are only reserved, all or none, for a split group."""
    extender_verdicts: Mapping[ObjectName, ExtenderVerdict] | None = None
    """Extender verdicts by pod, or None if extenders are not queried, so that pods that need them
    get no node."""
    caller: Caller = ANYBODY

    def place_of(self, index: int) -> str:
        """Return the path of a pod in the request: `pods[3]`, or `template` for all replicas."""
        return self.path if self.path in ("template", "pod") else f"{self.path}[{index}]"


class AdvanceGroup(Intent[GroupAnswer], frozen=True, kw_only=True):
    """Take the next step of a split group in one of its clusters."""

    group: str
    """The id of the group."""
    step: GroupStep
    leases: HeldLeases | None = None
    """Leases that must still be held when the step is taken; otherwise it is refused."""


class FindVictims(Intent[VictimsAnswer], frozen=True, kw_only=True):
    """Find the nodes where room could be made for a pod, with their victims, changing nothing."""

    placement: PlacePods
    """The placement request of that single pod."""


class PlacePending(Intent[PendingAnswer], frozen=True, kw_only=True):
    """Place pending pods that the queue considers due. Clients never send this."""

    attempts: Attempts
    clock: Callable[[], datetime] | None = None
    """The clock as in `EvictViolating`; without one, no pod is evicted."""


class BindPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Place a pending pod on a node, if all filters pass there or `force` is set."""

    namespace: str
    name: str
    node_name: str
    force: bool = False
    uid: str | None = None


class ConfirmBinding(Intent[ConfirmationAnswer], frozen=True, kw_only=True):
    """Check whether a placed pod's required rules hold now, before its node starts the pod."""

    namespace: str
    name: str
    uid: str
    pod_revision: int
    """The pod's `metadata.resourceVersion`, as its node saw it."""
    node_name: str | None = None
    """The node that sends the request, or None for any; an unchanged pod is still on its node."""


class EvictPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Mark a pod for termination; its orchestrator stops the pod and confirms by deleting it."""

    namespace: str
    name: str
    uid: str | None = None
    resource_version: str | None = None


class MakePlan(Intent[Planned], frozen=True, kw_only=True):
    """Plan the consequences of changes to the cluster, without making the changes."""

    changes: tuple[PlanChange, ...] = ()
    goal: Goal = Place()
    bounds: PlanBounds = PlanBounds()
    explain: Explain = "None"
    caller: Caller = ANYBODY

    def is_small(self, pods_max: int) -> bool:
        """Return whether the plan names at most `pods_max` pods and changes no nodes or rules.

        Such a plan costs no more than a dry run of its pods.
        """
        if not isinstance(self.goal, Place) or self.goal.displaced or self.explain != "None":
            return False
        named: float = len(self.goal.pods) + len(self.goal.pod_refs)
        for change in self.changes:
            if not isinstance(change, PutPods | RemovePods):
                return False
            named += len(change.pods) if isinstance(change, PutPods) else change.pods.named
        return named <= pods_max


class FindRepairs(Intent[RepairsAnswer], frozen=True, kw_only=True):
    """Find the smallest changes that make an unschedulable stored pod fit."""

    namespace: str
    name: str
    changes_max: int
    """How many changes, of the pod and of nodes, a repair may have."""
    repairs_max: int
    """How many repairs are reported."""
    removable: frozenset[str] | None = None
    """The namespaces whose pods a repair may remove, or None for all."""


class FindCapacity(Intent[CapacityAnswer], frozen=True, kw_only=True):
    """Count how many of these identical pods get nodes before one is refused."""

    pods: tuple[PodManifest, ...]
    topology_key: str | None = None
    """A node label by whose values the pods are also counted, or None."""
    explain: Explain = "None"
    """How detailed the explanation of the final refusal is."""
    caller: Caller = ANYBODY


class CommitPlan(Intent[Planned], frozen=True, kw_only=True):
    """Make a plan and carry it out in one commit, if it reaches its goal as expected."""

    plan: MakePlan
    expected: tuple[PlanStepKey, ...] | None = None
    """The steps that the plan must have, or None for any."""


class ExplainPod(Intent[ExplanationAnswer], frozen=True, kw_only=True):
    """Explain why a stored pod is on its node, or why it waits."""

    namespace: str
    name: str
    node_name: str | None = None
    """The only node to explain, with everything that excludes the pod there, or None for all."""


class ReadTopology(Intent[TopologyAnswer], frozen=True, kw_only=True):
    """Read the domains of a topology key."""

    key: str
    """A node label, or `metadata.name`, which makes each node its own domain."""
    namespaces: frozenset[str] | None = None
    """The namespaces whose pods are counted, or None for all."""


class ReadComputed(Intent[ComputedAnswer], frozen=True, kw_only=True):
    """Read objects with computed `status`: all of a kind, those of a namespace, or one."""

    kind: str
    namespace: str | None = None
    name: str | None = None


class ReadViolations(Intent[ViolationsAnswer], frozen=True, kw_only=True):
    """Read which placed pods break which required rules."""


class EvictViolating(Intent[EvictionsAnswer], frozen=True, kw_only=True):
    """Evict pods whose rules required during execution do not hold.

    Sent only by the eviction controller, when evictions may be due.
    """

    clock: Callable[[], datetime]
    """Returns the database's time now, or a moment ago (protocol rule P16). It is read each time
    the intent is decided, so that a timer started by this decision cannot begin too early."""


class SweepNodes(Intent[NodesAnswer], frozen=True, kw_only=True):
    """Taint unready nodes, evict pods for taints, and end the pods of deleted nodes.

    Sent only by the node lifecycle controller, when a sweep may be due.
    """

    clock: Callable[[], datetime]
    """The clock as in `EvictViolating`."""
    silent: frozenset[str] | None = None
    """Nodes that have stopped reporting for longer than the grace period, or None if unknown."""
    judges: bool = False
    """Whether such nodes now count as silent; False while nodes may not have had a chance to
    report."""


class CordonNode(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Cordon or uncordon a node."""

    name: str
    unschedulable: bool


class DrainNode(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Cordon a node, and store a plan that moves all pods except daemons away.

    An unfinished plan for the node is continued.
    """

    name: str
    when_unschedulable: WhenUnschedulable = "Wait"


class SetPlanState(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Pause, resume, or cancel a stored plan."""

    name: str
    state: PlanState


class AdvancePlans(Intent[PlansAnswer], frozen=True, kw_only=True):
    """Take the next step of each stored plan, on the current state.

    Sent only by the plan controller, when a step may be due.
    """

    clock: Callable[[], datetime]
    """The clock as in `EvictViolating`."""
    found_moves: tuple[FoundMoves, ...] = ()
    """The results of the searches requested by the last answer."""


class Idempotency(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A client's key for one request, whose answer is recorded and repeated (protocol rule P11)."""

    operation: str
    key: str
    chunk: int = 0
    request_hash: bytes
    encode: Callable[[A], bytes]
    """Encodes the decided answer as the recorded bytes, which the API decodes."""
