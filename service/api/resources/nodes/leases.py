"""Record heartbeats of nodes, one or many per request."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec
from litestar import Response, get, put
from litestar.di import NamedDependency

from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Cluster
from service.api.http.request import media_type, query
from service.api.http.responses import encoded_response, json_response
from service.api.resources.nodes import schemas as node_lease_types
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import NODES
from service.api.resources.services import Services
from service.model.cluster.cluster_config import stored_config
from service.model.core import names
from service.model.core.errors import NotFound
from service.model.core.strict_json import decode_strict, too_many
from service.model.core.times import rfc3339
from service.model.core.validators import (
    Problems,
    anything,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
)

NAMESPACE = "kube-node-lease"
"""The namespace in which Kubernetes keeps the leases of nodes."""


_HEAD = {"apiVersion": one_of("coordination.k8s.io/v1"), "kind": one_of("Lease")}


_NAME = text(names.dns_subdomain)


_METADATA = record({"name": _NAME, "namespace": one_of(NAMESPACE)}, closed=False)


_NAMED = record({"name": _NAME, "namespace": one_of(NAMESPACE)}, required=("name",), closed=False)


_check_lease = record({**_HEAD, "metadata": _METADATA, "spec": anything}, closed=False)


_check_report = record(
    {
        "apiVersion": one_of("coordination.k8s.io/v1"),
        "kind": one_of("LeaseList"),
        "metadata": anything,
        "nodes": list_of(_NAME),
        "items": list_of(
            record(
                {**_HEAD, "metadata": _NAMED, "spec": anything},
                required=("metadata",),
                closed=False,
            )
        ),
    }
)


def check_lease(body: bytes, name: str) -> None:
    """Check the lease that a node sends; its times are ignored in favor of the database's clock.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: it is not a lease, or is that of another node.
    """
    if not body.strip():
        return
    fields, problems = decode_strict(body), Problems()
    _check_lease(fields, "", problems)
    sent = entries_of(entries_of(fields).get("metadata")).get("name")
    if isinstance(sent, str) and sent != name:
        problems.add("metadata.name", f"must be {name}, as in the address", sent)
    problems.raise_any()


def parse_report(body: bytes, items_max: int) -> list[str]:
    """Return the names of the reporting nodes.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is wrong, unknown, or missing, or there are too many nodes.
    """
    fields, problems = decode_strict(body), Problems()
    _check_report(fields, "", problems)
    report = entries_of(fields)
    present = [name for name in ("nodes", "items") if report.get(name) is not None]
    if len(present) != 1:
        problems.add("", "must have exactly one of nodes, items")
    problems.raise_any()
    node_names = list(_names(report))
    if len(node_names) > items_max:
        raise too_many(items_max)
    return node_names


def _names(report: Mapping[str, object]) -> Iterator[str]:
    yield from map(str, items_of(report.get("nodes")))
    for lease in items_of(report.get("items")):
        yield str(entries_of(entries_of(lease).get("metadata"))["name"])


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
    keeps_unknown=(node_lease_types.Lease,),
    answers={
        200: Body(types={JSON: node_lease_types.Lease}, description="The lease.", example=_LEASE)
    },
    problems=("InvalidManifest", "Overloaded"),
)


@put(_PATH, status_code=200, opt=described(_RENEW))
async def renew_node_lease(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Record a heartbeat of one node."""
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
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Return the lease of a node that has reported."""
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
async def report_nodes(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Record heartbeats of many nodes."""
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
