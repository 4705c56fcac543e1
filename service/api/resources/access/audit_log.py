"""List the audit log for admins: who wrote what, and who was refused."""

import re
from datetime import datetime
from typing import Any, Literal

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency

from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, Parameter, described
from service.api.http.permissions import Admin
from service.api.http.request import number, query, wrong_parameter
from service.api.resources.objects.operations import LIMIT_AND_CONTINUE
from service.api.resources.services import Services
from service.model.core.primitives import Value
from service.model.log.audit_chain import AuditRow


class AuditPlace(Value, frozen=True, kw_only=True):
    """Where the audit goes on."""

    continue_: str | None = msgspec.field(default=None, name="continue")
    """Send it back as `continue` for the next page; absent on the last one."""


class AuditList(Value, frozen=True, kw_only=True):
    """Rows of the audit, by chain and number."""

    metadata: AuditPlace
    """Where it goes on."""
    items: list[AuditRow]
    """The rows."""
    kind: Literal["AuditList"] = "AuditList"
    """What this is."""


ROWS_MAX = 1_000
"""The maximum number of rows on a page."""

_PLACE = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)
_EXAMPLE: dict[str, Any] = {
    "kind": "AuditList",
    "metadata": {},
    "items": [
        {
            "chain": 1,
            "number": 1,
            "at": "2026-05-04T08:00:00.123456Z",
            "principal": "shop-scheduler",
            "address": "192.0.2.7",
            "operation": "placePods",
            "clusterId": 1,
            "cluster": "default",
            "revision": 1042,
            "requestId": "0b5f6f1e-3c4d-4a57-9a56-0a4b8f0c2d11",
            "status": 200,
            "requests": 1,
            "previousHash": "",
            "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    ],
}


@get(
    "/v1/audit",
    opt=described(
        Operation(
            id="listAudit",
            access=Admin(),
            reads=True,
            tag="server",
            summary="Who wrote what, and who was refused",
            description="By chain and number: first what concerns the whole server, then cluster by cluster, also those that "
            "are deleted. Each row of a chain has the hash of the one before it. Empty where the server keeps no audit.",
            parameters=(
                *LIMIT_AND_CONTINUE,
                Parameter(
                    name="cluster",
                    description="Only rows about clusters of this name.",
                    example="default",
                ),
                Parameter(
                    name="since",
                    description="Only what happened at this time (RFC 3339) or later.",
                    example="2026-05-04T08:00:00Z",
                ),
                Parameter(
                    name="until",
                    description="Only what happened before this time (RFC 3339).",
                    example="2026-05-05T08:00:00Z",
                ),
            ),
            answers={200: Body(types={JSON: AuditList}, description="A page.", example=_EXAMPLE)},
            problems=("StorageUnavailable",),
        )
    ),
)
async def list_audit(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Return a page of the audit log."""
    parameters = query(request)
    limit = min(number(parameters, "limit", least=1) or ROWS_MAX, ROWS_MAX)
    rows = await services.reads.store.audit.list(
        after=_after(parameters.get("continue")),
        cluster=parameters.get("cluster"),
        since=_time("since", parameters.get("since")),
        until=_time("until", parameters.get("until")),
        limit=limit,
    )
    metadata = {"continue": _token(rows[-1])} if len(rows) == limit else {}
    page = {"kind": "AuditList", "metadata": metadata, "items": rows}
    return Response(msgspec.json.encode(page), media_type=JSON)


def _token(row: AuditRow) -> str:
    return f"{row.chain}.{row.number}"


def _after(token: str | None) -> tuple[int, int] | None:
    if token is None:
        return None
    place = _PLACE.fullmatch(token)
    if place is None:
        raise wrong_parameter("continue", "is not one that the list gave out", token)
    return int(place[1]), int(place[2])


def _time(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise wrong_parameter(name, "has to be a time with its offset, as RFC 3339 says", text)
    return at


AUDIT_HANDLERS = (list_audit,)
