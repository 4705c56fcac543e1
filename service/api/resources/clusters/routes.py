"""Read and write clusters: their configurations, the heads of their logs, and their sizes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from litestar import Response, delete, get, patch, put
from litestar.di import NamedDependency

from service.api.auth.redaction import Visibility, redact_config, visibility_of, visible_tag
from service.api.http.body import converted
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, with_dry_run
from service.api.http.operation import (
    DRY_RUN,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Body,
    Operation,
    described,
)
from service.api.http.permissions import Admin, Cluster, Namespaced
from service.api.http.request import if_match, if_none_match, media_type, query
from service.api.http.responses import json_response, not_modified, tag_of
from service.api.reads.stored import Reads
from service.api.resources.clusters import schemas as cluster_types
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import (
    CLUSTER_PATH,
    IF_CHANGED,
    IF_MATCH,
    IF_NONE_MATCH,
)
from service.api.resources.objects.routes import patch_type_of
from service.api.resources.services import Services
from service.model.cluster.cluster_config import ClusterConfig, stored_config
from service.model.cluster.extender_config import ExtenderHosts
from service.model.core.errors import FieldError, InvalidManifest, ObjectUnreadable
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME
from service.model.core.strict_json import decode_strict
from service.model.core.validators import REQUIRED
from service.model.json.patch import PatchType
from service.model.log.pages import NO_OBJECTS, ClusterCounts, ClusterRow
from service.scheduler.protocol.answers import ConfigAnswer
from service.scheduler.protocol.intents import PatchConfig, Preconditions, PutConfig

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SETTINGS = frozenset(field.encode_name for field in msgspec.structs.fields(ClusterConfig))
_EXAMPLE = {
    "name": "default",
    "config": {"semantics": "Kubernetes", "placePendingPods": True},
    "revision": 1042,
    "counts": {"nodes": 5000, "pods": 120000, "pending": 12},
}
_WRITE_PROBLEMS = ("InvalidManifest", "OutcomeUnknown", "Overloaded", "PreconditionFailed")


def _cluster(description: str) -> Body:
    return Body(types={JSON: cluster_types.Cluster}, description=description, example=_EXAMPLE)


@get(
    "/v1/clusters",
    opt=described(
        Operation(
            id="listClusters",
            access=Cluster("read"),
            reads=True,
            tag="clusters",
            summary="List all clusters",
            description="Those of which the caller may read something; each as `getCluster` shows it. A cluster whose "
            "configuration cannot be read is only named in `unreadable`.",
            answers={
                200: Body(
                    types={JSON: cluster_types.ClusterList},
                    description="By name.",
                    example={"kind": "ClusterList", "items": [_EXAMPLE]},
                )
            },
            problems=("StorageUnavailable",),
        )
    ),
)
async def list_clusters(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Return the clusters that the caller may read, by name."""
    query(request)
    caller, store = request.context.require_principal(), services.reads.store
    shown = [
        (row, caller.namespaces("read", row.name))
        for row in await store.clusters.all()
        if caller.may_somewhere("read", row.name)
    ]
    seen = await _seen(store, shown)
    encoded = [_encoded_if_readable(row, shown[place][1]) for place, row in enumerate(seen)]
    body = b",".join(part for part in encoded if part is not None)
    unreadable = [row.name for row, part in zip(seen, encoded, strict=True) if part is None]
    end = b',"unreadable":%b' % msgspec.json.encode(unreadable) if unreadable else b""
    return Response(b'{"kind":"ClusterList","items":[%b]%b}' % (body, end), media_type=JSON)


