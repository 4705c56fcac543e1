"""Manage who may make requests: principals with tokens, and groups of an identity provider."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from litestar import Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.auth.authentication import NewToken, new_token
from service.api.http.body import converted
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry
from service.api.http.operation import DRY_RUN, JSON, Body, Operation, Parameter, described
from service.api.http.permissions import Admin, Cluster
from service.api.http.problems import MalformedRequest
from service.api.http.request import media_type, precondition_of, query
from service.api.resources.access import schemas as principal_types
from service.api.resources.objects.operations import IF_MATCH, IF_NONE_MATCH
from service.api.resources.services import Services
from service.model.core.access import (
    ADMIN,
    BOOTSTRAP,
    EVERYBODY,
    NAME_CHARACTERS_MAX,
    AccessState,
    Grant,
    Precondition,
    PrincipalKind,
    PrincipalRow,
    TokenRow,
    is_name,
)
from service.model.core.errors import (
    FieldError,
    InvalidManifest,
    NoAdminLeft,
    NotFound,
    OutcomeUnknown,
    StorageUnavailable,
)
from service.model.core.strict_json import decode_strict
from service.model.core.times import rfc3339
from service.model.log.audit_chain import ITSELF

RESERVED_NAMES = frozenset({BOOTSTRAP.name, EVERYBODY.name, ITSELF.principal})

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:/@+-]{0,126}[A-Za-z0-9])?")
_ESCAPES = re.compile(r"~[01]")

_GRANTS = [{"role": "scheduler", "cluster": "default", "namespace": "shop"}]
_PRINCIPAL = {
    "name": "nightly-batch",
    "grants": _GRANTS,
    "createdAt": "2026-01-31T08:00:00Z",
    "tokens": [],
}
_TOKEN = {
    "id": "k3f9",
    "description": "nightly batch",
    "createdAt": "2026-01-31T08:00:00Z",
    "expiresAt": "2026-05-01T08:00:00Z",
}
_GROUP = {"name": "platform-team", "grants": [{"role": "admin"}], "createdAt": "2026-01-31T08:00:00Z"}  # fmt: skip
_PROBLEMS = ("NoAdminLeft", "OutcomeUnknown", "StorageUnavailable")


def _operation(  # noqa: PLR0913 - the attributes of an operation, by name
    identifier: str, summary: str, answer: Body, *, status: int = 200, request: Body | None = None,
    description: str = "", problems: Sequence[str] = _PROBLEMS, reads: bool = False,
    parameters: Sequence[Parameter] = (),
) -> Operation:  # fmt: skip
    return Operation(
        id=identifier,
        access=Admin(),
        reads=reads,
        tag="access",
        summary=summary,
        description=description,
        parameters=parameters,
        request=request,
        answers={status: answer},
        problems=problems,
    )


def _tagged(operation: Operation, *preconditions: Parameter) -> dict[str, Any]:
    """Build the `opt` of an operation on an object that has an entity tag."""
    return described(msgspec.structs.replace(operation, tagged=True, parameters=preconditions))


def _body(type_: type[msgspec.Struct], description: str, example: object = None) -> Body:
    return Body(types={JSON: type_}, description=description, example=example)


_IN_THE_PATH = "In the path, a slash in the name is written `~1`, and `~` as `~0`. "
_READ_PROBLEMS = ("NotFound", "StorageUnavailable")
_WRITE_PROBLEMS = (*_PROBLEMS, "InvalidManifest")
_SETTINGS = _body(principal_types.PrincipalSettings, "All grants.", {"grants": _GRANTS})


@get(
    "/v1/whoami",
    opt=described(
        Operation(
            id="getCaller",
            access=Cluster("read"),
            reads=True,
            tag="access",
            summary="Who am I?",
            description="Who makes the request, and what they may do.",
            answers={
                200: _body(
                    principal_types.Caller,
                    "The caller.",
                    {"name": "ci", "grants": _GRANTS, "groups": []},
                )
            },
        )
    ),
)
async def get_caller(request: ApiRequest) -> Response[bytes]:
    """Return the name, grants, and groups of the caller."""
    query(request)
    caller = request.context.require_principal()
    grants = [_shown_grant(grant) for grant in caller.grants]
    return _json({"name": caller.name, "grants": grants, "groups": caller.groups})


class _Collection(msgspec.Struct, frozen=True, kw_only=True):
    """The collection of all principals or all groups; only principals have tokens."""

    kind: PrincipalKind
    noun: str
    one: Body
    many: Body

    @property
    def path(self) -> str:
        """The path of the whole collection."""
        return f"/v1/{self.noun}s"

    @property
    def item(self) -> str:
        """The path of one principal or group."""
        return f"{self.path}/{{name:str}}"

    @property
    def title(self) -> str:
        """The noun as it appears in operation ids."""
        return self.noun.capitalize()


_PRINCIPALS = _Collection(
    kind="User",
    noun="principal",
    one=_body(principal_types.Principal, "It.", _PRINCIPAL),
    many=_body(
        principal_types.PrincipalList, "By name.", {"kind": "PrincipalList", "items": [_PRINCIPAL]}
    ),
)
_GROUPS = _Collection(
    kind="Group",
    noun="group",
    one=_body(principal_types.Group, "It.", _GROUP),
    many=_body(principal_types.GroupList, "By name.", {"kind": "GroupList", "items": [_GROUP]}),
)


def _handlers(of: _Collection) -> tuple[HTTPRouteHandler, ...]:
    return _list_handler(of), _get_handler(of), _put_handler(of), _delete_handler(of)


def _list_handler(of: _Collection) -> HTTPRouteHandler:
    operation = _operation(
        f"list{of.title}s",
        f"List all {of.noun}s",
        of.many,
        problems=("StorageUnavailable",),
        reads=True,
    )

    @get(of.path, opt=described(operation))
    async def list_all(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
        query(request)
        state = await services.authentication.store.access.state()
        items = [_shown(row, state) for row in state.principals if row.kind == of.kind]
        return _json({"kind": f"{of.title}List", "items": items})

    return list_all


def _get_handler(of: _Collection) -> HTTPRouteHandler:
    operation = _operation(
        f"get{of.title}", f"Read a {of.noun}", of.one, problems=_READ_PROBLEMS, reads=True
    )

    @get(of.item, opt=_tagged(operation))
    async def get_one(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
        query(request)
        return await _present(services, of, _named(request))

    return get_one


def _put_handler(of: _Collection) -> HTTPRouteHandler:
    operation = _operation(
        f"put{of.title}",
        f"Make a {of.noun}, or give it other grants",
        of.one,
        request=_SETTINGS,
        description=_IN_THE_PATH + "The grants that it had before are gone.",
        problems=(*_WRITE_PROBLEMS, "PreconditionFailed"),
    )

    @put(of.item, opt=_tagged(operation, IF_MATCH, IF_NONE_MATCH, DRY_RUN))
    async def put_one(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
        media_type(request)
        dry = is_dry(query(request))
        name = _good_name(of, _named(request), services.settings.oidc_name_prefix)
        settings = converted(
            decode_strict(await services.bodies.read(request)), principal_types.PrincipalSettings
        )
        grants = await _put(request, services, of, name, settings, dry=dry)
        if dry:
            return await _as_it_would_be(services, of, name, grants)
        return await _present_after_change(services, of, name)

    return put_one


def _delete_handler(of: _Collection) -> HTTPRouteHandler:
    operation = _operation(
        f"delete{of.title}",
        f"Delete a {of.noun}",
        of.one,
        description=_IN_THE_PATH + ("Its tokens are revoked." if of.kind == "User" else ""),
        problems=(*_PROBLEMS, "NotFound", "PreconditionFailed"),
    )

    @delete(of.item, status_code=200, opt=_tagged(operation, IF_MATCH, IF_NONE_MATCH, DRY_RUN))
    async def delete_one(
        request: ApiRequest, services: NamedDependency[Services]
    ) -> Response[bytes]:
        dry = is_dry(query(request))
        name = _named(request)
        shown = await _present(services, of, name, tagged=not dry)
        await _delete(request, services, of, name, dry=dry)
        return shown

    return delete_one


async def _put(
    request: ApiRequest,
    services: Services,
    of: _Collection,
    name: str,
    settings: principal_types.PrincipalSettings,
    *,
    dry: bool,
) -> tuple[Grant, ...]:
    """Set the grants unless this is a dry run, and return them in stored order."""
    grants = {Grant(grant.role, grant.cluster, grant.namespace) for grant in settings.grants}
    authentication, kept = services.authentication, sorted(grants, key=_place)
    await authentication.store.access.put_principal(
        of.kind,
        name,
        kept,
        keep_admin=await _has_to_keep_admin(
            request, services, None if ADMIN in grants else (of.kind, name)
        ),
        caller=request.audited_caller,
        precondition=_precondition(request),
        dry_run=dry,
    )
    if not dry:
        await authentication.changed()
    return tuple(kept)


async def _has_to_keep_admin(
    request: ApiRequest, services: Services, losing: tuple[PrincipalKind, str] | None = None
) -> bool:
    """Return whether an admin's token must remain after a change, so that no one is locked out.

    None must remain if some admin needs no stored token: the holder of the token in the settings,
    or the caller, if an identity provider authenticates them and they stay admin even when the
    principal or group `losing` loses its grants. A group of admins that the caller is not in does
    not count, since it may be empty.

    Raises:
        NoAdminLeft: the caller would lose their last admin grant, and there are no tokens.
    """
    authentication, caller = services.authentication, request.context.require_principal()
    if authentication.has_other_admin:
        return False
    if not caller.is_identified:
        return True
    state = await authentication.store.access.state()
    admins = {(row.kind, row.name) for row in state.principals if row.is_admin}
    if (admins & caller.own) - {losing}:
        return False
    if not state.tokens:
        raise NoAdminLeft
    return True


def _precondition(request: ApiRequest) -> Precondition:
    """Return a check of the request's If-Match and If-None-Match against the stored row."""
    check = precondition_of(request)
    return lambda row: check(_tag(row) if row else None)


