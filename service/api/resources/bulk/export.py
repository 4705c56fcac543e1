"""Show a whole cluster at once: its topology domains, and an export of all its objects."""

from collections.abc import AsyncIterator

from litestar import Response, get
from litestar.di import NamedDependency

from service.api.auth.redaction import Visibility, redact_rows, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, Parameter, described
from service.api.http.permissions import Namespaced
from service.api.http.request import query, wrong_parameter
from service.api.http.responses import (
    Streamed,
    encoded_response,
    items,
    list_head,
    revision_headers,
)
from service.api.http.streaming import Pieces
from service.api.reads.export import Exports
from service.api.reads.stored import require_readable
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import NAMESPACES, NODES, POD_EXAMPLE
from service.api.resources.services import Services
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.names import topology_key
from service.model.log.commit import ObjectKey, ObjectRow
from service.model.log.pages import first_rows
from service.model.registry.kinds import sees
from service.scheduler.protocol.answers import TopologyAnswer
from service.scheduler.protocol.intents import ReadTopology
from service.scheduler.replica.loading import Rows
from service.scheduler.replica.stored_kinds import INTERNAL_KINDS

ROWS_PER_PIECE = 1_000
"""The maximum number of objects of an export that are sent at once."""

_TOPOLOGY = Operation(
    id="getTopology",
    access=Namespaced("read"),
    reads=True,
    decided=True,
    tag="placements",
    summary="The domains of a topology key",
    description="With the nodes, pods and free resources of each. Of the pods only those are counted that the caller "
    "may read; what is free is less what all of them hold.",
    parameters=(
        Parameter(
            name="key",
            description="The node label whose values are the domains; `metadata.name`: each node by itself.",
            example="topology.kubernetes.io/zone",
            required=True,
        ),
    ),
    answers={
        200: Body(
            types={JSON: TopologyAnswer},
            description="The domains, by value.",
            example={
                "revision": 1042,
                "key": "topology.kubernetes.io/zone",
                "domains": [
                    {
                        "value": "eu-1a",
                        "nodes": ["node-7"],
                        "pods": 12,
                        "free": {"cpu": "3500m", "memory": "8589934592", "pods": "98"},
                    }
                ],
                "nodesWithoutKey": [],
            },
        )
    },
    problems=("InvalidManifest", "Overloaded"),
)


@get(CLUSTER_PATH + "/topology", opt=described(_TOPOLOGY))
async def get_topology(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Return the domains of a topology key."""
    key = query(request).get("key")
    if not key:
        raise wrong_parameter("key", "has to name a node label", "")
    if message := topology_key(key):
        raise InvalidManifest([FieldError("key", message, key[:200])])
    intent = ReadTopology(key=key, namespaces=visibility_of(request))
    answer = await services.scheduler.submit(request.path_params["cluster"], intent)
    return encoded_response(answer, answer.revision)


_EXPORT = Operation(
    id="exportCluster",
    access=Namespaced("read"),
    reads=True,
    tag="bulk",
    summary="All objects of a cluster, at one revision",
    description="As a `List` that `applyObjects` takes: the nodes, and what is in namespaces that the caller may "
    "read. It comes from memory and is written as it is sent. Only a worker that has not got the cluster in memory "
    "reads and holds it as a whole, and refuses one that is larger than its `bytes_in_flight_max`.",
    answers={
        200: Body(
            types={JSON: object_types.ObjectList},
            description="The objects.",
            example={
                "apiVersion": "v1",
                "kind": "List",
                "metadata": {"resourceVersion": "1042"},
                "items": [NAMESPACES.example, NODES.example, POD_EXAMPLE],
            },
        )
    },
)


@get(CLUSTER_PATH + "/export", opt=described(_EXPORT))
async def export_cluster(request: ApiRequest, services: NamedDependency[Services]) -> Streamed:
    """Stream all objects at one revision, with namespaces and nodes before pods."""
    query(request)
    visibility, reservation = visibility_of(request), request.context.reservation

    def wants(key: ObjectKey) -> bool:
        return key.kind not in INTERNAL_KINDS and sees(visibility, *key)

    cluster = request.path_params["cluster"]
    exports = Exports(services.reads, services.scheduler, services.turns)
    export = await exports.begin(cluster, wants)
    if export is None:
        snapshot = await services.reads.load(
            cluster, visibility, lambda: Rows(wants, reservation.hold_in_all)
        )
        require_readable(snapshot.rows)
        export = snapshot.head, _batches(snapshot.rows)
    head, batches = export
    reservation.keeps_room = True
    return Streamed(
        _streamed(list_head("List", head.revision, None), visibility, batches),
        headers=revision_headers(head.revision, f'W/"{head.revision}"'),
        media_type=JSON,
    )


async def _batches(rows: list[ObjectRow]) -> AsyncIterator[list[ObjectRow]]:
    start = 0
    while start < len(rows):
        batch = first_rows(rows[start : start + ROWS_PER_PIECE], ROWS_PER_PIECE)
        yield batch
        start += len(batch)


async def _streamed(
    head: bytes, visibility: Visibility, batches: AsyncIterator[list[ObjectRow]]
) -> Pieces:
    before = head
    async for batch in batches:
        if batch:
            yield before + items(redact_rows(visibility, batch))
            before = b","
    yield head + b"]}" if before is head else b"]}"


OVERVIEW_HANDLERS = (get_topology, export_cluster)
