"""The requests to a cluster: frozen values, already read and valid by themselves.

Whether an intent can be carried out depends on the cluster's state, and is decided in
`service.scheduler.decide`. The type parameter is the type of the answer.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from service.model.configuration.config import PreemptionScope
from service.model.configuration.extenders import ExtenderHosts
from service.model.core.primitives import ObjectName
from service.model.errors import Forbidden, InvalidManifest
from service.model.json_and_patches.patches import PatchType
from service.model.log.leases import HeldLeases
from service.model.manifests.manifest import AnyManifest, Applicable, PodManifest
from service.model.plans.plans import PlanState, WhenUnschedulable
from service.model.selecting_objects.object_filters import ObjectFilter
from service.scheduler.protocol.answers import (
    Answer,
    ApplyAnswer,
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
from service.scheduler.protocol.capacity import CapacityAnswer
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
    """Base of all intents; `A` is the type of its answer."""


class DryRun(Intent[A], Generic[A], frozen=True, kw_only=True):
    """Decide another intent as usual, and change nothing."""

    intent: Intent[A]
    dry_run: ClassVar[bool] = True


class Preconditions(msgspec.Struct, frozen=True, kw_only=True):
    """What must be true of the stored object, else the intent is refused."""

    resource_version: str | None = None
    """The `metadata.resourceVersion` that was sent; if it differs, RevisionConflict is raised."""
    uid: str | None = None
    """The `metadata.uid` that was sent; if it differs, RevisionConflict is raised."""
    if_match: tuple[str, ...] | None = None
    """The resourceVersions of which the object must have one, `("*",)` for any object. If it has
    none of them, PreconditionFailed is raised."""
    if_none_match: tuple[str, ...] | None = None
    """The resourceVersions of which the object must have none, `("*",)` if there must be no such
    object. If it has one of them, PreconditionFailed is raised."""


NO_PRECONDITIONS = Preconditions()
UNKNOWN_MANAGER = "unknown"
"""Manages the fields that somebody without a name has changed."""


class PutObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Create an object, or replace the one of the same key; with `create` there must be none."""

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
    """Merge what a manager wants into an object, or create it: server-side apply."""

    kind: str
    namespace: str = ""
    name: str
    applied: Any
    """The decoded body, an object."""
    manager: str
    force: bool = False
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class DeleteObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Delete an object; a namespace is deleted with all that is in it."""

    kind: str
    namespace: str = ""
    name: str
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class DeleteObjects(Intent[DeletionsAnswer], frozen=True, kw_only=True):
    """Delete some of the objects of a kind that pass a filter, by namespace and name, in one commit.

    Of those that the caller may not delete, and those that cannot be deleted now, the answer tells;
    they stop no other.
    """

    kind: str
    wanted: ObjectFilter
    namespaces: frozenset[str] | None = None
    """Where to look; None: everywhere."""
    deletable: frozenset[str] | None = None
    """The namespaces where the caller may delete objects of this kind; None: everywhere."""
    after: ObjectName | None = None
    """A namespace and name; objects up to and including this one are left alone."""
    count: int
    """How many objects are looked at, at most."""
    caller: Caller = ANYBODY


class ApplyObjects(Intent[ApplyAnswer], frozen=True, kw_only=True):
    """Put all objects of a `List` in one commit, or none; a PriorityClass changes the configuration.

    Of the kinds in `prune`, all other objects are deleted that did not change after `prune_before`.
    """

    manifests: tuple[Applicable, ...]
    undrawn: bool = False
    """Whether names of some of them are still to be drawn (`service.model.manifests.generated_names`)."""
    prune: frozenset[str] = frozenset()
    prune_before: int | None = None
    caller: Caller = ANYBODY


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a line wants deleted, if it is the one that was meant."""

    kind: str
    namespace: str = ""
    name: str
    preconditions: Preconditions = NO_PRECONDITIONS


class ApplyLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of NDJSON: the object, or the error that it is not valid or may not be written."""

    line: int
    object: Applicable | Deletion | InvalidManifest | Forbidden
    kind: str | None = None
    """The kind that a bad line names, as far as it can be read; a good line has it in its object."""
    namespace: str | None = None
    name: str | None = None


class ApplyLines(Intent[LinesAnswer], frozen=True, kw_only=True):
    """Put or delete some objects in one commit; bad lines are reported, and stop no other."""

    lines: tuple[ApplyLine, ...]
    caller: Caller = ANYBODY


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """A merge patch (RFC 7396) of the status of a pod, if it is the one that was meant."""

    kind: ClassVar[str] = PodManifest.kind
    namespace: str
    name: str
    status: bytes
    """A JSON object, compact."""
    preconditions: Preconditions = NO_PRECONDITIONS


class ReportLine(msgspec.Struct, frozen=True, kw_only=True):
    """One report, or the error that it is not valid or may not be made; they count from 1."""

    line: int
    report: StatusReport | InvalidManifest | Forbidden
    namespace: str | None = None
    """The namespace that a bad report names, as far as it can be read; likewise its `name`."""
    name: str | None = None


class ReportStatus(Intent[LinesAnswer], frozen=True, kw_only=True):
    """Change the status of some pods in one commit; bad reports are told of, and stop no other."""

    lines: tuple[ReportLine, ...]
    caller: Caller = ANYBODY


class PutConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Replace the configuration, or create the cluster with it; `config` is decoded JSON.

    If it is None, a new cluster gets the default configuration, and another one keeps its own.
    """

    config: Mapping[str, Any] | None
    preconditions: Preconditions = NO_PRECONDITIONS
    hosts: ExtenderHosts | None = None
    """Where extenders may be that the configuration names and did not name before; None: anywhere."""


class PatchConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Change single settings; `patch` is the decoded body."""

    patch_type: PatchType
    patch: Any
    preconditions: Preconditions = NO_PRECONDITIONS
    hosts: ExtenderHosts | None = None
    """The hosts of extenders as for `PutConfig`."""


NOTHING_SAID: Mapping[ObjectName, ExtenderVerdict] = MappingProxyType({})
"""Extenders are asked where that is needed, and have said nothing yet."""


class PlacePods(Intent[PlacementAnswer], frozen=True, kw_only=True):
    """Place pods: `pods` are new or stored ones, `pod_refs` stored ones; one of the two is empty."""

    pods: tuple[PodManifest, ...] = ()
    undrawn: bool = False
    """Whether names of some of these pods are still to be drawn (`service.model.manifests.generated_names`)."""
    pod_refs: tuple[PodRef, ...] = ()
    path: Literal["pods", "podRefs", "template", "place", "pod"] = "pods"
    """The field of the request that has the pods, for the paths in errors (see `place_of`)."""
    all_or_nothing: bool = False
    queue: bool = False
    """Whether pods that cannot be placed are kept as pending pods."""
    dry_run: bool = False
    explain: Explain = "None"
    preemption: Preemption = "Never"
    """Propose: say which pods would have to leave which node for a pod that fits nowhere; Evict: have
    them leave."""
    preemption_scope: PreemptionScope = "Node"
    """Node: only pods of that node; Domains: also pods on other nodes that rules blame."""
    budgets_as_given: bool = False
    """Whether disruption budgets allow what their `status` says, instead of what the pods make of them."""
    without_groups: bool = False
    """Whether PodGroups are ignored, so that their members are pods like all others."""
    compare: bool = False
    """Whether the results tell what placements over several clusters compare."""
    leases: HeldLeases | None = None
    """What has to be held still when the pods are placed; else the request is refused."""
    reserving: ReservationTerms | None = None
    """If it is given, all the pods or none are only reserved, for a group in several clusters."""
    consulted: Mapping[ObjectName, ExtenderVerdict] | None = None
    """What the extenders of profiles say of pods. None: nobody asks them, so that pods of whose profile
    there are any get no node."""
    caller: Caller = ANYBODY

    def place_of(self, index: int) -> str:
        """The path of a pod in the request: `pods[3]`, or `template` for all replicas of one."""
        return self.path if self.path in ("template", "pod") else f"{self.path}[{index}]"


class AdvanceGroup(Intent[GroupAnswer], frozen=True, kw_only=True):
    """Take the next step of a group that is placed in several clusters, in one of them."""

    group: str
    """The id of the group."""
    step: GroupStep
    leases: HeldLeases | None = None
    """What has to be held still when the step is taken; else it is refused."""


class FindVictims(Intent[VictimsAnswer], frozen=True, kw_only=True):
    """Ask on which nodes room could be made for a pod, and who would have to leave each; changes nothing."""

    asked: PlacePods
    """The placement of that one pod."""


class PlacePending(Intent[PendingAnswer], frozen=True, kw_only=True):
    """Place pending pods that the queue has found due; this is no client's request."""

    attempts: Attempts
    clock: Callable[[], datetime] | None = None
    """The clock as for `EvictViolating`; without it nobody is evicted."""


class BindPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Place a pending pod on this node, if all filters pass there or with `force`."""

    namespace: str
    name: str
    node_name: str
    force: bool = False
    uid: str | None = None


class ConfirmBinding(Intent[ConfirmationAnswer], frozen=True, kw_only=True):
    """Ask whether the required rules of a placed pod hold now, before its node starts it."""

    namespace: str
    name: str
    uid: str
    pod_revision: int
    """The revision that last changed the pod as the node saw it, its `metadata.resourceVersion`."""
    node_name: str | None = None
    """The node that asks; None: any, since an unchanged pod is on the node where it was seen."""


class EvictPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Mark a pod as to be stopped: its orchestrator does so and confirms by a delete."""

    namespace: str
    name: str
    uid: str | None = None
    resource_version: str | None = None


