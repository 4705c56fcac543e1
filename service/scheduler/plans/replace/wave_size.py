"""How many new pods a rollout's wave creates, given its bounds, limits, and whole groups.

Group members get nodes only if there are enough of them. So a wave creates as many pods as the
group needs, even beyond the limit of one wave. If the rollout's bounds never allow that many, no
pod leaves, either.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.groups.group_membership import members_of
from service.scheduler.plans.replace.rollout import Rollout, new_pods
from service.scheduler.plans.waves import Blocked
from service.scheduler.protocol.plans import Replace
from service.scheduler.replica.pod_groups import group_of


class NewPodsOfWave(NamedTuple):
    """The new pods to create in a wave, and the first one that a limit keeps out."""

    pods: Sequence[PodManifest]
    held: Sequence[tuple[PodManifest, Blocked]] = ()


def new_pods_of_wave(
    context: DecisionContext, rollout: Rollout, goal: Replace, leaving_count: int, most: int
) -> NewPodsOfWave:
    """Return about `most` new pods for `leaving_count` leaving ones, in whole groups."""
    needed = _members_needed(context, goal)
    pods = new_pods(rollout, goal, leaving_count, max(most, needed))
    room = max(context.limits.objects_max - context.replica.object_count, 0)
    if len(pods) <= room:
        return NewPodsOfWave(pods)
    count = room if room >= needed else 0
    message = (
        f"With {len(pods) - count} more new pods the cluster would have more objects than it may "
        f"(objects_max): {context.limits.objects_max}."
    )
    return NewPodsOfWave(pods[:count], [(pods[count], Blocked("TooManyObjects", message))])


def group_too_large(
    context: DecisionContext, rollout: Rollout, goal: Replace
) -> tuple[PodManifest, Blocked] | None:
    """Return a new pod whose group can never be large enough at once, with the reason, or None."""
    needed = _members_needed(context, goal)
    new = len(rollout.new)
    room = goal.bounds.pods_max - max(goal.bounds.available_min, new)
    most = min(room, goal.replicas - new)
    if needed <= most or new >= goal.replicas:
        return None
    group = group_of(goal.template)
    assert group is not None
    message = (
        f"{members_of(context.replica, group).title} needs {needed} more members at once, and at "
        f"most {most} new pods may come at once (replicas, maxSurge, maxUnavailable)."
    )
    first = goal.template.named(f"{goal.template.name}-{new}")
    return first, Blocked("GroupTooLarge", message)


def _members_needed(context: DecisionContext, goal: Replace) -> int:
    """Return how many new pods must be created at once for their group to get nodes."""
    group = group_of(goal.template)
    if group is None:
        return 0
    members = members_of(context.replica, group)
    gated = members.gated
    return max(members.min_member - members.scheduled - len(members.waiting) + gated, 0)
