"""Change the status of many pods: a list in one commit, or NDJSON in several."""

from collections.abc import Sequence
from functools import partial

import msgspec
from litestar import post
from litestar.di import NamedDependency

from service.api.http.body import converted, items_in, read_members, unknown_fields
from service.api.http.context import ApiRequest
from service.api.http.dry_run import with_dry_run
from service.api.http.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS
from service.api.http.operation import (
    DRY_RUN,
    JSON,
    NDJSON,
    Body,
    Operation,
    as_ndjson,
    described,
)
from service.api.http.pause import Pause
from service.api.http.permissions import Namespaced
from service.api.http.prefer import prefers_minimal
from service.api.http.request import media_type, query
from service.api.http.responses import Streamed
from service.api.resources.bulk.ndjson import answer_lines, rendered_lines_in_one
from service.api.resources.dispatch import DecidedAnswer, submit_once
from service.api.resources.objects import types as object_types
from service.api.resources.objects.authorization import refusal
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.services import Services
from service.model.core.errors import FieldError, Forbidden, InvalidManifest, MalformedJSON
from service.model.core.strict_json import decode_strict, encode
from service.scheduler.protocol.answers import LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import Preconditions, ReportLine, ReportStatus, StatusReport


class _Named(msgspec.Struct, frozen=True):
    namespace: object = None
    name: object = None


def parse_report(line: int, raw: bytes) -> ReportLine:
    """Parse the report in a line; an invalid one is returned with its errors."""
    decoded: object = None
    try:
        decoded = decode_strict(raw)
        report = converted(decoded, object_types.StatusReport)
    except MalformedJSON as error:
        return ReportLine(line=line, report=InvalidManifest([FieldError("", error.detail)]))
    except InvalidManifest as error:
        return _bad(line, error, decoded)
    return ReportLine(
        line=line,
        report=StatusReport(
            namespace=report.namespace,
            name=report.name,
            status=encode(report.status),
            preconditions=Preconditions(
                uid=report.uid or None, resource_version=report.resource_version or None
            ),
        ),
        namespace=report.namespace,
        name=report.name,
    )


def _bad(line: int, error: InvalidManifest, decoded: object) -> ReportLine:
    named = msgspec.convert(decoded, _Named) if isinstance(decoded, dict) else _Named()
    namespace, name = (
        text if isinstance(text, str) else None for text in (named.namespace, named.name)
    )
    return ReportLine(line=line, report=error, namespace=namespace, name=name)


_READ = ("items",)

_REPORT = {"namespace": "shop", "name": "web-0", "status": {"phase": "Succeeded"}}
_RESULT = {
    "line": 1,
    "kind": "Pod",
    "namespace": "shop",
    "name": "web-0",
    "result": "Changed",
    "revision": 1042,
    "errors": [],
}


_OPERATION = Operation(
    id="reportStatuses",
    minimal=True,
    warns=True,
    access=Namespaced("edit", or_verb="observe"),
    decided=True,
    tag="bulk",
    summary="Report the status of many pods",
    description="Each report is a merge patch (RFC 7396) of one pod's `status`, and does what that patch of the pod "
    "does. Each has its own result; one that is refused is told of, and the rest goes on. A list is one commit; "
    "NDJSON, one report a line, is taken in commits of at most 1,000 lines and answered line by line. That a pod has "
    "run is a fact, which takes the verb `observe`.",
    parameters=(DRY_RUN, IDEMPOTENCY_KEY),
    request=Body(
        types={JSON: object_types.StatusReports, NDJSON: str},
        description="The reports, or one a line.",
        example={"items": [_REPORT]},
        examples={NDJSON: as_ndjson(_REPORT)},
    ),
    limit="apply",
    answers={
        200: Body(
            types={JSON: LinesAnswer, NDJSON: str},
            description="What became of each report.",
            example={"revision": 1042, "results": [_RESULT]},
            examples={NDJSON: as_ndjson(_RESULT)},
        )
    },
    problems=("InvalidManifest", *KEY_PROBLEMS),
)


@post(CLUSTER_PATH + "/pods/statuses", status_code=200, opt=described(_OPERATION))
async def report_statuses(
    request: ApiRequest, services: NamedDependency[Services]
) -> DecidedAnswer | Streamed:
    """Change the status of many pods."""
    parameters = query(request)
    if media_type(request) == NDJSON:
        return await answer_lines(request, services, partial(_read_lines, request), parameters)
    body = await services.bodies.read(request)
    intent = await _read_reports(request, await _items(body, services))
    asked = with_dry_run(request, parameters, intent)
    render = partial(rendered_lines_in_one, minimal=prefers_minimal(request))
    return await submit_once(request, services, asked, body, render)


async def _items(body: bytes, services: Services) -> list[bytes]:
    most = services.settings.apply_objects_max
    members = await read_members(body, read=_READ, lists=_READ, items_max=most)
    if errors := unknown_fields(members, _READ):
        raise InvalidManifest(errors)
    return items_in(members.get("items", b"null"), "items", most)


async def _read_lines(request: ApiRequest, start: int, lines: Sequence[bytes]) -> ReportStatus:
    return await _read_reports(request, lines, start)


async def _read_reports(
    request: ApiRequest, reports: Sequence[bytes], start: int = 1
) -> ReportStatus:
    caller, pause, lines = request.context.caller(), Pause(), list[ReportLine]()
    for number, raw in enumerate(reports, start):
        if raw.strip():
            lines.append(_refused_or_not(caller, parse_report(number, raw)))
            await pause.after_some()
    return ReportStatus(lines=tuple(lines), caller=caller)


def _refused_or_not(caller: Caller, line: ReportLine) -> ReportLine:
    """Return the line, or its refusal if the caller may not write pods in its namespace."""
    report = line.report
    forbidden = None if isinstance(report, InvalidManifest | Forbidden) else refusal(caller, report)
    return line if forbidden is None else msgspec.structs.replace(line, report=forbidden)


STATUS_HANDLERS = (report_statuses,)
