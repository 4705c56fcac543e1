"""Write many objects: a `List` in one commit, or NDJSON in commits of at most 1,000 lines."""

import re
from collections.abc import Sequence
from functools import partial

import msgspec
from litestar import post
from litestar.di import NamedDependency

from service.api.http.body import converted, items_in, parse_items, read_members
from service.api.http.context import ApiRequest
from service.api.http.dry_run import with_dry_run
from service.api.http.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS, Rendered
from service.api.http.operation import (
    DRY_RUN,
    JSON,
    NDJSON,
    Body,
    Operation,
    Parameter,
    WholeNumber,
    as_ndjson,
    described,
)
from service.api.http.pause import Pause
from service.api.http.permissions import Namespaced
from service.api.http.request import media_type, number, query, wrong_parameter
from service.api.http.responses import Streamed, warning_header
from service.api.resources.bulk.ndjson import answer_lines
from service.api.resources.dispatch import DecidedAnswer, submit_once
from service.api.resources.objects import types as object_types
from service.api.resources.objects.authorization import refusal, require_pruning, require_writing
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import NAMESPACES, NODES, POD_EXAMPLE, RESOURCES
from service.api.resources.objects.unnamed_manifests import GenerateNameParser
from service.api.resources.services import Services
from service.model.core.errors import FieldError, InvalidManifest, MalformedJSON, MoorageError
from service.model.core.strict_json import decode_strict
from service.model.core.validators import entries_of
from service.model.json.streaming import Member, whole
from service.model.registry.manifests import DEFAULT_NAMESPACE, Applicable, parse_any
from service.scheduler.protocol.answers import ApplyAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import (
    ApplyLine,
    ApplyLines,
    ApplyObjects,
    Deletion,
    Preconditions,
)

_BEGINS = re.compile(rb'\s*\{\s*"delete"\s*:')


_NAMESPACED = {resource.kind: resource.namespaced for resource in RESOURCES}


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Deleted(msgspec.Struct, frozen=True):
    kind: str
    metadata: _Metadata


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    delete: _Deleted


def parse_deletion(line: bytes) -> Deletion | None:
    """Return the deletion that a line requests, or None if its first member is not `delete`.

    Only kind, name, namespace, uid, and resourceVersion of the manifest in it are read.

    Raises:
        MalformedJSON: the line is not JSON that the server accepts.
        InvalidManifest: it does not name an object, or has members other than `delete`.
    """
    if _BEGINS.match(line) is None:
        return None
    asked = converted(decode_strict(line), _Line).delete
    if asked.kind not in _NAMESPACED:
        raise InvalidManifest(
            [FieldError("delete.kind", "is not a kind that is stored", asked.kind)]
        )
    metadata = asked.metadata
    return Deletion(
        kind=asked.kind,
        namespace=(metadata.namespace or DEFAULT_NAMESPACE) if _NAMESPACED[asked.kind] else "",
        name=metadata.name,
        preconditions=Preconditions(
            uid=metadata.uid or None, resource_version=metadata.resource_version or None
        ),
    )


_READ = ("items",)

_encoder = msgspec.json.Encoder()


_OPERATION = Operation(
    id="applyObjects",
    minimal=True,
    warns=True,
    access=Namespaced("edit", or_verb="observe"),
    decided=True,
    tag="bulk",
    summary="Create or change many objects",
    description="A `List` is one commit, whole or not at all. As NDJSON, one object a line, it is "
    "applied in commits of at most 1,000 lines and answered line by line; a bad line is reported "
    'and the rest goes on. A line `{"delete": {"kind": "Pod", "metadata": {…}}}` deletes that object, if it has '
    "the `uid` and `resourceVersion` that stand there. Should the stream have to end early, its last line is a problem "
    "document; lines that were not answered are applied or not. `metadata.resourceVersion`, `managedFields` and `generation` are ignored. A "
    "PriorityClass sets its entry of the setting `priorityClasses`. Each object takes the verb that "
    "writing it by itself would take; ResourceQuotas, LimitRanges and PriorityClasses take `configure`. `prune` takes "
    "the verb in all namespaces. A `List` is refused as a whole, of NDJSON a line.",
    parameters=(
        Parameter(
            name="prune",
            description="Kinds, separated by commas, of which everything that the `List` lacks is "
            "removed.",
            example="Node,Pod",
        ),
        Parameter(
            name="pruneBefore",
            type=WholeNumber,
            description="Remove only what was last changed at or before this revision.",
            example=1042,
        ),
        DRY_RUN,
        IDEMPOTENCY_KEY,
    ),
    request=Body(
        types={JSON: object_types.ObjectList, NDJSON: str},
        description="A Kubernetes `List`, or one object a line.",
        example={
            "apiVersion": "v1",
            "kind": "List",
            "items": [NODES.example, NAMESPACES.example, POD_EXAMPLE],
        },
        examples={NDJSON: as_ndjson(NODES.example, NAMESPACES.example, POD_EXAMPLE)},
    ),
    limit="apply",
    keeps_unknown=(object_types.ObjectList, object_types.PriorityClass),
    components={
        "ApplicableObject": object_types.APPLICABLE,
        "PriorityClass": object_types.PriorityClass,
    },
    answers={
        200: Body(
            types={JSON: ApplyAnswer, NDJSON: str},
            description="How much was changed; as NDJSON, what became of each line.",
            example={"revision": 1042, "created": 2, "changed": 1, "unchanged": 0, "deleted": 0},
            examples={
                NDJSON: as_ndjson(
                    {
                        "line": 1,
                        "kind": "Node",
                        "namespace": None,
                        "name": "node-7",
                        "result": "Created",
                        "revision": 1042,
                        "errors": [],
                    }
                )
            },
        )
    },
    problems=("Conflict", "Denied", "InvalidManifest", *KEY_PROBLEMS),
)


