"""Declarations of the operations on each kind of stored object."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from service.api.http.operation import (
    APPLY_JSON,
    APPLY_YAML,
    DRY_RUN,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Body,
    EntityTags,
    Operation,
    Parameter,
    WholeNumber,
)
from service.api.http.permissions import Access, Cluster, Namespaced
from service.api.http.problems import Problem
from service.api.resources.objects import types as object_types
from service.model.core.access import Verb
from service.scheduler.protocol.answers import DeletionResult

CLUSTER_PATH = "/v1/clusters/{cluster:str}"


class DeletionCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a deletion of many objects."""

    revision: int
    """The revision of its last change."""
    deleted: int
    """How many objects it deleted."""


class Deletions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a deletion of many objects."""

    revision: int
    """The cluster's revision after the last commit."""
    deleted: int
    """How many objects were deleted."""
    remaining: int
    """How many more pass the filters and were not looked at."""
    commits: list[DeletionCommit]
    """Each commit that was made, in their order."""
    results: list[DeletionResult]
    """What became of each object, by namespace and name."""
    problem: Problem | msgspec.UnsetType = msgspec.UNSET
    """Why the server could not go on; absent if it could."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of object, with its names, types, and access rules in the API."""

    kind: str
    plural: str
    namespaced: bool
    wire_type: type[msgspec.Struct]
    list_type: type[msgspec.Struct]
    example: Mapping[str, Any]
    examples: Mapping[str, Mapping[str, Any]] = {}
    """Named examples, used if one is not enough; `example` is one of them."""
    list_parameters: Sequence[Parameter] = ()
    indexed: bool = False
    """Whether filtered lists are read from the replica."""
    computed: bool = False
    """Whether part of each object is computed per answer instead of stored."""
    changed_by: Verb
    """The verb that lets a caller change objects of the kind."""
    stated_by: Verb | None = None
    """An alternative verb for changes that report facts, or None if the kind has none."""

    @property
    def kinds(self) -> str:
        """The plural, capitalized like the kind itself: `StorageClasses`."""
        same = len(self.kind) - 1  # only the last letter may differ in the plural
        return self.kind[:same] + self.plural[same:]

    @property
    def reading(self) -> Access:
        """The access for reading the kind; reading part of a cluster includes its nodes."""
        return Namespaced("read")

    @property
    def changing(self) -> Access:
        """The access for changing the kind."""
        if self.namespaced:
            return Namespaced(self.changed_by, self.stated_by)
        return Cluster(self.changed_by)

    @property
    def tag(self) -> str:
        """The tag that groups the kind's operations in the document."""
        return self.plural

    @property
    def collection(self) -> str:
        """The path of all objects of the kind in one scope."""
        scope = CLUSTER_PATH + ("/namespaces/{namespace:str}" if self.namespaced else "")
        return f"{scope}/{self.plural}"

    @property
    def item(self) -> str:
        """The path of one object."""
        return self.collection + "/{name:str}"


