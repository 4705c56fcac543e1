"""The kinds of objects that a replica holds, and their decoding."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, TypeAlias

import msgspec

from service.model.cluster.cluster_config import ClusterConfig, usable_config
from service.model.core.errors import MoorageError, ObjectUnreadable
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME, ObjectName
from service.model.log.commit import Change, ObjectRow
from service.model.registry.manifests import AnyManifest, PodManifest, TemplateCache, load_any


class ConfigManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster's configuration, stored as the object (`Cluster`, "", `config`)."""

    kind: ClassVar[str] = CLUSTER_KIND
    namespace: ClassVar[str] = ""
    name: ClassVar[str] = CLUSTER_NAME
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    config: ClusterConfig
    body: bytes
    """The settings as JSON."""

    def render(self) -> bytes:
        return self.body


class ViolationTimer(msgspec.Struct, frozen=True, kw_only=True):
    """The time when a pod's rule broke; the uid identifies the very pod."""

    namespace: str
    name: str
    uid: str
    rule: str
    since: datetime


class EvictionsAt(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods were evicted at a time."""

    at: datetime
    pods: int


class BlockedEviction(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a broken rule whose eviction a disruption budget forbids."""

    namespace: str
    name: str
    uid: str
    budget: str
    """The name of the budget."""


class EvictionState(msgspec.Struct, frozen=True, kw_only=True):
    """The evictions' state for later sweeps, stored as the object (`Evictions`, "", `state`)."""

    kind: ClassVar[str] = "Evictions"
    namespace: ClassVar[str] = ""
    name: ClassVar[str] = "state"
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    timers: tuple[ViolationTimer, ...] = ()
    """The running timers, sorted by namespace, name, and rule."""
    recent: tuple[EvictionsAt, ...] = ()
    """The evictions of the last minute, oldest first."""
    blocked: tuple[BlockedEviction, ...] = ()
    """The pods waiting for a disruption budget that were already reported in an event."""

    def render(self) -> bytes:
        return msgspec.json.encode(self)


class WaitingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that wait to be placed all or none, stored as (`WaitingGroup`, "", id).

    The group also waits for denied members, which are not stored.
    """

    kind: ClassVar[str] = "WaitingGroup"
    namespace: ClassVar[str] = ""
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    name: str
    members: tuple[ObjectName, ...]
    """The pods' namespaces and names, in the order of the request."""

    def render(self) -> bytes:
        return msgspec.json.encode(self)


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """A node's state besides its manifest, stored as (`NodeState`, "", the node's name).

    The object exists only for nodes with such state.
    """

    kind: ClassVar[str] = "NodeState"
    namespace: ClassVar[str] = ""
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    name: str
    silent: bool = False
    """Whether the condition Ready is Unknown because the node has not reported for too long."""
    told_ready: str = ""
    """The last reported status of a silent node's condition Ready, or ""."""
    deleted: bool = False
    """Whether the node was deleted while pods were on it."""
    deleted_at: datetime | None = None
    """The start of the grace period of these pods, or None until a sweep sets it."""

    def render(self) -> bytes:
        return msgspec.json.encode(self)


class MoveReservation(msgspec.Struct, frozen=True, kw_only=True):
    """Room reserved for the replacement of a pod that a plan moves.

    Stored as the object (`MoveReservation`, namespace, name) from the pod's eviction on. It
    includes the pod, which is deleted before its replacement is created.
    """

    kind: ClassVar[str] = "MoveReservation"
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    pod: PodManifest
    """The pod as it was before its eviction."""
    node_name: str
    """The node on which room is reserved."""
    plan: str
    """The name of the plan that moves the pod."""
    plan_uid: str
    since: datetime
    came_to: str = ""
    """The replacement's node, or "" until placed. Once placed, no room is reserved any more."""

    @property
    def namespace(self) -> str:
        return self.pod.namespace

    @property
    def name(self) -> str:
        return self.pod.name

    def render(self) -> bytes:
        return msgspec.json.encode(
            _Reserved(
                pod=msgspec.Raw(self.pod.render()),
                node_name=self.node_name,
                plan=self.plan,
                plan_uid=self.plan_uid,
                since=self.since,
                came_to=self.came_to,
            )
        )


class _Reserved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The encoded form of a `MoveReservation`."""

    pod: msgspec.Raw
    node_name: str
    plan: str
    plan_uid: str
    since: datetime
    came_to: str = ""


class SplitGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A split group, stored as (`SplitGroup`, "", id) in its home cluster, which decides for all.

    While the group exists uncommitted, its pods wait with reserved nodes. Once it is committed, its
    pods are bound. If it is deleted, unbound pods are deleted, too.
    """

    kind: ClassVar[str] = "SplitGroup"
    namespace: ClassVar[str] = ""
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    name: str
    clusters: tuple[str, ...]
    """The names of all clusters that have pods of the group, including its home."""
    until: datetime
    """The time after which any process may give up the group or, if committed, complete it."""
    committed: bool = False

    def render(self) -> bytes:
        return msgspec.json.encode(self)


class GroupReservation(msgspec.Struct, frozen=True, kw_only=True):
    """The reserved node of a pod of a `SplitGroup`, until the group's outcome is known.

    Stored as the object (`GroupReservation`, namespace, name) of the pod, which is also stored as
    pending. All rules treat the pod as being on the node.
    """

    kind: ClassVar[str] = "GroupReservation"
    uid: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, str]] = {}
    namespace: str
    name: str
    pod_uid: str
    """The uid of the pod; the reservation does not apply to another pod of this name."""
    node_name: str
    group: str
    """The id of the group."""
    home: str
    """The name of the cluster that stores the `SplitGroup`."""
    until: datetime
    """The time until which the group may be committed, as in the `SplitGroup`."""

    def render(self) -> bytes:
        return msgspec.json.encode(self)


