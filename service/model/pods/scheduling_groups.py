"""Kubernetes' own gangs: the groups named in pod specs, and Workloads.

In v1.35, a Workload of `scheduling.k8s.io/v1alpha1` lists an application's pod groups, and a pod
names one of them in `spec.workloadRef`. Since v1.36, PodGroups are separate objects
(`scheduling.k8s.io/v1alpha2`, `v1alpha3`, `v1beta1`), which pods name in `spec.schedulingGroup`,
and Workloads only have group templates. v1alpha3 and v1beta1 have the same fields, apart from the
CompositePodGroups of v1alpha3, which are refused: placing one of their groups by itself would
break the promise of the whole.

Source: `core/v1` and `scheduling/*` of kubernetes/api, v0.35.4, v0.36.3, and v0.37.2.
"""

from collections.abc import Mapping

import msgspec

from service.model.core import names
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.kind import KindSpec
from service.model.core.primitives import AtLeastOne, Partial
from service.model.core.type_rules import declared
from service.model.core.validators import (
    INT32_MAX,
    REQUIRED,
    Problems,
    Record,
    Rule,
    absent,
    at,
    entries_of,
    items_of,
    list_of,
    record,
    text,
    whole_number,
)
from service.model.pods.pod_group import POD_GROUP_LABEL, UPSTREAM, UPSTREAM_GROUP

WORKLOAD_VERSION = f"{UPSTREAM_GROUP}v1alpha1"
"""The only API version whose Workloads have pod groups that pods name."""
WORKLOAD_GROUPS_MAX = 8
"""The most pod groups per Workload, as in Kubernetes."""

COMPOSITE_KIND = "CompositePodGroup"
"""The kind of groups of groups, which Kubernetes has in `scheduling.k8s.io/v1alpha3`."""
NO_COMPOSITES = (
    "composite pod groups are not supported: write a PodGroup for each of their groups, without "
    "spec.parentCompositePodGroupName"
)
"""Why an object of this kind is refused."""
_NO_PARENT = (
    "must not be set, as composite pod groups are not supported: without it, the group is placed "
    "independently of others"
)
_NO_COMPOSITE_TEMPLATES = "must not be set, as composite pod groups are not supported: list the groups in podGroupTemplates"
COMPOSITE_FIELDS = frozenset(
    {
        ("PodGroup", "spec.parentCompositePodGroupName"),
        ("Workload", "spec.compositePodGroupTemplates"),
    }
)
"""The kinds and paths of fields that are refused, as they belong to composite groups."""

Json = Mapping[str, object]


class GroupMembership(msgspec.Struct, frozen=True):
    """The pod group that a pod's spec names."""

    name: str
    """The name of a PodGroup, or of a pod group within a Workload."""
    workload: str = ""
    """The name of the Workload, or "" if the group is a PodGroup."""
    replica_key: str = ""
    """The replica key of a Workload's pod group; each replica forms a group of its own."""

    @property
    def field(self) -> str:
        """The path of the pod field that names the group."""
        return "spec.workloadRef" if self.workload else "spec.schedulingGroup.podGroupName"


def membership_of(spec: Json) -> GroupMembership | None:
    """Return the group that a valid spec names, or None."""
    named = entries_of(spec.get("schedulingGroup")).get("podGroupName")
    if named:
        return GroupMembership(str(named))
    reference = entries_of(spec.get("workloadRef"))
    if not reference:
        return None
    replica_key = reference.get("podGroupReplicaKey") or ""
    return GroupMembership(str(reference["podGroup"]), str(reference["name"]), str(replica_key))


def refuse_other_group(labels: Mapping[str, str], membership: GroupMembership) -> None:
    """Reject a pod whose label names another group than its spec.

    Raises:
        InvalidManifest: the two differ; the error has the field of the spec.
    """
    label = labels.get(POD_GROUP_LABEL)
    if not label or (label, "") == (membership.name, membership.workload):
        return
    if membership.workload:
        message, shown = f"must not be set together with the label {POD_GROUP_LABEL}", None
    else:
        message = f"must be {label}, as the label {POD_GROUP_LABEL} says"
        shown = membership.name
    raise InvalidManifest([FieldError(membership.field, message, shown)])


class GangSchedulingPolicy(Partial, frozen=True, kw_only=True):
    """Pods get nodes together, or not at all."""

    min_count: AtLeastOne
    """So many pods have to have nodes before any of them may have one."""


class PodGroupSchedulingPolicy(Partial, frozen=True, kw_only=True):
    """How the pods of a group are placed: exactly one of its fields is set."""

    gang: GangSchedulingPolicy | None = None
    """They get nodes together, or not at all."""
    basic: dict[str, object] | None = None
    """Each of them is placed like any other pod."""


class TopologyConstraint(Partial, frozen=True, kw_only=True):
    """All members of the group have to be in one domain."""

    key: str
    """The label of nodes whose values are the domains."""


class PodGroupSchedulingConstraints(Partial, frozen=True, kw_only=True):
    """Where the pods of a group may go."""

    topology: tuple[TopologyConstraint, ...] = ()
    """At most one."""


