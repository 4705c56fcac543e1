"""Answers to all intents: frozen values, with fields in camelCase where clients see them.

The `revision` of an answer is that of its own commit, or of the head that it was decided on. No
answer is released before this revision is committed (protocol rule P8).
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from service.model.core.errors import FieldError
from service.model.core.field_warnings import FieldWarning
from service.model.core.primitives import ObjectName
from service.scheduler.protocol.pending_attempts import Refused


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of all answers."""

    revision: int
    """The cluster's revision that the answer belongs to."""


class WriteAnswer(Answer, frozen=True, kw_only=True):
    """Base class of answers to requests that carry manifests or act on stored objects."""

    warnings: list[FieldWarning] | msgspec.UnsetType = msgspec.UNSET
    """Fields that are passed over; absent if there are none."""


class ObjectAnswer(WriteAnswer, frozen=True, kw_only=True):
    """An object as stored now, or as it was when deleted.

    `body` is the manifest without its resourceVersion, which is `resource_version`.
    """

    body: bytes
    resource_version: int
    created: bool = False


class ConfigAnswer(Answer, frozen=True, kw_only=True):
    """The cluster's configuration as JSON; `created` is true if the cluster itself is new."""

    config: bytes
    created: bool = False


class GeneratedName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The name that an object was given which had only a `generateName`."""

    item: int
    """Its place in the `List`, which counts from 0."""
    kind: str
    """Its kind."""
    namespace: str = ""
    """Its namespace; absent if it has none."""
    name: str
    """Its name."""


class ApplyAnswer(WriteAnswer, frozen=True, kw_only=True):
    """What a `List` changed."""

    created: int
    """Objects that are new."""
    changed: int
    """Objects that were there and are different now."""
    unchanged: int
    """Objects that were there just so."""
    deleted: int
    """Objects that were removed."""
    generated: list[GeneratedName] | msgspec.UnsetType = msgspec.UNSET
    """The names of objects that had only a `generateName`; absent if there are none."""


DeletionOutcome = Literal["Deleted", "Conflict", "Forbidden"]


class DeletionResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one object that was to be deleted."""

    namespace: str | None
    """Namespace of the object; null where its kind has none."""
    name: str
    """Name of the object."""
    uid: str
    """Its `metadata.uid`."""
    result: DeletionOutcome
    """Conflict: it cannot be deleted now. Forbidden: the caller may not delete it."""
    revision: int | None
    """The revision of the deletion; null if the object is still there."""
    message: str | None = None
    """Why it is still there."""


class DeletionsAnswer(Answer, frozen=True, kw_only=True):
    """The results of a filtered deletion, by namespace and name."""

    results: list[DeletionResult]
    remaining: int
    """How many more matching objects were not examined."""

    @property
    def last(self) -> ObjectName | None:
        """The namespace and name of the last object examined, or None."""
        if not self.results:
            return None
        return self.results[-1].namespace or "", self.results[-1].name


LineOutcome = Literal[
    "Created",
    "Changed",
    "Unchanged",
    "Deleted",
    "NotFound",
    "Conflict",
    "Invalid",
    "Denied",
    "Forbidden",
]


class LineResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one line of an NDJSON `apply`, or of one report; they count from 1."""

    line: int
    """Number of the line or report."""
    kind: str | None
    """Kind of the object; null if it cannot be read."""
    namespace: str | None
    """Namespace of the object; null if it has none, or it cannot be read."""
    name: str | None
    """Name of the object; null if it cannot be read."""
    result: LineOutcome
    """What became of it."""
    revision: int | None
    """The revision of the line's change, or the one that last changed the object if none was needed."""
    errors: list[FieldError] = []
    """Why nothing became of it."""
    warnings: list[FieldWarning] | msgspec.UnsetType = msgspec.UNSET
    """Fields of the line's object that are passed over; absent if there are none."""
    generated: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the name was made of a `generateName`; absent if it was not."""


class LinesAnswer(Answer, frozen=True, kw_only=True):
    """What became of some lines of an NDJSON `apply`, or of some reports, in their order."""

    results: list[LineResult]
    """What became of each."""


class TopologyDomain(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One value of a topology key."""

    value: str
    """The label's value."""
    nodes: list[str]
    """The nodes that carry it."""
    pods: int
    """How many pods are placed on these nodes, of those that the caller may read."""
    free: dict[str, str]
    """Allocatable less requested, by resource, as quantities; negative where over-committed."""