@get(
    CLUSTER_PATH,
    opt=described(
        Operation(
            id="getCluster",
            access=Namespaced("read"),
            reads=True,
            tag="clusters",
            summary="Read a cluster's configuration and size",
            description="`counts` has the pods, and the configuration's lists of namespaces have the names, of "
            "namespaces that the caller may read. The ETag covers only the configuration as the caller sees it: 304 "
            "means that it is unchanged; `revision` and `counts` may have changed. `Moorage-Revision` is always the "
            "current revision.",
            parameters=(IF_CHANGED,),
            answers={
                200: _cluster("The cluster."),
                304: Body(types={}, description="Unchanged."),
            },
        )
    ),
)
async def get_cluster(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Return one cluster."""
    query(request)
    return await _present(request, services, conditional=True)


@put(
    CLUSTER_PATH,
    opt=described(
        Operation(
            id="putCluster",
            access=Admin(),
            decided=True,
            tag="clusters",
            summary="Create a cluster, or replace its configuration",
            description="A setting that is left out or null has its default, but for `kubernetes` and `kubernetesRules`, which "
            "a cluster that exists keeps then. A change is a revision. Without `config` this makes "
            "sure that the cluster exists: a new one has the default configuration, and another one keeps its own. "
            "With `If-None-Match: *` a cluster that exists is left alone (412).",
            parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
            request=Body(
                types={JSON: cluster_types.ClusterSettings},
                description="The configuration.",
                example={"config": {"daemonNamespaces": ["kube-system", "monitoring"]}},
            ),
            answers={200: _cluster("Replaced, or as it was."), 201: _cluster("Created.")},
            problems=(*_WRITE_PROBLEMS, "TooManyClusters"),
        )
    ),
)
async def put_cluster(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Create a cluster, or replace its configuration."""
    media_type(request)
    parameters = query(request)
    _refuse_bad_name(request.path_params["cluster"])
    config = _config_in(decode_strict(await services.bodies.read(request)))
    intent = PutConfig(
        config=config,
        preconditions=_preconditions(request),
        hosts=ExtenderHosts(services.settings.extender_hosts),
    )
    return await _changed(request, services, parameters, intent)


@patch(
    CLUSTER_PATH,
    opt=described(
        Operation(
            id="patchCluster",
            access=Cluster("configure"),
            decided=True,
            tag="clusters",
            summary="Change single settings of a cluster",
            description="The paths of a JSON patch start at the cluster, as in `/config/…`.",
            parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
            request=Body(
                types={
                    STRATEGIC_MERGE_PATCH: cluster_types.ClusterPatch,
                    JSON: cluster_types.ClusterPatch,
                    MERGE_PATCH: cluster_types.ClusterPatch,
                    JSON_PATCH: list[object_types.JsonPatchOperation],
                },
                description="The settings to change.",
                example={"config": {"hardPodAffinityWeight": 10}},
                examples={
                    JSON_PATCH: [
                        {"op": "replace", "path": "/config/hardPodAffinityWeight", "value": 10}
                    ]
                },
            ),
            answers={200: _cluster("As changed.")},
            problems=_WRITE_PROBLEMS,
        )
    ),
)
async def patch_cluster(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Change single settings of a cluster."""
    patch_type = patch_type_of(request)
    parameters = query(request)
    patched = _config_patch(decode_strict(await services.bodies.read(request)), patch_type)
    intent = PatchConfig(
        patch_type=patch_type,
        patch=patched,
        preconditions=_preconditions(request),
        hosts=ExtenderHosts(services.settings.extender_hosts),
    )
    return await _changed(request, services, parameters, intent)


@delete(
    CLUSTER_PATH,
    status_code=200,
    opt=described(
        Operation(
            id="deleteCluster",
            access=Admin(),
            tag="clusters",
            summary="Delete a cluster with all that is in it",
            description="A cluster created later under the same name is a different cluster, and all its revisions are "
            "higher. A stream that resumes from an old revision gets 410. This includes `default`: once deleted, it "
            "stays deleted until a PUT creates it again.",
            parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
            answers={
                200: Body(
                    types={JSON: cluster_types.DeletedCluster},
                    description="The cluster as it was, without a configuration that cannot be read.",
                    example=_EXAMPLE,
                )
            },
            problems=("OutcomeUnknown", "PreconditionFailed"),
        )
    ),
)
async def delete_cluster(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Delete a cluster and everything in it."""
    dry = is_dry(query(request))
    row = await services.reads.store.clusters.get(request.path_params["cluster"])
    shown = _encoded_if_readable(row, None) or _encoded_without_config(row)
    await services.scheduler.delete_cluster(
        row.name, request.audited_caller, _preconditions(request), dry_run=dry
    )
    return json_response(shown, row.head.revision)


CLUSTER_HANDLERS = (list_clusters, get_cluster, put_cluster, patch_cluster, delete_cluster)


def _preconditions(request: ApiRequest) -> Preconditions:
    return Preconditions(if_match=if_match(request), if_none_match=if_none_match(request))


async def _present(
    request: ApiRequest, services: Services, status: int = 200, *, conditional: bool = False
) -> Response[bytes]:
    """Return the current cluster, with the entity tag of its configuration.

    If `conditional` is set, answer 304 to clients that already have that configuration.
    """
    name = request.path_params["cluster"]
    config = await services.reads.get_object(name, CLUSTER_KIND, "", CLUSTER_NAME)
    visibility, store = visibility_of(request), services.reads.store
    tag = visible_tag(visibility, tag_of(config.row.revision)) if config.row else None
    if conditional and tag and (unchanged := not_modified(request, tag, config.head.revision)):
        return unchanged
    (row,) = await _seen(store, [(await store.clusters.get(name), visibility)])
    body = _encoded(row, visibility)
    return json_response(body, row.head.revision, status=status, etag=tag)


async def _seen(store: Reads, shown: Sequence[tuple[ClusterRow, Visibility]]) -> list[ClusterRow]:
    """Return the clusters with counts of the pods visible to the caller, using a single query."""
    partly = {row.cluster_id: seen for row, seen in shown if seen is not None}
    pods = await store.clusters.count_pods(partly) if partly else {}
    return [_with_pods(row, pods.get(row.cluster_id)) for row, _ in shown]


def _with_pods(row: ClusterRow, pods: ClusterCounts | None) -> ClusterRow:
    if pods is None:
        return row
    counts = msgspec.structs.replace(pods, nodes=row.counts.nodes)
    return msgspec.structs.replace(row, counts=counts)


async def _changed(
    request: ApiRequest,
    services: Services,
    parameters: Mapping[str, str],
    intent: PutConfig | PatchConfig,
) -> Response[bytes]:
    """Change a cluster, and return it at the revision of the change or a later one."""
    try:
        answer = await services.scheduler.submit(
            request.path_params["cluster"],
            with_dry_run(request, parameters, intent),
            caller=request.audited_caller,
        )
    except InvalidManifest as error:
        raise error.under("config") from None
    if is_dry(parameters):
        return await _as_it_would_be(request, services, answer)
    return await _present(request, services, 201 if answer.created else 200)


async def _as_it_would_be(
    request: ApiRequest, services: Services, answer: ConfigAnswer
) -> Response[bytes]:
    """Return the cluster with the configuration of a dry run; a new cluster is shown empty."""
    name, visibility, store = (
        request.path_params["cluster"],
        visibility_of(request),
        services.reads.store,
    )
    if answer.created:
        body = _told(name, answer.config, visibility, answer.revision, NO_OBJECTS)
        return json_response(body, answer.revision, status=201)
    (row,) = await _seen(store, [(await store.clusters.get(name), visibility)])
    body = _told(name, answer.config, visibility, row.head.revision, row.counts)
    return json_response(body, row.head.revision)


def _encoded(row: ClusterRow, visibility: Visibility = None) -> bytes:
    return _told(row.name, row.config, visibility, row.head.revision, row.counts)


def _encoded_if_readable(row: ClusterRow, visibility: Visibility) -> bytes | None:
    """Encode a cluster, or return None if its configuration cannot be read."""
    try:
        return _encoded(row, visibility)
    except ObjectUnreadable:
        return None


def _encoded_without_config(row: ClusterRow) -> bytes:
    shown = cluster_types.DeletedCluster(
        name=row.name, revision=row.head.revision, counts=row.counts
    )
    return msgspec.json.encode(shown)


def _told(
    name: str, config: bytes, visibility: Visibility, revision: int, counts: ClusterCounts
) -> bytes:
    """Encode a cluster with all its settings, including defaults."""
    return msgspec.json.encode(
        {
            "name": name,
            "config": redact_config(visibility, stored_config(config)),
            "revision": revision,
            "counts": counts,
        }
    )


def _refuse_bad_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        message = "has to be a DNS label: lower-case letters, digits and hyphens, at most 63"
        raise InvalidManifest([FieldError("name", message, name[:200])])


def _config_in(decoded: object) -> dict[str, Any] | None:
    """Return the configuration in a body, or None; other fields that GET shows are allowed."""
    if not isinstance(decoded, dict):
        raise InvalidManifest([FieldError("", "must be an object")])
    unknown = decoded.keys() - {"config", "name", "revision", "counts"}
    errors = [FieldError(name, _unknown(name)) for name in sorted(unknown)]
    config = decoded.get("config")
    if "config" in decoded and not isinstance(config, dict):
        errors.append(FieldError("config", "must be an object", config))
    if errors:
        raise InvalidManifest(errors)
    return config


def _unknown(name: str) -> str:
    return f"is unknown; did you mean config.{name}?" if name in _SETTINGS else "is unknown"


def _config_patch(patch: object, patch_type: PatchType) -> object:
    """Turn a patch of a cluster into one of its configuration, the only part that can change."""
    if patch_type != "json":
        changes = _config_in(patch)
        if changes is None:
            raise InvalidManifest([FieldError("config", REQUIRED)])
        return changes
    steps = converted(patch, list[object_types.JsonPatchOperation])
    errors = [
        FieldError(f"[{index}].path", "has to start with /config/", step.path)
        for index, step in enumerate(steps)
        if not all(path.startswith("/config/") for path in (step.path, step.from_ or step.path))
    ]
    if errors:
        raise InvalidManifest(errors)
    assert isinstance(patch, list)
    return [
        {
            field: value.removeprefix("/config") if field in {"path", "from"} else value
            for field, value in step.items()
        }
        for step in patch
    ]
