"""What clients want of a cluster: frozen values, already read and valid by themselves.

Whether an intent can be had depends on the cluster's state, and is decided in
`service.scheduler.decide`; the type parameter says what it is answered.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from service.model.errors import Forbidden, InvalidManifest
from service.model.manifest import AnyManifest, Applicable, PodManifest
from service.model.patches import PatchType
from service.scheduler.protocol.answers import (
    Answer,
    ApplyAnswer,
    ComputedAnswer,
    ConfigAnswer,
    EvictionsAnswer,
    LinesAnswer,
    ObjectAnswer,
    PendingAnswer,
    TopologyAnswer,
    ViolationsAnswer,
)
from service.scheduler.protocol.attempts import Attempts
from service.scheduler.protocol.callers import ANYBODY, Caller
from service.scheduler.protocol.placements import ExplanationAnswer, PlacementAnswer, PodRef

A = TypeVar("A", bound=Answer)


class Intent(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """Base of all intents; `A` is the type of its answer."""


class Preconditions(msgspec.Struct, frozen=True, kw_only=True):
    """What must be true of the stored object, else the intent is refused."""

    resource_version: str | None = None
    """`metadata.resourceVersion`, as sent; RevisionConflict."""
    uid: str | None = None
    """`metadata.uid`; RevisionConflict."""
    if_match: tuple[str, ...] | None = None
    """The entity tags of `If-Match` without their quotes, `("*",)` for any; PreconditionFailed."""
    if_none_match: tuple[str, ...] | None = None
    """Likewise of `If-None-Match`: with `*` only if there is no such object; PreconditionFailed."""


NO_PRECONDITIONS = Preconditions()


class PutObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Create an object, or replace the one of the same key."""

    manifest: AnyManifest
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class PatchObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Change an object; `patch` is the decoded body."""

    kind: str
    namespace: str = ""
    name: str
    patch_type: PatchType
    patch: Any
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class DeleteObject(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Remove an object; a namespace takes its pods with it."""

    kind: str
    namespace: str = ""
    name: str
    preconditions: Preconditions = NO_PRECONDITIONS
    caller: Caller = ANYBODY


class ApplyObjects(Intent[ApplyAnswer], frozen=True, kw_only=True):
    """Put all objects of a `List` in one commit, or none; a priority class sets its setting.

    `prune` names the kinds of which all others are removed that were last changed at or before
    `prune_before`.
    """

    manifests: tuple[Applicable, ...]
    prune: frozenset[str] = frozenset()
    prune_before: int | None = None
    caller: Caller = ANYBODY


class ApplyLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of NDJSON: the object, or what is wrong with it, or that the caller may not write it."""

    line: int
    object: Applicable | InvalidManifest | Forbidden
    kind: str | None = None
    """Of a bad line, as far as it could be read; taken from the object otherwise."""
    namespace: str | None = None
    name: str | None = None


class ApplyLines(Intent[LinesAnswer], frozen=True, kw_only=True):
    """Put some objects in one commit; bad ones are reported and the rest goes on."""

    lines: tuple[ApplyLine, ...]
    caller: Caller = ANYBODY


class PutConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Replace the configuration, or create the cluster with it; `config` is decoded JSON."""

    config: Mapping[str, Any]
    if_match: tuple[str, ...] | None = None


class PatchConfig(Intent[ConfigAnswer], frozen=True, kw_only=True):
    """Change single settings; `patch` is the decoded body."""

    patch_type: PatchType
    patch: Any
    if_match: tuple[str, ...] | None = None


class PlacePods(Intent[PlacementAnswer], frozen=True, kw_only=True):
    """Place pods: `pods` are new or stored ones, `pod_refs` stored ones; one of the two is empty."""

    pods: tuple[PodManifest, ...] = ()
    pod_refs: tuple[PodRef, ...] = ()
    path: Literal["pods", "podRefs", "template", "place", "pod"] = "pods"
    """The field of the request, for errors: see `place_of`."""
    all_or_nothing: bool = False
    queue: bool = False
    """Keep what cannot be placed as pending pods."""
    dry_run: bool = False
    explain: Literal["None", "Summary", "Full"] = "None"
    without_groups: bool = False
    """Nothing is known of PodGroups: their members are pods like all others."""
    caller: Caller = ANYBODY

    def place_of(self, index: int) -> str:
        """Where the request says what a pod is: `pods[3]`, or `template` of all its replicas."""
        return self.path if self.path in ("template", "pod") else f"{self.path}[{index}]"


class PlacePending(Intent[PendingAnswer], frozen=True, kw_only=True):
    """Place stored pods that wait; nobody asked for it, the pending queue found them due."""

    attempts: Attempts


class BindPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Place a pending pod on this node, if all filters pass there or with `force`."""

    namespace: str
    name: str
    node_name: str
    force: bool = False
    uid: str | None = None


class EvictPod(Intent[ObjectAnswer], frozen=True, kw_only=True):
    """Mark a pod as to be stopped: its orchestrator does so and confirms by a delete."""

    namespace: str
    name: str
    uid: str | None = None
    resource_version: str | None = None


class ExplainPod(Intent[ExplanationAnswer], frozen=True, kw_only=True):
    """Why a stored pod is where it is, or why it waits."""

    namespace: str
    name: str


class ReadTopology(Intent[TopologyAnswer], frozen=True, kw_only=True):
    """The domains of a topology key."""

    key: str
    namespaces: frozenset[str] | None = None
    """Whose pods are counted; None: everybody's."""


class ReadComputed(Intent[ComputedAnswer], frozen=True, kw_only=True):
    """Objects of which `status` is computed: all of a kind, those of a namespace, or one."""

    kind: str
    namespace: str | None = None
    name: str | None = None


class ReadViolations(Intent[ViolationsAnswer], frozen=True, kw_only=True):
    """Which placed pods break which required rule."""


class EvictViolating(Intent[EvictionsAnswer], frozen=True, kw_only=True):
    """Evict pods whose rules that are required during execution do not hold.

    Nobody asked for it: whoever looks after the cluster's evictions found that it may be time.
    """

    clock: Callable[[], datetime]
    """The database's time, or a moment ago (P16). It is looked at each time this is decided, for a
    rule that broke meanwhile has not been broken for longer than that."""


class Idempotency(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A client's name for one request: its answer is recorded and given again (P11)."""

    operation: str
    key: str
    chunk: int = 0
    request_hash: bytes
    encode: Callable[[A], bytes]
    """The answer as the API will want it back; called when the answer is decided."""