class TopologyAnswer(Answer, frozen=True, kw_only=True):
    """The domains of one topology key, by value."""

    key: str
    """The topology key."""
    domains: list[TopologyDomain]
    """Its domains, by value."""
    nodes_without_key: list[str]
    """Nodes that lack the label."""


class ShownObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object with its `status` computed at the answer's revision."""

    namespace: str
    name: str
    uid: str
    resource_version: int
    body: bytes
    """The manifest without its resourceVersion."""


class ComputedAnswer(Answer, frozen=True, kw_only=True):
    """Objects of one kind, ordered by namespace and name."""

    objects: list[ShownObject]


class PodName(msgspec.Struct, frozen=True, kw_only=True):
    """Names a stored pod."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""


class ViolationItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One required rule that one placed pod breaks."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    node_name: str
    """The node that the pod is on."""
    plugin: str
    """The filter that would refuse the pod there."""
    rule: str
    """The path of the rule in the pod's manifest, or in the configuration for default constraints."""
    execution: Literal["Ignored", "Required"]
    """Whether the rule only bound scheduling, or is required during execution, too."""
    reason: str
    """Why the node is not feasible, in kube-scheduler's words."""
    conflicts_with: list[PodName]
    """The first of the pods that anti-affinity matches, by namespace and name."""
    skew: int | None
    """By how many pods the domain exceeds the least one, if a spread constraint is broken."""
    since: datetime | None
    """When the rule broke; known only for pod affinity that is required during execution."""


class ViolationsAnswer(Answer, frozen=True, kw_only=True):
    """All violations, by namespace, name and rule."""

    items: list[ViolationItem]
    """The objects themselves."""


class ConfirmationAnswer(Answer, frozen=True, kw_only=True):
    """A pod's binding, and the required rules that it breaks at `revision`."""

    namespace: str
    name: str
    uid: str
    resource_version: int
    node_name: str
    violations: list[ViolationItem]


class PendingAnswer(Answer, frozen=True, kw_only=True):
    """The results of trying pending pods; a pod in no field was deleted or not tried."""

    refused: dict[ObjectName, Refused]
    """Why pods were refused, by namespace and name."""
    placed: tuple[ObjectName, ...] = ()
    asking: tuple[ObjectName, ...] = ()
    """Pods that fit somewhere but whose extenders have to be queried before placement."""


class EvictionsAnswer(Answer, frozen=True, kw_only=True):
    """When the next sweep is due even if nothing changes, or None."""

    due: datetime | None


class NodesAnswer(Answer, frozen=True, kw_only=True):
    """The work that a sweep over the nodes leaves for later."""

    due: datetime | None
    """When the next sweep is due even without changes, or None."""
    all_down: bool = False
    """Whether no zone has a ready node."""


class RecordedAnswer(Answer, frozen=True, kw_only=True):
    """The recorded first answer to an idempotency key (protocol rule P11).

    `revision` is the head at which the record was read.
    """

    answer: bytes


class CapacityAnswer(Answer, frozen=True, kw_only=True):
    """How many more pods like one fit, as everything is now."""

    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    fits: int
    """So many pods got nodes, one after the other."""
    limited: bool
    """Whether the next one was refused; if not, the search ended before, and more may fit."""
    reason: str | None
    """Why the next one was refused: Unschedulable, or the rule that denies it a node, in CamelCase; null if
    it was not refused."""
    message: str | None
    """A sentence for people that says the same."""
    domains: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """How many each domain of `topologyKey` got, if it got any; absent if no key was given."""
    without_key: int | msgspec.UnsetType = msgspec.UNSET
    """How many are on nodes without the key; absent if no key was given."""
    explanation: Any = msgspec.UNSET
    """What keeps the next one from the nodes, as asked for with `explain`; absent for None, and if not the
    nodes refuse it."""
