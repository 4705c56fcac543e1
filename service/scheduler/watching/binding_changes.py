"""Changes of bindings, as small records derived from single changes of the log."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.log.commit import Change
from service.model.pods.status import DISRUPTION_TARGET
from service.model.registry.manifests import PodManifest
from service.model.selection.selectable_fields import NODE_NAME, PENDING, PHASE, TERMINATING
from service.scheduler.watching.watch_events import altered_fields

BindingAction = Literal[
    "Placed", "Terminating", "Succeeded", "Failed", "Unplaced", "Deleted", "Bookmark"
]
_ENDED: Mapping[str, Literal["Succeeded", "Failed"]] = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}


class BindingChange(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """What a change made of the binding of one pod; or a bookmark."""

    revision: int
    """The revision of the change; of a bookmark, the one up to which everything was sent."""
    action: BindingAction
    """What happened: the pod was Placed on the node; it is to be stopped (Terminating); it ended
    (Succeeded, Failed); it is on this node no longer (Unplaced); it was Deleted. A Bookmark is about
    no pod."""
    namespace: str | msgspec.UnsetType = msgspec.UNSET
    """Namespace of the pod; absent in bookmarks."""
    name: str | msgspec.UnsetType = msgspec.UNSET
    """Name of the pod; absent in bookmarks."""
    uid: str | msgspec.UnsetType = msgspec.UNSET
    """`metadata.uid` of the pod; absent in bookmarks."""
    node_name: str | msgspec.UnsetType = msgspec.UNSET
    """The node that the pod is on; of an Unplaced or Deleted one, the node that it was on."""
    previous_node_name: str | msgspec.UnsetType = msgspec.UNSET
    """The node that the pod was on until now, where it has moved."""
    reason: str | msgspec.UnsetType = msgspec.UNSET
    """Why the pod is to be stopped or has ended, such as EvictionByEvictionAPI: the reason of its
    condition DisruptionTarget, else `status.reason`; absent if neither says."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None
    reason: str | None = None
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct, frozen=True):
    """The fields of a pod's JSON that records need."""

    metadata: _Metadata = _Metadata()
    status: _Status | None = None

    @property
    def phase(self) -> str:
        return (self.status and self.status.phase) or PENDING

    @property
    def disruption(self) -> str | None:
        conditions = (self.status and self.status.conditions) or ()
        disruptions = (condition for condition in conditions if condition.type == DISRUPTION_TARGET)
        return next(
            (condition.reason for condition in disruptions if condition.status == "True"), None
        )

    @property
    def reason(self) -> str | msgspec.UnsetType:
        return self.disruption or (self.status and self.status.reason) or msgspec.UNSET


_pod = msgspec.json.Decoder(_Pod)
_UNBOUND: Mapping[str, str] = {NODE_NAME: "", PHASE: PENDING, TERMINATING: "false"}
"""The fields of a pod before its creation."""


class BindingSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The bindings that a watcher selects; None selects all."""

    namespace: str | None = None
    node: str | None = None

    def record(self, change: Change) -> BindingChange | None:
        """Return a change's effect on a selected binding, or None.

        Each revision has at most one record, so that a stream can resume after any record. A
        watcher of one node receives Unplaced for a pod that has moved to another node.

        Raises:
            Compacted: the log lacks the pod's earlier state.
        """
        if change.kind != PodManifest.kind or self.namespace not in {None, change.namespace}:
            return None
        if change.fields_before == b"":  # Most changes of pods do not affect bindings.
            return None
        record = _deleted(change) if change.verb == "Delete" else _put(change)
        if record is None or self.node in {None, record.node_name}:
            return record
        if record.previous_node_name == self.node:
            return _record(change, "Unplaced", record.previous_node_name)
        return None


def _deleted(change: Change) -> BindingChange | None:
    if not change.node_name:
        return None
    return _record(change, "Deleted", change.node_name, _pod.decode(change.body).reason)


def _put(change: Change) -> BindingChange | None:
    before = _UNBOUND if change.created else altered_fields(change)
    if not before:
        return None
    node, previous = change.node_name or "", before.get(NODE_NAME)
    if not node:
        return _record(change, "Unplaced", previous) if previous else None
    pod = _pod.decode(change.body)
    action = _action(pod, before)
    if action is None:
        return None
    reason = msgspec.UNSET if action == "Placed" else pod.reason
    return _record(change, action, node, reason, previous=previous or msgspec.UNSET)


def _action(pod: _Pod, before: Mapping[str, str]) -> BindingAction | None:
    """Return the binding action that a change of a pod with a node just caused, or None."""
    if (ended := _ENDED.get(pod.phase)) is not None:
        return ended if NODE_NAME in before or PHASE in before else None
    is_new = NODE_NAME in before or before.get(PHASE) in _ENDED
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating" if is_new or TERMINATING in before else None
    return "Placed" if is_new else None


def _record(
    change: Change,
    action: BindingAction,
    node: str,
    reason: str | msgspec.UnsetType = msgspec.UNSET,
    previous: str | msgspec.UnsetType = msgspec.UNSET,
) -> BindingChange:
    return BindingChange(
        revision=change.revision,
        action=action,
        namespace=change.namespace,
        name=change.name,
        uid=change.uid,
        node_name=node,
        previous_node_name=previous,
        reason=reason,
    )