@post(CLUSTER_PATH + "/apply", status_code=200, opt=described(_OPERATION))
async def apply_objects(
    request: ApiRequest, services: NamedDependency[Services]
) -> DecidedAnswer | Streamed:
    """Create or change many objects."""
    parameters = query(request)
    if media_type(request) == NDJSON:
        if others := parameters.keys() - {"dryRun"}:
            raise wrong_parameter(min(others), "goes with a List only, which is one commit", "")
        read = partial(_read_lines, request, services)
        return await answer_lines(request, services, read, parameters)
    prune = _prune(parameters.get("prune"))
    prune_before = number(parameters, "pruneBefore")
    body = await services.bodies.read(request)
    caller = request.context.caller()
    manifests, undrawn = await parse_list(body, services)
    require_writing(caller, manifests)
    require_pruning(caller, prune)
    intent = ApplyObjects(
        manifests=manifests, undrawn=undrawn, prune=prune, prune_before=prune_before, caller=caller
    )
    asked = with_dry_run(request, parameters, intent)
    return await submit_once(request, services, asked, body, _rendered)


def _rendered(answer: ApplyAnswer) -> Rendered:
    return Rendered(_encoder.encode(answer), warning=warning_header(answer.warnings))


async def parse_list(raw: bytes, services: Services) -> tuple[tuple[Applicable, ...], bool]:
    """Return the objects of a `List`, and whether names of some must still be generated.

    Raises:
        InvalidManifest: some objects are invalid; error paths begin with `items[3]`.
    """
    most = services.settings.apply_objects_max
    members = await read_members(raw, read=_READ, lists=_READ, items_max=most)
    _refuse_other_kind(members.get("kind"))
    items = items_in(members.get("items", b"null"), "items", most)
    parse = GenerateNameParser(partial(parse_any, templates=services.scheduler.templates))
    return tuple(await parse_items(items, "items", parse)), parse.are_undrawn


def _refuse_other_kind(member: Member | None) -> None:
    kind = None if member is None else whole(member)
    if kind is not None and not kind.strip(b'"').endswith(b"List"):
        raise InvalidManifest([FieldError("kind", "has to be List", decode_strict(kind))])


def _prune(text: str | None) -> frozenset[str]:
    kinds = frozenset(text.split(",")) if text else frozenset()
    known = {resource.kind for resource in RESOURCES}
    if unknown := sorted(kinds - known):
        message = f"knows only {', '.join(sorted(known))}"
        raise wrong_parameter("prune", message, unknown[0])
    return kinds


async def _read_lines(
    request: ApiRequest, services: Services, start: int, lines: Sequence[bytes]
) -> ApplyLines:
    caller = request.context.caller()
    parsed, pause = list[ApplyLine](), Pause()
    for number_of_line, line in enumerate(lines, start):
        if line.strip():
            parsed.append(_refused_or_not(caller, _parse_line(number_of_line, line, services)))
            await pause.after_some()
    return ApplyLines(lines=tuple(parsed), caller=caller)


def _refused_or_not(caller: Caller, line: ApplyLine) -> ApplyLine:
    sent = line.object
    forbidden = None if isinstance(sent, MoorageError) else refusal(caller, sent)
    if forbidden is None or isinstance(sent, MoorageError):
        return line
    return ApplyLine(
        line=line.line,
        object=forbidden,
        kind=sent.kind,
        namespace=sent.namespace or None,
        name=sent.name,
    )


def _parse_line(number_of_line: int, line: bytes, services: Services) -> ApplyLine:
    try:
        deletion = parse_deletion(line)
        parse = GenerateNameParser(partial(parse_any, templates=services.scheduler.templates))
        sent = deletion or parse(line)
        return ApplyLine(line=number_of_line, object=sent)
    except MalformedJSON as error:
        invalid = InvalidManifest([FieldError("", error.detail)])
        return ApplyLine(line=number_of_line, object=invalid)
    except InvalidManifest as error:
        kind, namespace, name = _identity(line)
        return ApplyLine(
            line=number_of_line, object=error, kind=kind, namespace=namespace, name=name
        )


def _identity(line: bytes) -> tuple[str | None, str | None, str | None]:
    """Return the kind, namespace, and name of an invalid object, each None if unreadable."""
    try:
        decoded = decode_strict(line)
    except (MalformedJSON, InvalidManifest):
        return None, None, None
    fields = decoded if isinstance(decoded, dict) else {}
    fields = entries_of(fields.get("delete", fields))
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    values = (fields.get("kind"), metadata.get("namespace"), metadata.get("name"))
    kind, namespace, name = (text if isinstance(text, str) else None for text in values)
    return kind, namespace, name


APPLY_HANDLERS = (apply_objects,)
