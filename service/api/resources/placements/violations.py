"""List the placed pods that currently violate a required rule."""

from litestar import Response, get
from litestar.di import NamedDependency

from service.api.auth.redaction import redact_violations, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Namespaced
from service.api.http.request import query
from service.api.http.responses import encoded_response
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.services import Services
from service.scheduler.decide.reading.violation_list import CONFLICTS_MAX
from service.scheduler.protocol.answers import ViolationsAnswer
from service.scheduler.protocol.intents import ReadViolations

_VIOLATIONS = Operation(
    id="listViolations",
    access=Namespaced("read"),
    reads=True,
    decided=True,
    tag="placements",
    summary="Placed pods that break a required rule now",
    description="Node affinity and selector, pod affinity and anti-affinity, hard topology spread, "
    "each as the filter would judge the pod where it is, with the pod itself taken out. Rules that "
    "are required during execution lead to an eviction; the others are only shown. At most "
    f"{CONFLICTS_MAX} conflicting pods are named for each violation. Pods of namespaces that the caller may not read are "
    "left out; those that one of the caller's conflicts with are counted in its `reason`.",
    answers={
        200: Body(
            types={JSON: ViolationsAnswer},
            description="The violations, by namespace, name and rule.",
            example={
                "revision": 1042,
                "items": [
                    {
                        "namespace": "shop",
                        "name": "web-0",
                        "nodeName": "node-7",
                        "plugin": "InterPodAffinity",
                        "rule": "spec.affinity.podAntiAffinity."
                        "requiredDuringSchedulingIgnoredDuringExecution[0]",
                        "execution": "Ignored",
                        "reason": "node(s) didn't match pod anti-affinity rules",
                        "conflictsWith": [{"namespace": "shop", "name": "web-1"}],
                        "skew": None,
                        "since": None,
                    }
                ],
            },
        )
    },
    problems=("Overloaded",),
)


@get(CLUSTER_PATH + "/violations", opt=described(_VIOLATIONS))
async def list_violations(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Return the violations in a cluster."""
    query(request)
    answer = await services.scheduler.submit(request.path_params["cluster"], ReadViolations())
    return encoded_response(redact_violations(visibility_of(request), answer), answer.revision)


VIOLATION_HANDLERS = (list_violations,)
