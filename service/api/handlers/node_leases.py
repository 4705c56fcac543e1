"""Takes the reports of nodes, one or many with a request: that they are there."""

from datetime import datetime

import msgspec
from litestar import Response, get, put
from litestar.di import NamedDependency

from service.api.bodies.node_leases import NAMESPACE, check_lease, parse_report
from service.api.bodies.request_reading import AnyRequest, media_type, query
from service.api.bodies.responses import encoded_response, json_response
from service.api.handler_services.server_services import Services
from service.api.openapi import node_lease_types
from service.api.openapi.object_operations import CLUSTER_PATH
from service.api.openapi.operation_declaration import JSON, Body, Operation, described
from service.api.openapi.resources import NODES
from service.api.openapi.rights_each_operation_needs import Cluster
from service.model.configuration.config import stored_config
from service.model.errors import NotFound
from service.model.times import rfc3339

_PATH = NODES.item + "/lease"
_LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "node-7", "namespace": NAMESPACE},
    "spec": {
        "holderIdentity": "node-7",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-05-04T08:00:00.123456Z",
    },
}
_RENEW = Operation(
    id="renewNodeLease",
    access=Cluster("observe"),
    decided=True,
    tag="nodes",
    summary="Report that a node is there",
    description="Of a node that has reported once and then does not for `nodeMonitorGraceSeconds`, the condition Ready "
    "becomes Unknown, and it gets the taints `node.kubernetes.io/unreachable`; its next report ends that. A report is no "
    "change of the cluster: it has no revision, and no row in the audit. The time is the database's; of a Lease that is "
    "sent, only the name is read.",
    request=Body(
        types={JSON: node_lease_types.Lease},
        description="A coordination.k8s.io/v1 Lease; may be absent.",
        example=_LEASE,
        required=False,
    ),
    answers={
        200: Body(types={JSON: node_lease_types.Lease}, description="The lease.", example=_LEASE)
    },
    problems=("InvalidManifest", "Overloaded"),
)


@put(_PATH, status_code=200, opt=described(_RENEW))
async def renew_node_lease(
    request: AnyRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Note that one node is there."""
    media_type(request)
    query(request)
    cluster, name = request.path_params["cluster"], request.path_params["name"]
    check_lease(await services.bodies.read(request), name)
    reports = await services.scheduler.report_nodes(cluster, [name])
    if name not in reports.known:
        raise NotFound(f"There is no Node {name}.")
    lease = _lease(name, reports.at)
    return encoded_response(lease, reports.revision)


_READ = Operation(
    id="getNodeLease",
    access=NODES.reading,
    reads=True,
    tag="nodes",
    summary="When a node last reported",
    answers={
        200: Body(types={JSON: node_lease_types.Lease}, description="The lease.", example=_LEASE)
    },
)


@get(_PATH, opt=described(_READ))
async def get_node_lease(
    request: AnyRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """The lease of a node that has reported."""
    query(request)
    store, name = services.reads.store, request.path_params["name"]
    row = await store.clusters.get(request.path_params["cluster"])
    at = await store.heartbeats.last(row.cluster_id, name)
    if at is None:
        raise NotFound(f"No Node {name} has ever reported.")
    grace = stored_config(row.config).node_monitor_grace_seconds
    body = msgspec.json.encode(_lease(name, at, grace))
    return json_response(body, row.head.revision)


_REPORT = Operation(
    id="reportNodes",
    access=Cluster("observe"),
    decided=True,
    tag="nodes",
    summary="Report that many nodes are there",
    description="As `renewNodeLease` for each of the nodes, with one statement for all. Names that no node has are told, "
    "and stop no other.",
    request=Body(
        types={JSON: node_lease_types.NodeReport},
        description="The names of the nodes, or their leases (a coordination.k8s.io/v1 LeaseList).",
        example={"nodes": ["node-7", "node-8"]},
    ),
    answers={
        200: Body(
            types={JSON: node_lease_types.NodeReportResult},
            description="How many have reported, and which are not there.",
            example={"renewed": 2, "unknown": []},
        )
    },
    problems=("InvalidManifest", "Overloaded"),
)


@put(CLUSTER_PATH + "/node-leases", status_code=200, opt=described(_REPORT))
async def report_nodes(request: AnyRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Note that many nodes are there."""
    media_type(request)
    query(request)
    body = await services.bodies.read(request)
    names = dict.fromkeys(parse_report(body, services.settings.request_items_max))
    reports = await services.scheduler.report_nodes(request.path_params["cluster"], list(names))
    unknown = [name for name in names if name not in reports.known]
    answer = node_lease_types.NodeReportResult(renewed=len(names) - len(unknown), unknown=unknown)
    return encoded_response(answer, reports.revision)


def _lease(
    name: str, renewed: datetime, grace_seconds: int | None = None
) -> node_lease_types.Lease:
    return node_lease_types.Lease(
        api_version="coordination.k8s.io/v1",
        kind="Lease",
        metadata=node_lease_types.LeaseMeta(name=name, namespace=NAMESPACE),
        spec=node_lease_types.LeaseSpec(
            holder_identity=name,
            lease_duration_seconds=grace_seconds,
            renew_time=rfc3339(renewed),
        ),
    )


NODE_LEASE_HANDLERS = (renew_node_lease, get_node_lease, report_nodes)
