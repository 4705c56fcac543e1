"""Delete the objects of a kind that pass filters, in as many commits as necessary."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, delete
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.auth.redaction import visibility_of
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, with_dry_run
from service.api.http.exception_handler import redact_error
from service.api.http.filters import parse_filters
from service.api.http.idempotency import (
    IDEMPOTENCY_KEY,
    KEY_PROBLEMS,
    Rendered,
    as_replayed,
)
from service.api.http.operation import described
from service.api.http.permissions import require
from service.api.http.prefer import as_applied, minimal_results, prefers_minimal
from service.api.http.problems import problem_of
from service.api.http.request import flag, number, query, wrong_parameter
from service.api.http.responses import encoded_response
from service.api.resources.dispatch import submit_once
from service.api.resources.objects.authorization import deletable_in
from service.api.resources.objects.operations import (
    CLUSTER_PATH,
    DeletionCommit,
    Deletions,
    Resource,
    delete_many_operation,
)
from service.api.resources.objects.registry import NAMESPACES, RESOURCES
from service.api.resources.objects.routes import delete_options
from service.api.resources.services import Services
from service.model.core.errors import FieldError, InvalidManifest, MoorageError
from service.model.registry.kinds import EVERYBODYS
from service.scheduler.protocol.answers import DeletionsAnswer
from service.scheduler.protocol.intents import DeleteObjects

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(DeletionsAnswer)


def _handlers(resource: Resource) -> list[HTTPRouteHandler]:
    """Return a kind's deletion handlers: for one scope, and for all namespaces if it has any."""
    paths = {resource.collection: False}
    if resource.namespaced:
        paths[f"{CLUSTER_PATH}/{resource.plural}"] = True
    return [_handler(resource, path, everywhere=everywhere) for path, everywhere in paths.items()]


def _handler(resource: Resource, path: str, *, everywhere: bool) -> HTTPRouteHandler:
    operation = delete_many_operation(
        resource, IDEMPOTENCY_KEY, KEY_PROBLEMS, everywhere=everywhere
    )

    @delete(path, status_code=200, opt=described(operation))
    async def handle(request: ApiRequest, services: NamedDependency[Services]) -> Response[Any]:
        return await _delete_many(request, services, resource)

    return handle


async def _delete_many(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[bytes]:
    parameters = query(request)
    await _refuse_preconditions(request, services)
    wanted = _intent(request, parameters, resource)
    most = services.settings.apply_objects_max
    limit = min(number(parameters, "limit", least=1) or most, most)
    commits = _Commits(request, services, wanted, limit, parameters)
    deletions = await commits.run()
    response = encoded_response(deletions, deletions.revision)
    if prefers_minimal(request):
        as_applied(response)
    return as_replayed(response) if commits.are_replayed else response


class _Commits:
    """The commits of one deletion request, up to its limit or the first failure."""

    def __init__(
        self,
        request: ApiRequest,
        services: Services,
        wanted: DeleteObjects,
        limit: int,
        parameters: Mapping[str, str],
    ) -> None:
        self._parameters = parameters
        self._minimal = prefers_minimal(request)
        self._request = request
        self._services = services
        self._wanted = wanted
        self._room = limit
        self._per_commit = services.settings.apply_lines_per_commit
        self._answers: list[DeletionsAnswer] = []
        self.are_replayed = True
        """Whether all commits were made by an earlier request with the same key."""

    async def run(self) -> Deletions:
        """Make all commits.

        Raises:
            MoorageError: the first commit failed. If a later one fails, the answer has the problem.
        """
        wanted, remaining = self._wanted, 1
        while self._room and remaining:
            wanted = msgspec.structs.replace(wanted, count=min(self._room, self._per_commit))
            try:
                answer = await self._commit(wanted)
            except MoorageError as error:
                if not self._answers:
                    raise
                context = self._request.context
                seen = redact_error(error, context)
                return self._told(problem_of(seen, context.path, context.request_id))
            self._answers.append(answer)
            self._room -= len(answer.results)
            remaining = answer.remaining
            wanted = msgspec.structs.replace(wanted, after=answer.last)
        return self._told()

    async def _commit(self, wanted: DeleteObjects) -> DeletionsAnswer:
        _, rendered, is_replayed = await submit_once(
            self._request,
            self._services,
            with_dry_run(self._request, self._parameters, wanted),
            b"",
            _rendered,
            chunk=len(self._answers),
        )
        self.are_replayed &= is_replayed
        return _decoder.decode(rendered.body)

    def _told(self, problem: Any = msgspec.UNSET) -> Deletions:
        results = [result for answer in self._answers for result in answer.results]
        commits = [
            DeletionCommit(revision=answer.revision, deleted=deleted)
            for answer in self._answers
            if (deleted := sum(result.result == "Deleted" for result in answer.results))
        ]
        return Deletions(
            revision=self._answers[-1].revision,
            deleted=sum(commit.deleted for commit in commits),
            remaining=self._answers[-1].remaining,
            commits=[] if is_dry(self._parameters) else commits,
            results=minimal_results(results) if self._minimal else results,
            problem=problem,
        )


def _rendered(answer: DeletionsAnswer) -> Rendered:
    return Rendered(_encoder.encode(answer))


def _intent(
    request: ApiRequest, parameters: Mapping[str, str], resource: Resource
) -> DeleteObjects:
    wanted = parse_filters(resource.kind, parameters)
    if not flag(parameters, "all") and wanted.asks_nothing:
        raise wrong_parameter("all", "has to be true to delete all, as there is no filter", "")
    caller = request.context.caller()
    return DeleteObjects(
        kind=resource.kind,
        object_filter=wanted,
        namespaces=_namespaces(request, resource),
        deletable=deletable_in(caller, resource) if resource.namespaced else None,
        count=1,
        caller=caller,
    )


def _namespaces(request: ApiRequest, resource: Resource) -> frozenset[str] | None:
    """Return the namespaces to search: a filter may only reveal what the caller may read."""
    namespace = request.path_params.get("namespace")
    if namespace is not None:
        require(
            request.context.require_principal(),
            "read",
            request.path_params["cluster"],
            namespace,
        )
        return frozenset({namespace})
    return None if resource.kind in EVERYBODYS else visibility_of(request)


async def _refuse_preconditions(request: ApiRequest, services: Services) -> None:
    preconditions = await delete_options(request, services)
    if preconditions.uid is not None or preconditions.resource_version is not None:
        message = "are for single objects: name the object in the path"
        raise InvalidManifest([FieldError("preconditions", message)])


DELETION_HANDLERS = tuple(
    handler
    for resource in RESOURCES
    if resource is not NAMESPACES
    for handler in _handlers(resource)
)