MIN_REVISION = Parameter(
    name="minRevision",
    type=WholeNumber,
    description="Wait until the cluster has reached this revision; only for revisions learned "
    "elsewhere, for a read always shows every change acknowledged before.",
)
REVISION = Parameter(
    name="revision",
    type=WholeNumber,
    description="Answer as of this revision, as far as the log tells it; `getReadableRevisions` says "
    "how far. A `status` that is computed for each answer is left out.",
    example=1042,
)
FIELDS = Parameter(
    name="fields",
    description="Only these fields of each object, and what tells it from others: paths with dots, separated by "
    "commas. In a list a path goes on in each item; `\\.` is a dot of a name's own.",
    example="spec.nodeName,status.phase",
)
FIELD_MANAGER = Parameter(
    name="fieldManager",
    description="Who manages the fields that this write changes; required for server-side apply. Without it, the "
    "first word of `User-Agent`. It is recorded once the object was applied.",
    example="autoscaler",
)
_FORCE = Parameter(
    name="force",
    type=bool,
    description="For server-side apply: whether to take over fields that others manage.",
)
IF_MATCH = Parameter(
    name="If-Match",
    place="header",
    type=EntityTags,
    description="Only if the object's ETag is still one of these.",
    example='"1042"',
)
IF_NONE_MATCH = Parameter(
    name="If-None-Match",
    place="header",
    type=EntityTags,
    description="Only if the object's ETag is none of these; `*`: only if there is no such object, so that it is "
    "created and not replaced.",
    example="*",
)
IF_CHANGED = Parameter(
    name="If-None-Match",
    place="header",
    type=EntityTags,
    description="Answer 304 if the ETag is still one of these.",
    example='"1042"',
)
LIMIT_AND_CONTINUE = (
    Parameter(
        name="limit",
        type=WholeNumber,
        description="How many objects a page holds at most, fewer if they are large; all if absent.",
    ),
    Parameter(name="continue", description="The `metadata.continue` of the page before."),
)
SELECTORS = (
    Parameter(
        name="labelSelector",
        description="Only objects with such labels, in Kubernetes' syntax.",
        example="app=web,tier!=test",
    ),
    Parameter(
        name="fieldSelector",
        description="Only objects with such fields, in Kubernetes' syntax.",
        example="metadata.name=web-0",
    ),
)
_LIST_PARAMETERS = (*LIMIT_AND_CONTINUE, *SELECTORS, MIN_REVISION, REVISION)
_SORT = Parameter(
    name="sort",
    description="Order by `metadata.name`, `metadata.creationTimestamp`, of pods also by `spec.nodeName`, "
    "`spec.priority` or `status.phase`; those with the same value by namespace and name. After a hyphen "
    "the whole order is reversed. It needs `limit`, of at most 1,000.",
    example="-spec.priority",
)
POD_LIST_PARAMETERS = (
    Parameter(name="nodeName", description="Only pods on this node; empty: pending pods."),
    Parameter(name="phase", description="Only pods in this phase.", example="Running"),
    Parameter(
        name="uses",
        description="Only pods that use a feature; `namespaceSelector` is the one known.",
        example="namespaceSelector",
    ),
)

_SHORT_LISTS = tuple(
    frozenset(names)
    for names in (
        {"nodeName"},
        {"limit", "labelSelector"},
        {"limit", "fieldSelector"},
        {"limit", "phase"},
        {"limit", "sort"},
    )
)
"""Sets of query parameters with which a list is read from another worker's replica.

Lists without them may be long, and would have to be buffered there.
"""


_FACTS = (
    "A pod with `spec.nodeName`, a status that it has run, and whatever becomes of a pod that is on a node are "
    "facts, which take the verb `observe`; what is not on a node takes `edit`."
)
_LIMITS = "Takes the verb `configure`, so that no tenant changes its own limits."


def _one(resource: Resource, description: str) -> Body:
    return Body(
        types={JSON: resource.wire_type},
        description=description,
        example=resource.example,
        named=resource.examples,
    )


def _with_rights(resource: Resource, description: str) -> str:
    """Add a note on who may write the kind, unless that is obvious."""
    if resource.changed_by == "configure":
        return f"{description} {_LIMITS}"
    return description if resource.stated_by is None else f"{description} {_FACTS}"


_READ_PROBLEMS = ("Compacted", "Overloaded", "RevisionNotReached")


def list_operation(resource: Resource, *, everywhere: bool = False) -> Operation:
    """Declare the list operation of a kind, for one namespace or `everywhere`."""
    scoped = resource.namespaced and not everywhere
    scope = "a namespace" if scoped else "the cluster"
    infix = "Namespaced" if scoped else ""
    return Operation(
        id=f"list{infix}{resource.kinds}",
        access=resource.reading,
        reads=True,
        decided=resource.computed,
        decided_with=_SHORT_LISTS if resource.indexed else (),
        tag=resource.tag,
        summary=f"List the {resource.plural} of {scope}",
        description="By namespace and name. Pages show the present; `metadata.resourceVersion` "
        "stays the first page's, so that watching from it makes the list exact. With `revision` all "
        "pages are as of that revision.",
        parameters=(
            *_LIST_PARAMETERS,
            FIELDS,
            *resource.list_parameters,
            *((_SORT,) if resource.indexed else ()),
            *(() if resource.computed else (IF_CHANGED,)),
        ),
        answers={
            200: Body(
                types={JSON: resource.list_type},
                description="The list.",
                example={
                    "apiVersion": "v1",
                    "kind": f"{resource.kind}List",
                    "metadata": {"resourceVersion": "1042"},
                    "items": [resource.example],
                },
            )
        }
        | ({} if resource.computed else {304: Body(types={}, description="Unchanged.")}),
        keeps_unknown=(resource.list_type,),
        problems=_READ_PROBLEMS,
    )


