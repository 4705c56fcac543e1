"""Places pods over several clusters, each in one of them."""

from typing import Any, cast

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.bodies.dry_runs import note_dry_run
from service.api.bodies.multi_cluster_requests import OverClustersBody, parse_over_clusters
from service.api.bodies.request_reading import media_type, query
from service.api.handler_services.server_services import Services
from service.api.handler_services.waiting_client import WaitingClient, never
from service.api.handlers.placing_authorization import require_placing
from service.api.http.context import ApiRequest, RequestContext, SubrequestTerms, begin
from service.api.http.flow_control import CountBytes
from service.api.openapi import placement_types
from service.api.openapi.operation_declaration import DRY_RUN, JSON, Body, Operation, described
from service.api.openapi.resources import POD_EXAMPLE
from service.api.openapi.rights_each_operation_needs import Namespaced
from service.api.problems import PROBLEM_JSON
from service.api.worker_forwarding.middleware import answer_of
from service.api.worker_forwarding.sockets import ForwardedAnswer
from service.model.core.access import Principal
from service.model.core.errors import Forbidden, OutcomeUnknown, Unavailable
from service.scheduler.multi_cluster.cluster_bids import ClusterQuery, MultiClusterRequest
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.intents import AdvanceGroup, PlacePods
from service.scheduler.protocol.placements import OverClustersAnswer, PlacementAnswer
from service.scheduler.protocol.split_groups import GroupAnswer


async def ask_cluster(
    request: ApiRequest, cluster: str, path: str, body: bytes, told: SubrequestTerms | None = None
) -> ForwardedAnswer:
    """The answer to a POST to a cluster, decided by the worker that has it, with the rights of the caller.

    What it changes is committed only as long as the leases are held that are told. It is neither authenticated
    nor counted anew, and holds bytes of its own.
    """
    asking = request.context
    whole = f"/v1/clusters/{cluster}/{path}"
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": whole,
        "raw_path": whole.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": (asking.address, 0) if asking.address else None,
        "server": None,
        "extensions": {},
        "state": {},
    }
    context = RequestContext(
        request_id=asking.request_id,
        principal=asking.principal,
        terms=told,
    )
    begin(scope, context)
    counted = CountBytes(request.app, request.context.holding.budget)
    client = cast("WaitingClient | None", CLIENT.get())
    return await answer_of(counted, scope, body, never if client is None else client.left)


_OK, _NOT_FOUND, _SERVER_ERROR, _UNAVAILABLE = 200, 404, 500, 503
_answers = msgspec.json.Decoder(PlacementAnswer)
_steps = msgspec.json.Decoder(GroupAnswer)

_PLACE = Operation(
    id="placePodsOverClusters",
    access=Namespaced("place"),
    tag="placements",
    summary="Decide in which cluster, and where there, pods run, and record it",
    description="Each pod goes to one cluster; so do the members of a PodGroup, and all pods of a request that is "
    "AllOrNothing. Clusters are excluded by the pod's topology spread constraints and affinity with the key "
    "`moorage.dev/cluster`, and ordered by `strategy`; the first that takes the pod gets it, by an ordinary placement. "
    "A pod that one of the clusters has already is only answered, so that a request may be repeated. An error of one "
    "cluster is the answer; what was placed before stays placed.",
    parameters=(DRY_RUN,),
    request=Body(
        types={JSON: placement_types.OverClustersRequest},
        description="The pods, the clusters, and how to choose.",
        example={"clusters": ["east", "west"], "pods": [POD_EXAMPLE]},
    ),
    limit="placements",
    answers={
        200: Body(
            types={JSON: OverClustersAnswer},
            description="What became of each pod, in the order asked.",
            example={
                "committed": True,
                "revisions": {"east": 1042, "west": 977},
                "results": [
                    {
                        "namespace": "shop",
                        "name": "web-0",
                        "outcome": "Placed",
                        "cluster": "west",
                        "uid": "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11",
                        "nodeName": "node-7",
                        "score": 601,
                        "refusals": [
                            {
                                "cluster": "east",
                                "reason": None,
                                "message": "0/2 nodes are available: 2 Insufficient cpu.",
                            }
                        ],
                    }
                ],
            },
        )
    },
    problems=("Conflict", "InvalidManifest", "OutcomeUnknown", "Overloaded", "PodDiffers"),
)


