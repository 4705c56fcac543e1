"""Manage webhooks, which deliver a cluster's records to clients without an open stream."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from litestar import Response, delete, get, patch, post, put
from litestar.di import NamedDependency

from service.api.http.body import converted
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry
from service.api.http.operation import (
    DRY_RUN,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Body,
    Operation,
    Parameter,
    described,
)
from service.api.http.permissions import Cluster
from service.api.http.request import media_type, precondition_of, query
from service.api.http.responses import json_response
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import CLUSTER_PATH, IF_MATCH, IF_NONE_MATCH
from service.api.resources.objects.routes import patch_type_of
from service.api.resources.services import Services
from service.api.resources.webhooks.schemas import (
    Webhook,
    WebhookList,
    WebhookPatch,
    WebhookPing,
    WebhookSettings,
    WebhookStatus,
)
from service.api.webhooks.destinations import wrong_url
from service.api.webhooks.messages import ping
from service.api.webhooks.sending import new_secret
from service.model.core.errors import (
    Conflict,
    FieldError,
    InvalidManifest,
    NotFound,
)
from service.model.core.strict_json import decode_strict
from service.model.core.times import rfc3339
from service.model.json.patch import Json, PatchType, apply_patch
from service.model.log.pages import ClusterRow
from service.model.webhooks import Settled, WebhookRow, renewed_secret
from service.settings import Settings, webhook_networks

_PATH = CLUSTER_PATH + "/webhooks"
_ITEM = _PATH + "/{name:str}"
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SETTINGS = {"url": "https://orchestrator.example/moorage", "events": "Bindings"}
_WEBHOOK = {
    "name": "orchestrator",
    **_SETTINGS,
    "disabled": False,
    "createdAt": "2026-01-31T08:00:00Z",
    "status": {"revision": 1042, "behind": 0, "failures": 0, "stopped": False},
}
_SECRET = {**_WEBHOOK, "secret": "whsec_c2hvd24gb25seSBvbmNlLCBrZWVwIGl0IHNhZmU="}
_WRITE = ("OutcomeUnknown", "StorageUnavailable")


def _body(type_: type[msgspec.Struct], description: str, example: object) -> Body:
    return Body(types={JSON: type_}, description=description, example=example)


_ONE = _body(Webhook, "The webhook.", _WEBHOOK)


def _operation(  # noqa: PLR0913 - the attributes of an operation, by name
    identifier: str,
    summary: str,
    answers: dict[int, Body],
    *,
    description: str = "",
    parameters: Sequence[Parameter] = (),
    request: Body | None = None,
    problems: Sequence[str] = (),
    reads: bool = False,
) -> Operation:
    return Operation(
        id=identifier,
        access=Cluster("configure"),
        reads=reads,
        tag="webhooks",
        summary=summary,
        description=description,
        parameters=parameters,
        request=request,
        answers=answers,
        problems=problems,
    )


_LIST = _operation(
    "listWebhooks",
    "List all webhooks of a cluster",
    {200: _body(WebhookList, "By name.", {"kind": "WebhookList", "items": [_WEBHOOK]})},
    reads=True,
)


@get(_PATH, opt=described(_LIST))
async def list_webhooks(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Return all webhooks of a cluster."""
    query(request)
    cluster = await _cluster(request, services)
    rows = await services.webhooks.list(cluster.cluster_id)
    items = [_shown(row, cluster.head.revision) for row in rows]
    return json_response(msgspec.json.encode(WebhookList(items=items)), cluster.head.revision)


_GET = _operation("getWebhook", "Read a webhook", {200: _ONE}, problems=("NotFound",), reads=True)


