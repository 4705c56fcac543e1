"""An index of groups: members of pod groups, and pods that one request placed together.

The index follows the replica change by change, including tentative changes; undoing a change means
applying the opposite one. Like the quota ledger, the index can be recomputed from the objects
alone.
"""

from collections.abc import Collection
from typing import NamedTuple

from service.model.core.primitives import ObjectName
from service.model.pods.pod_group import POD_GROUP_LABEL
from service.model.registry.manifests import PodManifest
from service.scheduler.replica.stored_kinds import StoredManifest, WaitingGroup


class GroupRef(NamedTuple):
    """A group: a PodGroup, a pod group of a Workload, or (with no namespace) a `WaitingGroup`."""

    namespace: str
    name: str
    workload: str = ""
    """The Workload that the pod group is part of."""
    replica_key: str = ""
    """The replica of the Workload's pod group."""


class Groups:
    """The members of all groups of one cluster."""

    def __init__(self) -> None:
        self._labelled: dict[GroupRef, dict[ObjectName, None]] = {}
        self.waiting: dict[ObjectName, WaitingGroup] = {}
        """The waiting group of each pod waiting to be placed all or none."""

    def change(self, before: StoredManifest | None, after: StoredManifest | None) -> None:
        """Process the creation (no `before`), change, or deletion (no `after`) of an object."""
        match after or before:
            case PodManifest():
                old, new = _labelled(before), _labelled(after)
                if old != new:
                    self._relabel(old, new)
            case WaitingGroup():
                self._rewait(before, after)
            case _:
                pass

    def members(self, group: GroupRef) -> Collection[ObjectName]:
        """Return the stored pods that have a group's label, or name it in their specs."""
        return self._labelled.get(group, {}).keys()

    def all_waiting(self) -> list[WaitingGroup]:
        """Return all waiting groups."""
        return list({group.name: group for group in self.waiting.values()}.values())

    def _rewait(self, before: StoredManifest | None, after: StoredManifest | None) -> None:
        if isinstance(before, WaitingGroup):
            for key in before.members:
                if self.waiting.get(key) is before:
                    del self.waiting[key]
        if isinstance(after, WaitingGroup):
            self.waiting.update(dict.fromkeys(after.members, after))

    def _relabel(
        self, old: tuple[GroupRef, ObjectName] | None, new: tuple[GroupRef, ObjectName] | None
    ) -> None:
        if old is not None:
            group, key = old
            members = self._labelled[group]
            del members[key]
            if not members:
                del self._labelled[group]
        if new is not None:
            group, key = new
            self._labelled.setdefault(group, {})[key] = None


def group_of(manifest: PodManifest) -> GroupRef | None:
    """Return the group of a pod, stored or not, by its label or spec, or None."""
    name, stated = manifest.pod.labels.get(POD_GROUP_LABEL), manifest.template.group
    if name:
        return GroupRef(manifest.pod.namespace, name)
    if stated is None:
        return None
    return GroupRef(manifest.pod.namespace, stated.name, stated.workload, stated.replica_key)


def _labelled(manifest: StoredManifest | None) -> tuple[GroupRef, ObjectName] | None:
    if not isinstance(manifest, PodManifest):
        return None
    group = group_of(manifest)
    return (group, (manifest.namespace, manifest.name)) if group else None