class MakePlan(Intent[Planned], frozen=True, kw_only=True):
    """Plan what to do after changes to the cluster; neither the changes nor the steps are made."""

    changes: tuple[PlanChange, ...] = ()
    goal: Goal = Place()
    bounds: PlanBounds = PlanBounds()
    explain: Explain = "None"
    caller: Caller = ANYBODY

    def is_small(self, pods_max: int) -> bool:
        """Whether the plan leaves nodes and rules alone, and names at most so many pods.

        Then it costs other decisions no more than a dry run of these pods.
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
    """Find the least changes after which a stored pod fits that no node takes."""

    namespace: str
    name: str
    changes_max: int
    """How many changes a repair may have, of the pod and of nodes."""
    repairs_max: int
    """How many repairs are told."""
    removable: frozenset[str] | None = None
    """The namespaces whose pods may be told to go; None: all."""


class FindCapacity(Intent[CapacityAnswer], frozen=True, kw_only=True):
    """Count how many of these pods, which are all alike, get nodes before one is refused."""

    pods: tuple[PodManifest, ...]
    topology_key: str | None = None
    """The label of nodes by whose values they are counted, too."""
    explain: Explain = "None"
    """How the refusal of the next one is explained."""
    caller: Caller = ANYBODY


class CommitPlan(Intent[Planned], frozen=True, kw_only=True):
    """Make a plan and carry it out in one commit, if its goal is reached, and it is the one expected."""

    plan: MakePlan
    expected: tuple[PlanStepKey, ...] | None = None
    """The steps that the plan has to have; None: any."""


class ExplainPod(Intent[ExplanationAnswer], frozen=True, kw_only=True):
    """Explain why a stored pod is where it is, or why it waits."""

    namespace: str
    name: str
    node_name: str | None = None
    """The only node about which to explain, with all that stands against the pod there; None: all."""


class ReadTopology(Intent[TopologyAnswer], frozen=True, kw_only=True):
    """Read the domains of a topology key."""

    key: str
    """A label of nodes, or `metadata.name`: each node by itself."""
    namespaces: frozenset[str] | None = None
    """The namespaces whose pods are counted; None: all."""


class ReadComputed(Intent[ComputedAnswer], frozen=True, kw_only=True):
    """Read objects whose `status` is computed: all of a kind, those of a namespace, or one."""

    kind: str
    namespace: str | None = None
    name: str | None = None


class ReadViolations(Intent[ViolationsAnswer], frozen=True, kw_only=True):
    """Read which placed pods break which required rule."""


class EvictViolating(Intent[EvictionsAnswer], frozen=True, kw_only=True):
    """Evict pods whose rules that are required during execution do not hold.

    This is no client's request: the controller of evictions makes it when it may be time.
    """

    clock: Callable[[], datetime]
    """Returns the database's time now, or a moment ago (P16). It is read each time the intent is
    decided, so that a timer started by this decision cannot begin too early."""


class SweepNodes(Intent[NodesAnswer], frozen=True, kw_only=True):
    """Taint nodes that are not ready, evict pods for taints, and end the pods of deleted nodes.

    This is no client's request: the controller of nodes makes it when it may be time.
    """

    clock: Callable[[], datetime]
    """The clock as for `EvictViolating`."""
    silent: frozenset[str] | None = None
    """The nodes that have not reported for the grace period, though before; None: it is not known."""
    judges: bool = False
    """Whether such a node counts as silent from now on: not while all had no chance to report."""


class CordonNode(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Have a node take no new pods, or take them again."""

    name: str
    unschedulable: bool


class DrainNode(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Cordon a node, and keep a plan by which all pods but daemons leave it.

    A plan for this node that has not ended is gone on with.
    """

    name: str
    when_unschedulable: WhenUnschedulable = "Wait"


class SetPlanState(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Pause, resume or cancel a plan that is kept."""

    name: str
    state: PlanState


class AdvancePlans(Intent[PlansAnswer], frozen=True, kw_only=True):
    """Take the next step of each plan that is kept, as the cluster is now.

    This is no client's request: the controller of plans makes it when it may be time.
    """

    clock: Callable[[], datetime]
    """The clock as for `EvictViolating`."""
    found: tuple[FoundMoves, ...] = ()
    """What the searches have found that the last answer has asked for."""


class Idempotency(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A client's key for one request: the answer is recorded, and given again to a repetition (P11)."""

    operation: str
    key: str
    chunk: int = 0
    request_hash: bytes
    encode: Callable[[A], bytes]
    """Turns the decided answer into the bytes that are recorded, and that the API reads back."""
