"""Operations on the server itself: health, metrics, the OpenAPI document, and HTML pages."""

import asyncio
from typing import Literal

import msgspec
from litestar import MediaType, Response, get
from litestar.di import NamedDependency

from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Admin, Public, declared
from service.api.http.problems import PROBLEMS, NoSuchPath, ReplicaLags
from service.api.openapi.html_pages import (
    problem_page,
    problems_page,
    warning_page,
    warnings_page,
)
from service.api.resources.services import Services
from service.api.telemetry.exposition import CONTENT_TYPE
from service.api.telemetry.readiness import CommitProbe
from service.model.core.field_warnings import WARNINGS
from service.model.core.primitives import Value
from service.scheduler.scheduler import Scheduler

_PAGE_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
}


class Readiness(Value, frozen=True, kw_only=True):
    """Whether this process can serve."""

    status: Literal["ok"]
    """Always `ok`; a process that cannot serve answers 503 instead."""


_OK = msgspec.json.encode(Readiness(status="ok"))


@get(
    "/livez",
    opt=described(
        Operation(
            id="getLiveness",
            access=Public(),
            reads=True,
            tag="server",
            summary="Is the process alive?",
            answers={
                200: Body(
                    types={JSON: Readiness},
                    description="It is.",
                    example={"status": "ok"},
                )
            },
        )
    ),
)
async def livez() -> Response[bytes]:
    """Answer 200 while the event loop is running."""
    return Response(_OK, media_type=JSON)


@get(
    "/readyz",
    opt=described(
        Operation(
            id="getReadiness",
            access=Public(),
            reads=True,
            tag="server",
            summary="Can the process serve?",
            description="It can as long as it commits to the database and follows the clusters' logs.",
            answers={
                200: Body(
                    types={JSON: Readiness},
                    description="It can.",
                    example={"status": "ok"},
                )
            },
            problems=("ReplicaLags", "StorageUnavailable"),
        )
    ),
)
async def readyz(services: NamedDependency[Services]) -> Response[bytes]:
    """Answer 503 while commits fail, or a replica is too far behind its log."""
    await check_ready(services.proof, services.scheduler, services.settings.ready_lag_seconds_max)
    return Response(_OK, media_type=JSON)


async def check_ready(proof: CommitProbe, scheduler: Scheduler, lag_seconds_max: float) -> None:
    """Check that this process can serve requests.

    Raises:
        StorageUnavailable: it cannot reach the database, or commits would fail.
        ReplicaLags: it no longer follows the logs, or a replica is too far behind its log.
    """
    await proof.check()
    if not scheduler.running:
        raise ReplicaLags("This process has ceased to follow the logs; it has to be started again.")
    lag_seconds = scheduler.gauges().lag_seconds
    if lag_seconds > lag_seconds_max:
        raise ReplicaLags(f"A replica has been behind its log for {lag_seconds:.1f} s.")


@get(
    "/metrics",
    opt=described(
        Operation(
            id="getMetrics",
            access=Public(),
            reads=True,
            tag="server",
            summary="Metrics of this server",
            description="Of all its worker processes together, whichever of them answers.",
            answers={
                200: Body(
                    types={"text/plain": str},
                    description="In Prometheus' text format.",
                    example="# TYPE moorage_replans_total counter\nmoorage_replans_total 12\n",
                )
            },
        )
    ),
)
async def get_metrics(services: NamedDependency[Services]) -> Response[bytes]:
    """Return the metrics of all worker processes of this server."""
    text = await asyncio.to_thread(services.metrics.text)
    return Response(text, media_type=CONTENT_TYPE)


@get("/debug/replicas", opt=declared(Admin()))
async def debug_replicas(services: NamedDependency[Services]) -> Response[bytes]:
    """Return the revision and hash of each replica, for all processes running with `--debug`."""
    if not services.settings.debug:
        raise NoSuchPath("Start the server with --debug to compare replicas.")
    reports = await services.reads.store.replica_reports.latest()
    return Response(msgspec.json.encode({"items": reports}), media_type=JSON)


@get("/openapi.json", opt=declared(Public()))
async def openapi_json(openapi: NamedDependency[bytes]) -> Response[bytes]:
    """Return the OpenAPI document."""
    return Response(openapi, media_type=JSON)


@get("/errors", opt=declared(Public()))
async def errors() -> Response[str]:
    """Return a page with all problem codes."""
    return html_page(problems_page())


@get("/errors/{code:str}", opt=declared(Public()))
async def error(request: ApiRequest) -> Response[str]:
    """Return a page that explains one problem code; a problem document's `type` points to it."""
    code = request.path_params["code"]
    if code not in PROBLEMS:
        raise NoSuchPath(f"There is no problem with the code {code[:100]}.")
    return html_page(problem_page(code))


@get("/warnings", opt=declared(Public()))
async def warnings() -> Response[str]:
    """Return a page with all warning codes."""
    return html_page(warnings_page())


@get("/warnings/{warning:str}", opt=declared(Public()))
async def warning(request: ApiRequest) -> Response[str]:
    """Return a page that explains one warning code."""
    code = request.path_params["warning"]
    if code not in WARNINGS:
        raise NoSuchPath(f"There is no warning with the code {code[:100]}.")
    return html_page(warning_page(code))


def html_page(html: str) -> Response[str]:
    """Return an HTML page under a policy that allows no scripts or external resources."""
    return Response(html, media_type=MediaType.HTML, headers=_PAGE_POLICY)


SERVER_HANDLERS = (
    livez,
    readyz,
    get_metrics,
    debug_replicas,
    openapi_json,
    errors,
    error,
    warnings,
    warning,
)
