"""Pod groups (gangs), whose pods get nodes together or not at all.

Groups have the format of the coscheduling plugin of kubernetes-sigs/scheduler-plugins, or of
Kubernetes itself (`service.model.pods.scheduling_groups`).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.core.primitives import AtLeastOne, Quantities, Strict, Value

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The pod label that names a PodGroup in the pod's namespace."""

COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
"""The API version of scheduler-plugins' pod groups."""
UPSTREAM_GROUP = "scheduling.k8s.io/"
"""The prefix of the API versions of Kubernetes' own pod groups."""
UPSTREAM = tuple(f"{UPSTREAM_GROUP}{version}" for version in ("v1alpha2", "v1alpha3", "v1beta1"))
"""The API versions of Kubernetes' own pod groups: one of v1.36, and two of v1.37."""

PodGroupPhase = Literal["Pending", "Scheduling", "Running", "Unknown", "Finished", "Failed"]


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A pod group, whose members get nodes only if at least `min_member` of them can."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    min_member: int = 1
    """The number of members that must get nodes together; 0 places each member independently."""
    topology_key: str | None = None
    """The node label whose value must be the same for all members' nodes, or None."""
    schedule_timeout_seconds: int | None = None
    """The seconds after which the conditions of waiting members report a timeout, or None."""
    uid: str = ""


class PodGroupStatus(Value, frozen=True, kw_only=True, omit_defaults=False):
    """How the members fare, exactly as of the answer's revision; ignored where it is sent."""

    phase: PodGroupPhase | None = None
    """Scheduling: at least `minMember` have nodes; Running: and run. Unknown: fewer have."""
    members: int | None = None
    """Pods of the namespace that have the group's label."""
    scheduled: int | None = None
    """Members that have a node and have not ended."""
    running: int | None = None
    """Members whose `status.phase` is Running."""
    succeeded: int | None = None
    """Members whose `status.phase` is Succeeded."""
    failed: int | None = None
    """Members whose `status.phase` is Failed."""
    schedule_start_time: str | None = None
    """Since when the group waits: the time of `scheduleTimeoutSeconds` counts from here."""


def phase_of(
    min_member: int, *, scheduled: int, running: int, succeeded: int, failed: int
) -> PodGroupPhase:
    """Return the group's phase for these counts, by the rules of scheduler-plugins' controller."""
    if failed and failed + running + succeeded >= min_member:
        return "Failed"
    if succeeded >= min_member:
        return "Finished"
    if running + succeeded >= min_member:
        return "Running"
    if scheduled + succeeded >= min_member:
        return "Scheduling"
    return "Unknown" if scheduled else "Pending"


class PodGroupSpec(Strict, frozen=True, kw_only=True):
    """The minimum number of pods that must get nodes together."""

    min_member: AtLeastOne | None = None
    """So many members have to be there, and to have a place, before any of them gets a node; 1 if
    absent."""
    min_resources: Quantities | None = None
    """Kept, but not read: the search for places knows what each member needs."""
    schedule_timeout_seconds: AtLeastOne | None = None
    """Members that have waited so long are told so; they go on waiting."""
