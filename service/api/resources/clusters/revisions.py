"""The past revisions of a cluster that are still readable."""

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency

from service.api.http.context import ApiRequest
from service.api.http.operation import (
    JSON,
    Body,
    Operation,
    Parameter,
    WholeNumber,
    described,
)
from service.api.http.permissions import Namespaced
from service.api.http.request import number, query
from service.api.http.responses import encoded_response
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import RESOURCES
from service.api.resources.services import Services
from service.model.core.primitives import CLUSTER_KIND
from service.model.core.times import rfc3339
from service.model.log.history import PastSelection


class ReadableRevisions(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Which revisions of a cluster can be read."""

    revision: int
    """The present revision, the newest that can be read."""
    oldest_revision: int
    """The oldest revision at which the configuration and objects of every kind can be read."""
    oldest_by_kind: dict[str, int]
    """The oldest revision at which all objects of a kind can be read. Later revisions can be read as well."""
    at: str | None = None
    """When the revision that was asked about was committed; absent if the log does not, or no longer, tell."""


_OPERATION = Operation(
    id="getReadableRevisions",
    access=Namespaced("read"),
    reads=True,
    tag="clusters",
    summary="Which earlier revisions can be read",
    parameters=(
        Parameter(
            name="revision",
            type=WholeNumber,
            description="Tell also, as `at`, when this revision was committed.",
            example=1042,
        ),
    ),
    description="An object is known at a revision if it has not changed since, or if the log has the "
    "change that made it what it was then. So a kind can be read from the revision on after which no "
    "object was changed whose state before is no longer in the log. These revisions only ever rise.",
    answers={
        200: Body(
            types={JSON: ReadableRevisions},
            description="The oldest readable revisions.",
            example={
                "revision": 1042,
                "oldestRevision": 800,
                "oldestByKind": {"Node": 800, "Pod": 310, "Namespace": 0},
            },
        )
    },
    problems=("Overloaded",),
)


@get(CLUSTER_PATH + "/revisions", opt=described(_OPERATION))
async def get_readable_revisions(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Return the oldest readable revision of every kind."""
    cluster = request.path_params["cluster"]
    revision = number(query(request), "revision")
    at = None if revision is None else await services.past.committed_at(cluster, revision)
    history = await services.past.readable(cluster, PastSelection(kind=None))
    oldest = {resource.kind: history.oldest_of(resource.kind) for resource in RESOURCES}
    answer = ReadableRevisions(
        revision=history.head.revision,
        oldest_revision=max(history.oldest_of(CLUSTER_KIND), *oldest.values()),
        oldest_by_kind=oldest,
        at=None if at is None else rfc3339(at, "milliseconds"),
    )
    return encoded_response(answer, history.head.revision)


REVISION_HANDLERS = (get_readable_revisions,)