INTERNAL_KINDS = frozenset(
    {
        CLUSTER_KIND,
        EvictionState.kind,
        GroupReservation.kind,
        MoveReservation.kind,
        NodeState.kind,
        SplitGroup.kind,
        WaitingGroup.kind,
    }
)
"""The kinds hidden from clients."""

StoredManifest: TypeAlias = (
    AnyManifest
    | ConfigManifest
    | EvictionState
    | GroupReservation
    | MoveReservation
    | NodeState
    | SplitGroup
    | WaitingGroup
)
"""Any object that a replica holds."""


def load_manifest(kind: str, body: bytes, templates: TemplateCache) -> StoredManifest:
    """Decode an object from its committed bytes, which are known to be valid.

    Raises:
        KeyError: this version does not know the kind.
        PluginMissing: a configuration names a plugin that this process does not know.
    """
    if kind == CLUSTER_KIND:
        return ConfigManifest(config=usable_config(body), body=body)
    if kind == EvictionState.kind:
        return msgspec.json.decode(body, type=EvictionState)
    if kind == MoveReservation.kind:
        return _load_reservation(body, templates)
    if kind == NodeState.kind:
        return msgspec.json.decode(body, type=NodeState)
    if kind == WaitingGroup.kind:
        return msgspec.json.decode(body, type=WaitingGroup)
    if kind == GroupReservation.kind:
        return msgspec.json.decode(body, type=GroupReservation)
    if kind == SplitGroup.kind:
        return load_split_group(body)
    return load_any(kind, body, templates)


def read_row(row: ObjectRow | Change, templates: TemplateCache) -> StoredManifest:
    """Decode an object from its row, or from the change that put it.

    Raises:
        ObjectUnreadable: the object cannot be read.
        PluginMissing: a configuration names a plugin that this process does not know.
    """
    try:
        return load_manifest(row.kind, row.body, templates)
    except MoorageError:
        raise
    except Exception as error:
        raise ObjectUnreadable(row.kind, row.namespace, row.name) from error


def load_split_group(body: bytes) -> SplitGroup:
    """Decode a split group from its committed bytes."""
    return msgspec.json.decode(body, type=SplitGroup)


def _load_reservation(body: bytes, templates: TemplateCache) -> MoveReservation:
    read = msgspec.json.decode(body, type=_Reserved)
    pod = load_any(PodManifest.kind, bytes(read.pod), templates)
    assert isinstance(pod, PodManifest)
    return MoveReservation(
        pod=pod,
        node_name=read.node_name,
        plan=read.plan,
        plan_uid=read.plan_uid,
        since=read.since,
        came_to=read.came_to,
    )
