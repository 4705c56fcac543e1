"""Place pods over several clusters, each pod in one of them."""

from typing import Any, cast

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.forwarding.middleware import answer_of
from service.api.forwarding.transport import ForwardedAnswer
from service.api.http.context import ApiRequest, RequestContext, SubrequestTerms, begin
from service.api.http.disconnect import WaitingClient, never
from service.api.http.dry_run import note_dry_run
from service.api.http.flow_control import FlowControl
from service.api.http.operation import DRY_RUN, JSON, Body, Operation, described
from service.api.http.permissions import Namespaced
from service.api.http.problems import PROBLEM_JSON
from service.api.http.request import media_type, query
from service.api.resources.objects.registry import POD_EXAMPLE
from service.api.resources.placements import schemas as placement_types
from service.api.resources.placements.authorization import require_placing
from service.api.resources.placements.cluster_parsing import OverClustersBody, parse_over_clusters
from service.api.resources.services import Services
from service.model.core.access import Principal
from service.model.core.errors import Forbidden, OutcomeUnknown, Unavailable
from service.scheduler.multi_cluster.cluster_bids import ClusterQuery, MultiClusterRequest
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.intents import AdvanceGroup, PlacePods
from service.scheduler.protocol.placements import OverClustersAnswer, PlacementAnswer
from service.scheduler.protocol.split_groups import GroupAnswer


async def post_as_caller(
    request: ApiRequest, cluster: str, path: str, body: bytes, terms: SubrequestTerms | None = None
) -> ForwardedAnswer:
    """POST to a cluster with the caller's rights, and return the answer of the cluster's worker.

    If `terms` has leases, changes are only committed while they are held. The subrequest is neither
    authenticated nor rate-limited again, and holds bytes of its own.
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
        terms=terms,
    )
    begin(scope, context)
    counted = FlowControl(request.app, request.context.reservation.budget)
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
                "kubernetes": {"east": "1.36", "west": "1.37"},
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
        request.context.reservation.changes_nothing = True
    asked = MultiClusterRequest(
        clusters=names,
        units=body.units,
        strategy=body.strategy,
        queue=body.intent.queue,
        dry_run=dry,
        split_groups=body.split_groups,
        pods=[manifest.pod for manifest in body.intent.pods],
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
    """Return the clusters to ask: those named, or all where the caller may place these pods.

    Raises:
        Forbidden: the caller may not place the pods in a named cluster, or in any cluster.
    """
    principal = request.context.require_principal()
    if body.clusters is not None:
        for name in body.clusters:
            require_placing(Caller(principal, name), body.intent)
        return list(body.clusters)
    rows = await services.reads.store.clusters.all()
    names = [row.name for row in rows if _may_place(principal, row.name, body.intent)]
    if not names:
        raise Forbidden(f"{principal.name} may place these pods in no cluster.")
    return sorted(names)


def _may_place(principal: Principal, cluster: str, intent: PlacePods) -> bool:
    where = principal.namespaces("place", cluster)
    return where is None or all(pod.namespace in where for pod in intent.pods)


class ClustersAsCaller:
    """Sends requests to clusters on behalf of one caller; implements `ClusterClient`.

    Each step is a request of its own to the cluster's worker, so tests that interrupt a placement
    between two steps do so here.
    """

    def __init__(self, request: ApiRequest, body: OverClustersBody) -> None:
        """Store the caller's request; each cluster only receives its part of `body`."""
        self._request = request
        self._body = body
        self._failed: list[tuple[Unavailable, ForwardedAnswer]] = []

    def behind(self, error: Unavailable) -> ForwardedAnswer | None:
        """Return the cluster's response behind `error`, to be passed on, or None."""
        return next((answer for raised, answer in self._failed if raised is error), None)

    async def place(self, ask: ClusterQuery) -> PlacementAnswer:
        """Place pods in one cluster.

        Raises:
            OutcomeUnknown: the cluster may have placed them.
            Unavailable: the cluster answered with an error, which `behind` returns.
        """
        answer = await post_as_caller(
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
        """Advance a group that spans several clusters by one step in one cluster.

        Raises:
            OutcomeUnknown: the cluster may have taken the step.
            Unavailable: the cluster answered with an error, which `behind` returns.
        """
        answer = await post_as_caller(
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
    """Return a cluster's error as the answer to the whole request."""
    headers = {
        name.decode(): value.decode()
        for name, value in answer.headers
        if name.lower() == b"retry-after"
    }
    return Response(
        answer.body, status_code=answer.status, headers=headers, media_type=PROBLEM_JSON
    )


OVER_CLUSTERS_HANDLERS = (place_pods_over_clusters,)