@post("/v1/placements", status_code=200, opt=described(_PLACE))
async def place_pods_over_clusters(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Place pods, each in one of several clusters."""
    media_type(request)
    parameters = query(request)
    dry = bool(parameters) and note_dry_run(request, parameters)
    scheduler = services.scheduler
    body = await parse_over_clusters(
        await services.bodies.read(request),
        scheduler.templates,
        services.settings.request_items_max,
        services.settings.clusters_max,
    )
    names = await _clusters(request, services, body)
    dry = dry or body.intent.dry_run
    if dry:
        request.context.holding.changes_nothing = True
    asked = MultiClusterRequest(
        clusters=names,
        units=body.units,
        strategy=body.strategy,
        queue=body.intent.queue,
        dry_run=dry,
        split_groups=body.split_groups,
        pods=[each.pod for each in body.intent.pods],
    )
    clusters = ClustersAsCaller(request, body)
    try:
        answer = await scheduler.place_over_clusters(asked, clusters)
    except Unavailable as error:
        answered = clusters.behind(error)
        if answered is None:
            raise
        return _passed_on(answered)
    return Response(msgspec.json.encode(answer), media_type=JSON)


async def _clusters(request: ApiRequest, services: Services, body: OverClustersBody) -> list[str]:
    """The clusters that are asked: those named, or all where the caller may place these pods.

    Raises:
        Forbidden: the caller may not place the pods in a cluster that it names, or in none at all.
    """
    principal = request.context.require_principal()
    if body.clusters is not None:
        for name in body.clusters:
            require_placing(Caller(principal, name), body.intent)
        return list(body.clusters)
    rows = await services.reads.store.list_clusters()
    found = [row.name for row in rows if _may_place(principal, row.name, body.intent)]
    if not found:
        raise Forbidden(f"{principal.name} may place these pods in no cluster.")
    return sorted(found)


def _may_place(principal: Principal, cluster: str, intent: PlacePods) -> bool:
    where = principal.namespaces("place", cluster)
    return where is None or all(pod.namespace in where for pod in intent.pods)


class ClustersAsCaller:
    """Asks clusters on behalf of the caller of one request, as `ClusterClient` demands.

    Each step is a request of its own to the worker that decides the cluster, so that tests which
    stop a request between two steps do so here.
    """

    def __init__(self, request: ApiRequest, body: OverClustersBody) -> None:
        """`body` is the whole request, of which each cluster is sent the part that concerns it."""
        self._request = request
        self._body = body
        self._failed: list[tuple[Unavailable, ForwardedAnswer]] = []

    def behind(self, error: Unavailable) -> ForwardedAnswer | None:
        """The answer of a cluster because of which an error was raised; then it is that to the whole request."""
        return next((answer for raised, answer in self._failed if raised is error), None)

    async def place(self, ask: ClusterQuery) -> PlacementAnswer:
        """Place pods in one cluster, as `service.scheduler.multi_cluster.cluster_bids.ClusterClient` demands.

        Raises:
            OutcomeUnknown: the cluster may have placed them.
            Unavailable: the cluster answered with an error, which is kept.
        """
        answer = await ask_cluster(
            self._request,
            ask.cluster,
            "placements",
            self._body.to_cluster(ask),
            SubrequestTerms(leases=ask.leases, alone=ask.alone, reserving=ask.reserving),
        )
        if answer.status == _OK:
            return _answers.decode(answer.body)
        raise self._error(ask.cluster, answer, changes=not ask.dry_run)

    async def advance(self, cluster: str, step: AdvanceGroup) -> GroupAnswer:
        """Take a step of a group in several clusters, as `ClusterClient` demands.

        Raises:
            OutcomeUnknown: the cluster may have taken it.
            Unavailable: the cluster answered with an error, which is kept.
        """
        answer = await ask_cluster(
            self._request,
            cluster,
            "placements",
            b"{}",
            SubrequestTerms(leases=step.leases, step=step),
        )
        if answer.status == _OK:
            return _steps.decode(answer.body)
        if answer.status == _NOT_FOUND:
            return GroupAnswer(revision=0, committed=False)
        raise self._error(cluster, answer, changes=True)

    def _error(self, cluster: str, answer: ForwardedAnswer, *, changes: bool) -> Unavailable:
        error = Unavailable(f"The cluster {cluster} answered with an error.")
        if changes and _may_have_begun(answer):
            error = OutcomeUnknown(f"It is not known whether the cluster {cluster} placed pods.")
        self._failed.append((error, answer))
        return error


def _may_have_begun(answer: ForwardedAnswer) -> bool:
    if answer.status != _UNAVAILABLE:
        return answer.status >= _SERVER_ERROR
    return bool(msgspec.json.decode(answer.body)["code"] == OutcomeUnknown.__name__)


def _passed_on(answer: ForwardedAnswer) -> Response[bytes]:
    """The error of a cluster as the answer to the whole request."""
    headers = {
        name.decode(): value.decode()
        for name, value in answer.headers
        if name.lower() == b"retry-after"
    }
    return Response(
        answer.body, status_code=answer.status, headers=headers, media_type=PROBLEM_JSON
    )


OVER_CLUSTERS_HANDLERS = (place_pods_over_clusters,)