@get(_ITEM, opt=described(_GET))
async def get_webhook(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Return one webhook."""
    query(request)
    cluster = await _cluster(request, services)
    return _answer(await _found(request, services, cluster), cluster)


_PUT = _operation(
    "putWebhook",
    "Make a webhook, or replace its settings",
    {
        200: _body(Webhook, "It was replaced, and goes on with its secret.", _WEBHOOK),
        201: _body(Webhook, "It was made; its secret is told this once.", _SECRET),
    },
    description="Messages are sent by POST, and signed as Standard Webhooks says. They come in the order of revisions, one "
    "at a time; each is sent until the receiver answers with a status from 200 to 299, so one may come again, with "
    "the same `webhook-id`. To replace a webhook that failures have stopped makes it go on.",
    parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
    request=_body(WebhookSettings, "All settings.", _SETTINGS),
    problems=("Conflict", "InvalidManifest", "PreconditionFailed", *_WRITE),
)


@put(_ITEM, opt=described(_PUT))
async def put_webhook(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Create or replace a webhook."""
    media_type(request)
    dry = is_dry(query(request))
    name = request.path_params["name"]
    settings = converted(decode_strict(await services.bodies.read(request)), WebhookSettings)
    errors = [*_wrong_name(name), *_wrong_url(settings.url, services.settings)]
    if errors:
        raise InvalidManifest(errors)
    cluster, check = await _cluster(request, services), _precondition(request)
    uid, secret = services.new_id(), new_secret()
    known = list[bool]()

    def change(settled: Settled) -> WebhookRow:
        check(settled.row)
        known.append(settled.row is not None)
        if settled.row is None and settled.others >= services.settings.webhooks_max:
            raise Conflict("The cluster has as many webhooks as MOORAGE_WEBHOOKS_MAX allows.")
        row = settled.row or _made(cluster.cluster_id, name, uid, secret, settings, settled)
        return _changed(row, settings, settled)

    row = await services.webhooks.change(
        cluster.cluster_id,
        name,
        change,
        caller=request.audited_caller,
        dry_run=dry,
    )
    assert row is not None
    if known[-1]:
        return _answer(row, cluster, dry=dry)
    return _answer(row, cluster, dry=dry, status=201, secret=row.secret)


_PATCH = _operation(
    "patchWebhook",
    "Change single settings of a webhook",
    {200: _body(Webhook, "As changed.", _WEBHOOK)},
    description="What is not named stays, the secret as well. Like PUT, it makes a webhook go on that failures have stopped, "
    "even if it changes nothing. A message that is under way is awaited before the next one is sent.",
    parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
    request=Body(
        types={
            STRATEGIC_MERGE_PATCH: WebhookPatch,
            JSON: WebhookPatch,
            MERGE_PATCH: WebhookPatch,
            JSON_PATCH: list[object_types.JsonPatchOperation],
        },
        description="The settings to change.",
        example={"disabled": True},
        examples={JSON_PATCH: [{"op": "replace", "path": "/disabled", "value": True}]},
    ),
    problems=("InvalidManifest", "NotFound", "PreconditionFailed", *_WRITE),
)


@patch(_ITEM, opt=described(_PATCH))
async def patch_webhook(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Change single settings of a webhook."""
    patch_type, dry = patch_type_of(request), is_dry(query(request))
    sent = decode_strict(await services.bodies.read(request))
    cluster, name, check = await _cluster(request, services), _name(request), _precondition(request)

    def change(settled: Settled) -> WebhookRow:
        row = _there(settled.row, name)
        check(row)
        settings = _patched(row, patch_type, sent)
        errors = _wrong_url(settings.url, services.settings) if settings.url != row.url else []
        if errors:
            raise InvalidManifest(errors)
        return _changed(row, settings, settled)

    row = await services.webhooks.change(
        cluster.cluster_id,
        name,
        change,
        caller=request.audited_caller,
        dry_run=dry,
    )
    assert row is not None
    return _answer(row, cluster, dry=dry)


_DELETE = _operation(
    "deleteWebhook",
    "Delete a webhook",
    {200: _body(Webhook, "The webhook as it was.", _WEBHOOK)},
    parameters=(IF_MATCH, IF_NONE_MATCH, DRY_RUN),
    problems=("NotFound", "PreconditionFailed", *_WRITE),
)


@delete(_ITEM, status_code=200, opt=described(_DELETE))
async def delete_webhook(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Delete a webhook."""
    dry = is_dry(query(request))
    cluster, name, check = await _cluster(request, services), _name(request), _precondition(request)
    before = list[WebhookRow]()

    def change(settled: Settled) -> None:
        before.append(_there(settled.row, name))
        check(settled.row)

    await services.webhooks.change(
        cluster.cluster_id,
        name,
        change,
        caller=request.audited_caller,
        dry_run=dry,
    )
    return _answer(before[-1], cluster, dry=dry)


_ROTATE = _operation(
    "rotateWebhookSecret",
    "Give a webhook another secret",
    {200: _body(Webhook, "The webhook; its secret is told this once.", _SECRET)},
    description="Messages are signed with the earlier secret as well until `previousSecretUntil`, so that the receiver can "
    "take the new one without a pause. The secret that a dry run answers is of no use: it is not stored.",
    parameters=(DRY_RUN,),
    problems=("NotFound", *_WRITE),
)


@post(_ITEM + "/secret", status_code=200, opt=described(_ROTATE))
async def rotate_webhook_secret(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Give a webhook a new secret."""
    dry = is_dry(query(request))
    cluster, name, secret = await _cluster(request, services), _name(request), new_secret()
    seconds = services.settings.webhook_secret_seconds

    def change(settled: Settled) -> WebhookRow:
        return renewed_secret(_there(settled.row, name), secret, settled.now, seconds)

    row = await services.webhooks.change(
        cluster.cluster_id,
        name,
        change,
        caller=request.audited_caller,
        dry_run=dry,
    )
    assert row is not None
    return _answer(row, cluster, dry=dry, secret=row.secret)


_PING = _operation(
    "pingWebhook",
    "Send a test message to a webhook",
    {200: _body(WebhookPing, "What came of it.", {"acknowledged": True, "status": 204})},
    description="It is sent at once, whatever else is under way, also to a webhook that is disabled or stopped; "
    "it changes nothing.",
    problems=("NotFound",),
)


@post(_ITEM + "/ping", status_code=200, opt=described(_PING))
async def ping_webhook(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Send a test message to a webhook."""
    query(request)
    cluster = await _cluster(request, services)
    row = await _found(request, services, cluster)
    now = services.authentication.now()
    identifier = f"msg_{row.uid}_ping-{services.new_id()}"
    reply = await services.sender.send(row, identifier, ping(row, cluster.name, now))
    answer = WebhookPing(acknowledged=reply.error is None, status=reply.status, error=reply.error)
    return json_response(msgspec.json.encode(answer), cluster.head.revision)


def _made(
    cluster_id: int, name: str, uid: str, secret: str, settings: WebhookSettings, settled: Settled
) -> WebhookRow:
    """Build the row of a new webhook."""
    return WebhookRow(
        cluster_id=cluster_id,
        name=name,
        uid=uid,
        version=0,
        url=settings.url,
        events=settings.events,
        namespace=settings.namespace,
        disabled=settings.disabled,
        secret=secret,
        previous_secret=None,
        previous_until=None,
        created_at=settled.now,
        revision=settled.head,
        batch_end=None,
        delivered_at=None,
        attempt_at=settled.now,
        failures=0,
        last_error=None,
        stopped=False,
        holder=None,
        held_until=None,
    )


def _changed(row: WebhookRow, settings: WebhookSettings, settled: Settled) -> WebhookRow:
    """Return the webhook with new settings and its failures reset.

    A message in flight is still awaited, but its outcome no longer counts.
    """
    after = settings.after_revision
    if after is not None and after > settled.head:
        message = f"is beyond the present revision {settled.head}"
        raise InvalidManifest([FieldError("afterRevision", message, after)])
    return msgspec.structs.replace(
        row,
        version=row.version + 1,
        url=settings.url,
        events=settings.events,
        namespace=settings.namespace,
        disabled=settings.disabled,
        revision=row.revision if after is None else after,
        batch_end=None,
        attempt_at=settled.now,
        failures=0,
        last_error=None,
        stopped=False,
    )


def _patched(row: WebhookRow, patch_type: PatchType, sent: object) -> WebhookSettings:
    present: Json = {"url": row.url, "events": row.events, "disabled": row.disabled}
    if row.namespace is not None:
        present["namespace"] = row.namespace
    return converted(apply_patch(patch_type, present, sent), WebhookSettings)


def _wrong_name(name: str) -> list[FieldError]:
    if _NAME.fullmatch(name) is not None:
        return []
    message = "has to be a DNS subdomain: lower-case letters, digits, hyphens and dots, at most 253"
    return [FieldError("name", message, name[:200])]


def _wrong_url(url: str, settings: Settings) -> list[FieldError]:
    networks = webhook_networks(settings)
    message = wrong_url(url, allow_http=settings.webhook_http, networks=networks)
    return [] if message is None else [FieldError("url", message, url[:200])]


def _precondition(request: ApiRequest) -> Callable[[WebhookRow | None], None]:
    check = precondition_of(request)
    return lambda row: check(_tag(row) if row else None)


def _tag(row: WebhookRow) -> str:
    """Return the entity tag, which changes with the settings but not with deliveries."""
    return f"{row.uid}-{row.version}"


def _name(request: ApiRequest) -> str:
    name: str = request.path_params["name"]
    return name


async def _cluster(request: ApiRequest, services: Services) -> ClusterRow:
    return await services.reads.store.clusters.get(request.path_params["cluster"])


async def _found(request: ApiRequest, services: Services, cluster: ClusterRow) -> WebhookRow:
    name = _name(request)
    rows = await services.webhooks.list(cluster.cluster_id)
    return _there(next((row for row in rows if row.name == name), None), name)


def _there(row: WebhookRow | None, name: str) -> WebhookRow:
    if row is None:
        raise NotFound(f"There is no webhook {name[:100]!r}.")
    return row


def _answer(
    row: WebhookRow,
    cluster: ClusterRow,
    *,
    dry: bool = False,
    status: int = 200,
    secret: str | None = None,
) -> Response[bytes]:
    shown = msgspec.structs.replace(_shown(row, cluster.head.revision), secret=secret)
    etag = None if dry else f'"{_tag(row)}"'
    body = msgspec.json.encode(shown)
    return json_response(body, cluster.head.revision, status=status, etag=etag)


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)


def _shown(row: WebhookRow, head: int) -> Webhook:
    return Webhook(
        name=row.name,
        url=row.url,
        events=row.events,
        namespace=row.namespace,
        disabled=row.disabled,
        created_at=rfc3339(row.created_at),
        previous_secret_until=_time(row.previous_until),
        status=WebhookStatus(
            revision=row.revision,
            behind=max(0, head - row.revision),
            failures=row.failures,
            stopped=row.stopped,
            last_delivered_at=_time(row.delivered_at),
            last_error=row.last_error,
            next_attempt_at=rfc3339(row.attempt_at) if row.failures and not row.stopped else None,
        ),
    )


WEBHOOK_HANDLERS = (
    list_webhooks,
    get_webhook,
    put_webhook,
    patch_webhook,
    delete_webhook,
    rotate_webhook_secret,
    ping_webhook,
)