def get_operation(resource: Resource) -> Operation:
    """Declare the read operation of a kind."""
    return Operation(
        id=f"get{resource.kind}",
        access=resource.reading,
        reads=True,
        decided=resource.computed,
        tag=resource.tag,
        summary=f"Read a {resource.kind}",
        parameters=(MIN_REVISION, REVISION, FIELDS, IF_CHANGED),
        answers={200: _one(resource, "The object."), 304: Body(types={}, description="Unchanged.")},
        problems=_READ_PROBLEMS,
    )


_WRITE_PROBLEMS = (
    "Conflict",
    "Denied",
    "InvalidManifest",
    "OutcomeUnknown",
    "Overloaded",
    "PreconditionFailed",
    "RevisionConflict",
)


def create_operation(resource: Resource, key: Parameter, key_problems: Sequence[str]) -> Operation:
    """Declare the operation that creates a new object; `key` is the idempotency key parameter."""
    return Operation(
        id=f"create{resource.kind}",
        minimal=True,
        warns=True,
        access=resource.changing,
        decided=True,
        tag=resource.tag,
        summary=f"Create a {resource.kind}",
        description=_with_rights(
            resource,
            "If there is one of that name, it stays, and the answer is 409. Without a name, `metadata.generateName` "
            "begins it, and five random characters follow that no other object of the kind has there.",
        ),
        parameters=(DRY_RUN, FIELD_MANAGER, key),
        request=Body(
            types={JSON: resource.wire_type},
            description="The manifest.",
            example=resource.example,
        ),
        answers={201: _one(resource, "Created.")},
        problems=(
            "Conflict",
            "Denied",
            "InvalidManifest",
            "RevisionConflict",
            *key_problems,
        ),
    )


def put_operation(resource: Resource) -> Operation:
    """Declare the operation that creates or replaces an object."""
    return Operation(
        id=f"put{resource.kind}",
        minimal=True,
        warns=True,
        access=resource.changing,
        decided=True,
        tag=resource.tag,
        summary=f"Create or replace a {resource.kind}",
        description=_with_rights(
            resource,
            "`metadata.resourceVersion`, where given, has to be the stored object's. Name and namespace may be "
            "left to the path.",
        ),
        parameters=(IF_MATCH, IF_NONE_MATCH, FIELD_MANAGER, DRY_RUN),
        request=_one(resource, "The manifest."),
        answers={200: _one(resource, "Replaced."), 201: _one(resource, "Created.")},
        problems=(*_WRITE_PROBLEMS, "PodDiffers") if resource.kind == "Pod" else _WRITE_PROBLEMS,
    )


def patch_operation(resource: Resource) -> Operation:
    """Declare the patch operation of a kind."""
    types: dict[str, Any] = {
        STRATEGIC_MERGE_PATCH: object_types.StrategicMergePatch,
        JSON: object_types.MergePatch,
        MERGE_PATCH: object_types.MergePatch,
        JSON_PATCH: list[object_types.JsonPatchOperation],
        APPLY_JSON: object_types.AppliedObject,
        APPLY_YAML: object_types.AppliedObject,
    }
    return Operation(
        id=f"patch{resource.kind}",
        minimal=True,
        warns=True,
        access=resource.changing,
        decided=True,
        tag=resource.tag,
        summary=f"Change fields of a {resource.kind}",
        description=_with_rights(
            resource,
            "The Content-Type says which kind of patch it is; `application/json` is a merge patch. "
            "`application/apply-patch+yaml`, of YAML or JSON, is Kubernetes' server-side apply: it says all that "
            "`fieldManager` wants of the object, creates it if need be, removes what this manager alone wanted "
            "before, and is refused where others manage fields that would change, unless `force` is true.",
        ),
        parameters=(IF_MATCH, IF_NONE_MATCH, FIELD_MANAGER, _FORCE, DRY_RUN),
        request=Body(
            types=types,
            description="The patch.",
            example={"metadata": {"labels": {"tier": "front", "old": None}}},
            examples={
                JSON_PATCH: [{"op": "add", "path": "/metadata/labels/tier", "value": "front"}],
                APPLY_JSON: _applied_example(resource),
                APPLY_YAML: _applied_example(resource),
            },
        ),
        keeps_unknown=tuple(types.values()),
        answers={
            200: _one(resource, "The object as changed."),
            201: _one(resource, "Created by a server-side apply."),
        },
        problems=(*_WRITE_PROBLEMS, "FieldManagerConflict"),
    )