class ScheduledGroupSpec(Partial, frozen=True, kw_only=True):
    """The fields of a `scheduling.k8s.io` PodGroup that scheduling reads."""

    scheduling_policy: PodGroupSchedulingPolicy
    """How the group's members are placed."""
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    """Constraints on where the members may be placed."""

    @property
    def topology_key(self) -> str | None:
        """The node label whose value must be the same for all members' nodes, or None."""
        constraints = self.scheduling_constraints
        return constraints.topology[0].key if constraints and constraints.topology else None


class WorkloadPodGroup(Partial, frozen=True, kw_only=True):
    """A pod group within a Workload."""

    name: str
    """The name by which pods name it."""
    policy: PodGroupSchedulingPolicy
    """How its pods are placed."""


class WorkloadSpec(Partial, frozen=True, kw_only=True):
    """The groups of an application. Other fields are kept and returned as they are."""

    pod_groups: tuple[WorkloadPodGroup, ...] = ()
    """The pod groups that pods name in `workloadRef`; only in v1alpha1."""


class WorkloadBody(Partial, frozen=True, kw_only=True):
    """The fields of a Workload that scheduling reads."""

    spec: WorkloadSpec
    """The groups of an application."""

    def pod_group(self, name: str) -> WorkloadPodGroup | None:
        """Return the pod group with this name, or None."""
        return next((group for group in self.spec.pod_groups if group.name == name), None)


def _exactly_one(policy: Record, path: str, problems: Problems) -> None:
    stated = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(stated) != 1:
        problems.add(path, "must have exactly one of basic, gang")


_POLICY: Rule = record(
    {
        "basic": record({}, closed=False),
        "gang": declared(
            GangSchedulingPolicy,
            {"minCount": whole_number(1, INT32_MAX, "must be greater than 0")},
        ),
    },
    also=(_exactly_one,),
)
"""The rule for scheduling policies; unknown ones are errors."""


def _one_constraint(constraints: Record, path: str, problems: Problems) -> None:
    if len(items_of(constraints.get("topology"))) > 1:
        problems.add(at(path, "topology"), "must have at most 1 item, as in Kubernetes")


_TOPOLOGY = declared(TopologyConstraint, {"key": text(names.label_key)})
_CONSTRAINTS = declared(
    PodGroupSchedulingConstraints,
    {"topology": list_of(_TOPOLOGY)},
    also=(_one_constraint,),
)


SCHEDULED_GROUP_SPEC = declared(
    ScheduledGroupSpec,
    {
        "schedulingPolicy": _POLICY,
        "schedulingConstraints": _CONSTRAINTS,
        "parentCompositePodGroupName": absent(_NO_PARENT),
    },
)
"""The rule for the `spec` of a `scheduling.k8s.io` PodGroup."""


def _has_groups_of_its_version(workload: Record, path: str, problems: Problems) -> None:
    """Check that a Workload lists its groups where its API version has them."""
    spec, version = workload.get("spec"), workload.get("apiVersion") or WORKLOAD_VERSION
    if not isinstance(spec, dict) or not str(version).startswith(UPSTREAM_GROUP):
        return
    first = version == WORKLOAD_VERSION
    field, other = (
        ("podGroups", "podGroupTemplates") if first else ("podGroupTemplates", "podGroups")
    )
    if spec.get(other) is not None:
        versions = "later versions" if first else WORKLOAD_VERSION
        message = f"is a field of {versions}; write {field}, or change apiVersion"
        problems.add(at(path, f"spec.{other}"), message)
    elif spec.get(field) is None and not spec.get("compositePodGroupTemplates"):
        problems.add(at(path, f"spec.{field}"), REQUIRED)


def _groups_differ(spec: Record, path: str, problems: Problems) -> None:
    where, groups = at(path, "podGroups"), items_of(spec.get("podGroups"))
    if len(groups) > WORKLOAD_GROUPS_MAX:
        problems.add(where, f"must have at most {WORKLOAD_GROUPS_MAX} items", len(groups))
    seen = set()
    for index, group in enumerate(groups):
        name = entries_of(group).get("name")
        if isinstance(name, str) and name in seen:
            message = "is the name of another pod group already"
            problems.add(f"{where}[{index}].name", message, name)
        seen.add(name if isinstance(name, str) else None)


_POD_GROUP = declared(WorkloadPodGroup, {"name": text(names.dns_label), "policy": _POLICY})

WORKLOAD = KindSpec(
    kind="Workload",
    plural="workloads",
    api_version=WORKLOAD_VERSION,
    other_versions=UPSTREAM,
    body=WorkloadBody,
    fields={
        "spec": record(
            {
                "podGroups": list_of(_POD_GROUP),
                "compositePodGroupTemplates": absent(_NO_COMPOSITE_TEMPLATES),
            },
            closed=False,
            also=(_groups_differ,),
        )
    },
    required=("spec",),
    checks=(_has_groups_of_its_version,),
    description="Workloads: which pods of an application get nodes together, or not at all. Pods "
    "name a pod group of a Workload in `spec.workloadRef`. The templates of later versions are kept.",
    example={
        "metadata": {"name": "training", "namespace": "shop"},
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 4}}}]},
    },
)