def _tag(row: PrincipalRow) -> str:
    """Return the entity tag of a principal or group, which changes with its grants."""
    return sha256(msgspec.json.encode((row.kind, row.name, row.grants, row.created_at))).hexdigest()


def _place(grant: Grant) -> tuple[str, str, str]:
    """Return the sort key of a grant."""
    return grant.role, grant.cluster or "", grant.namespace or ""


async def _delete(
    request: ApiRequest, services: Services, of: _Collection, name: str, *, dry: bool
) -> None:
    authentication = services.authentication
    await authentication.store.access.delete_principal(
        of.kind,
        name,
        keep_admin=await _has_to_keep_admin(request, services, (of.kind, name)),
        caller=request.audited_caller,
        precondition=_precondition(request),
        dry_run=dry,
    )
    if not dry:
        await authentication.changed()


@post(
    "/v1/principals/{name:str}/tokens",
    status_code=201,
    opt=described(
        _operation(
            "createToken",
            "Give a principal one more token",
            _body(
                principal_types.NewToken,
                "The token; its text is told this once.",
                {**_TOKEN, "token": "mrg_k3f9_shown-only-once"},
            ),
            status=201,
            request=_body(
                principal_types.TokenSettings,
                "What it is for, and until when.",
                {"description": "nightly batch", "expiresInSeconds": 7776000},
            ),
            description=_IN_THE_PATH
            + "A principal may have several, so that one can take the other's place without a pause. The first "
            "token of a server has to be an admin's: from then on callers are asked who they are. The token that a dry "
            "run answers is of no use: it is not stored.",
            parameters=(DRY_RUN,),
            problems=(*_WRITE_PROBLEMS, "NotFound"),
        )
    ),
)
async def create_token(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Create a token."""
    media_type(request)
    dry = is_dry(query(request))
    decoded = decode_strict(await services.bodies.read(request))
    settings, made = converted(decoded, principal_types.TokenSettings), new_token()
    row = await _stored(request, settings, made, services, dry=dry)
    if not dry:
        await services.authentication.changed()
    return _json({**_shown_token(row), "token": made.text}, status=201)


@delete(
    "/v1/tokens/{name:str}",
    status_code=200,
    opt=described(
        _operation(
            "deleteToken",
            "Revoke a token",
            _body(principal_types.Token, "The token as it was.", _TOKEN),
            description="Every process of every server on this database refuses it within seconds.",
            parameters=(DRY_RUN,),
            problems=(*_PROBLEMS, "NotFound"),
        )
    ),
)
async def delete_token(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Revoke a token."""
    dry = is_dry(query(request))
    token_id, authentication = request.path_params["name"], services.authentication
    state = await authentication.store.access.state()
    known = [row for row in state.tokens if row.token_id == token_id]
    if not known:
        raise NotFound(f"There is no token {token_id[:100]!r}.")
    await authentication.store.access.delete_token(
        token_id,
        keep_admin=await _has_to_keep_admin(request, services),
        caller=request.audited_caller,
        dry_run=dry,
    )
    if not dry:
        await authentication.changed()
    return _json(_shown_token(known[0]))


PRINCIPAL_HANDLERS: tuple[HTTPRouteHandler, ...] = (
    get_caller,
    *_handlers(_PRINCIPALS),
    *_handlers(_GROUPS),
    create_token,
    delete_token,
)


async def _stored(
    request: ApiRequest,
    settings: principal_types.TokenSettings,
    made: NewToken,
    services: Services,
    *,
    dry: bool,
) -> TokenRow:
    seconds = settings.expires_in_seconds
    authentication = services.authentication
    return await authentication.store.access.create_token(
        made.token_id,
        _named(request),
        made.secret_hash,
        description=settings.description,
        expires_in=None if seconds is None else timedelta(seconds=seconds),
        keep_admin=await _has_to_keep_admin(request, services),
        caller=request.audited_caller,
        dry_run=dry,
    )


async def _present(
    services: Services, of: _Collection, name: str, *, tagged: bool = True
) -> Response[bytes]:
    state = await services.authentication.store.access.state()
    row = _found(state, of, name)
    if row is not None:
        return _json(_shown(row, state), etag=f'"{_tag(row)}"' if tagged else None)
    raise NotFound(f"There is no {of.noun} {name[:100]!r}.")


async def _as_it_would_be(
    services: Services, of: _Collection, name: str, grants: tuple[Grant, ...]
) -> Response[bytes]:
    """Return the principal or group as it would look with these grants, for a dry run.

    A new one is shown as created now.
    """
    state = await services.authentication.store.access.state()
    known = _found(state, of, name)
    created_at = services.authentication.now() if known is None else known.created_at
    row = PrincipalRow(kind=of.kind, name=name, grants=grants, created_at=created_at)
    return _json(_shown(row, state))


def _found(state: AccessState, of: _Collection, name: str) -> PrincipalRow | None:
    own = (row for row in state.principals if (row.kind, row.name) == (of.kind, name))
    return next(own, None)


async def _present_after_change(services: Services, of: _Collection, name: str) -> Response[bytes]:
    try:
        return await _present(services, of, name)
    except StorageUnavailable as error:
        raise OutcomeUnknown("The change was made, but cannot be read back now.") from error


def _named(request: ApiRequest) -> str:
    """Return the name in the path, with slash and tilde escaped as in JSON Pointer (RFC 6901).

    Raises:
        MalformedRequest: a tilde is not part of an escape.
    """
    escaped: str = request.path_params["name"]
    if "~" in _ESCAPES.sub("", escaped):
        raise MalformedRequest("In a name in the path, `~1` stands for a slash and `~0` for `~`.")
    return escaped.replace("~1", "/").replace("~0", "~")


def _good_name(of: _Collection, name: str, prefix: str) -> str:
    """Return a name that may have grants, or raise InvalidManifest.

    Names from an identity provider (all groups, and principals with the prefix) can be nearly any
    printable text; all other names must follow the server's own rule.
    """
    if of.kind == "Group" or name.startswith(prefix):
        _require_name(name, f"has to be at most {NAME_CHARACTERS_MAX} characters, all printable", is_name(name))  # fmt: skip
        return name
    message = "has to be at most 128 letters, digits and . _ : / @ + -, the first and last a letter or digit"
    _require_name(name, message, _NAME.fullmatch(name) is not None)
    _require_name(name, "is the server's own", name not in RESERVED_NAMES)
    return name


def _require_name(name: str, message: str, holds: bool) -> None:  # noqa: FBT001 - the condition
    if not holds:
        raise InvalidManifest([FieldError("name", message, name[:200])])


def _shown(row: PrincipalRow, state: AccessState) -> dict[str, object]:
    shown: dict[str, object] = {
        "name": row.name,
        "grants": [_shown_grant(grant) for grant in row.grants],
        "createdAt": _time(row.created_at),
    }
    if row.kind == "User":
        own = [token for token in state.tokens if token.principal == row.name]
        shown["tokens"] = [_shown_token(token) for token in own]
    return shown


def _shown_grant(grant: Grant) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(grant).items() if value}


def _shown_token(row: TokenRow) -> dict[str, object]:
    times = {"expiresAt": row.expires_at, "lastUsedAt": row.last_used_at}
    return {
        "id": row.token_id,
        "description": row.description,
        "createdAt": _time(row.created_at),
        **{name: _time(at) for name, at in times.items() if at is not None},
    }


def _time(at: datetime) -> str:
    return rfc3339(at, "seconds")


def _json(value: object, *, status: int = 200, etag: str | None = None) -> Response[bytes]:
    headers = None if etag is None else {"etag": etag}
    body = msgspec.json.encode(value)
    return Response(body, status_code=status, headers=headers, media_type=JSON)