def _applied_example(resource: Resource) -> dict[str, object]:
    """Return an example of the fields that one manager applies to an object."""
    metadata = resource.example["metadata"]
    assert isinstance(metadata, dict)
    kept = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    return {
        "apiVersion": resource.example["apiVersion"],
        "kind": resource.kind,
        "metadata": {**kept, "labels": {"tier": "front"}},
    }


def delete_operation(resource: Resource) -> Operation:
    """Declare the delete operation of a kind."""
    effects = {
        "Node": "Its pods stay stored, with their `nodeName`.",
        "PodGroup": "Its members stay; those without a node wait until it is there again.",
        "Namespace": "All that is in it is deleted in the same commit; `default` is only emptied.",
        "PersistentVolumeClaim": "Refused while a pod on a node uses it, if Moorage has bound it to its volume.",
    }
    return Operation(
        id=f"delete{resource.kind}",
        minimal=True,
        access=resource.changing,
        decided=True,
        tag=resource.tag,
        summary=f"Delete a {resource.kind}",
        description=_with_rights(
            resource, f"At once, without a grace period. {effects.get(resource.kind, '')}".strip()
        ),
        parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
        request=Body(
            types={JSON: object_types.DeleteOptions},
            description="Preconditions; may be absent.",
            example={"preconditions": {"resourceVersion": "1042"}},
            required=False,
        ),
        keeps_unknown=(object_types.DeleteOptions,),
        answers={200: _one(resource, "The object as it was.")},
        problems=_WRITE_PROBLEMS,
    )


def _deletion_example(resource: Resource) -> dict[str, object]:
    metadata = resource.example["metadata"]
    return {
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": "5e6c2f9a-3f0e-4a52-8a35-0d1c2b3a4f5e",
        "result": "Deleted",
        "revision": 1042,
    }


def delete_many_operation(
    resource: Resource, key: Parameter, key_problems: Sequence[str], *, everywhere: bool = False
) -> Operation:
    """Declare the operation that deletes filtered objects; `key` is the idempotency key."""
    scoped = resource.namespaced and not everywhere
    scope = "a namespace" if scoped else "the cluster"
    infix = "Namespaced" if scoped else ""
    return Operation(
        id=f"delete{infix}{resource.kinds}",
        minimal=True,
        access=resource.changing,
        decided=True,
        tag=resource.tag,
        summary=f"Delete {resource.plural} of {scope}",
        description=_with_rights(
            resource,
            "Deletes what passes the filters and the caller may read, by namespace and name, in commits of at most "
            "1,000 objects, each of which is made as a whole. The answer tells of each object and each commit. An "
            "object that has to stay is reported and the rest goes on. `remaining` says how many more pass: if it "
            "is not 0, ask again. If the server cannot go on after some commits, `problem` says why.",
        ),
        parameters=(
            *SELECTORS,
            *resource.list_parameters,
            Parameter(
                name="all",
                type=bool,
                description="Has to be `true` where no filter is given: then all objects are meant.",
            ),
            Parameter(
                name="limit",
                type=WholeNumber,
                description="How many objects are deleted at most; `applyObjectsMax` is the most.",
            ),
            DRY_RUN,
            key,
        ),
        request=Body(
            types={JSON: object_types.DeleteOptions},
            description="May be absent; preconditions are for single objects.",
            example={},
            required=False,
        ),
        keeps_unknown=(object_types.DeleteOptions,),
        answers={
            200: Body(
                types={JSON: Deletions},
                description="What was deleted.",
                example={
                    "revision": 1042,
                    "deleted": 1,
                    "remaining": 0,
                    "commits": [{"revision": 1042, "deleted": 1}],
                    "results": [_deletion_example(resource)],
                },
            )
        },
        problems=("Conflict", *key_problems),
    )
