"""Parse placement requests; each pod stays encoded until its template is looked up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from service.api.http.body import converted, items_in, parse_items, read_members, unknown_fields
from service.api.http.pause import Pause
from service.api.resources.objects.unnamed_manifests import GenerateNameParser
from service.api.resources.placements.schemas import PlacementRequest
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.generate_name import is_undrawn
from service.model.core.primitives import ObjectName
from service.model.core.strict_json import decode_strict, too_many
from service.model.json.streaming import Member, whole
from service.model.pods.pod_manifest import PodManifest, parse_pod
from service.model.pods.template_cache import TemplateCache
from service.model.registry.manifests import AnyManifest
from service.scheduler.protocol.intents import NO_VERDICTS, PlacePods
from service.scheduler.protocol.placements import PodRef

Subject = Literal["pods", "podRefs", "template"]

_SUBJECTS: tuple[Subject, ...] = ("pods", "podRefs", "template")
# Looked up once, since msgspec computes the fields of a type at each call.
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(PlacementRequest)}
PLACEMENT_FIELDS = tuple(_FIELDS)
"""The names of a placement request's fields."""
_OPTIONS = {name: field for name, field in _FIELDS.items() if name not in _SUBJECTS}
_DEFAULTS = PlacementRequest()


async def parse_placement(raw: bytes, templates: TemplateCache, items_max: int) -> PlacePods:
    """Return the intent of a `placePods` body.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: the request or its pods are invalid; the error lists everything wrong.
    """
    members = await read_members(raw, read=PLACEMENT_FIELDS, lists=("pods",), items_max=items_max)
    return await placement_of(members, templates, items_max)


async def placement_of(
    sent: Mapping[str, Member], templates: TemplateCache, items_max: int
) -> PlacePods:
    """Build the intent of a placement from the encoded members of its body.

    Raises:
        MalformedJSON, InvalidManifest: as for `parse_placement`.
    """
    members = {name: value for name, value in sent.items() if value != b"null"}
    options, errors = _read_options(members)
    replicas = options.replicas or 0
    if replicas > items_max:
        errors.append(FieldError("replicas", f"has to be at most {items_max}", replicas))
    subjects: list[Subject] = [name for name in _SUBJECTS if name in members]
    if len(subjects) != 1:
        errors.append(FieldError("", "must have exactly one of pods, podRefs, template"))
    if ("replicas" in members) != (subjects == ["template"]):
        errors.append(FieldError("replicas", "must be given with a template, and only with one"))
    if options.preemption == "Evict" and options.policy == "AllOrNothing":
        errors.append(FieldError("preemption", "evicts for single pods, not for a group", "Evict"))
    if errors:
        raise InvalidManifest(errors)
    return await _intent(subjects[0], members[subjects[0]], options, templates, items_max)


async def parse_pods(
    member: Member,
    field: str,
    templates: TemplateCache,
    items_max: int,
    parse: Callable[[bytes], PodManifest] | None = None,
) -> tuple[PodManifest, ...]:
    """Parse a list of pods to place, in which `nodeName` is a wish instead of a fact.

    Raises:
        InvalidManifest: some pods are invalid; error paths begin with `pods[3]`.
    """
    parse = parse or partial(parse_pod, templates=templates, to_place=True)
    pods = await parse_items(items_in(member, field, items_max), field, parse)
    if len(pods) > 1:
        refuse_repeated(pods, field)
    return tuple(pods)


async def _intent(
    subject: Subject,
    member: Member,
    options: PlacementRequest,
    templates: TemplateCache,
    items_max: int,
) -> PlacePods:
    pods: tuple[PodManifest, ...] = ()
    references: tuple[PodRef, ...] = ()
    undrawn = False
    if subject == "podRefs":
        references = _references(whole(member), items_max)
    else:
        named = partial(parse_pod, templates=templates, to_place=True)
        read = partial(_pods, subject, member, options, templates, items_max)
        try:
            pods = await read(named)
        except InvalidManifest:  # perhaps only because a name must still be generated
            naming = GenerateNameParser(named)
            pods, undrawn = await read(naming), naming.are_undrawn
    return PlacePods(
        pods=pods,
        undrawn=undrawn,
        pod_refs=references,
        path=subject,
        all_or_nothing=options.policy == "AllOrNothing",
        queue=options.on_unschedulable == "Queue",
        dry_run=options.dry_run,
        compare=options.compare,
        explain=options.explain,
        preemption=options.preemption,
        preemption_scope=options.preemption_scope,
        extender_verdicts=NO_VERDICTS,
    )


async def _pods(
    subject: Subject,
    member: Member,
    options: PlacementRequest,
    templates: TemplateCache,
    items_max: int,
    parse: Callable[[bytes], PodManifest],
) -> tuple[PodManifest, ...]:
    if subject == "pods":
        return await parse_pods(member, "pods", templates, items_max, parse)
    return await parse_replicas(whole(member), options.replicas or 0, templates, parse)


async def parse_replicas(
    raw: bytes,
    count: int,
    templates: TemplateCache,
    parse: Callable[[bytes], PodManifest] | None = None,
) -> tuple[PodManifest, ...]:
    """Return a template's pods `<name>-0` to `<name>-(count-1)`, with the same names at each call.

    If `parse` accepts a `generateName`, the pods of a template with one still need generated names.

    Raises:
        InvalidManifest: the template is invalid or has a uid, or its name is too long.
    """
    try:
        parse = parse or partial(parse_pod, templates=templates, to_place=True)
        template = parse(raw)
    except InvalidManifest as error:
        raise error.under("template") from None
    if template.uid:
        message = "may not be given: each replica has its own"
        raise InvalidManifest([FieldError("template.metadata.uid", message, template.uid)])
    if is_undrawn(template):
        return (template,) * count
    pause = Pause()
    pods: list[PodManifest] = []
    for index in range(count):
        pods.append(template.named(f"{template.name}-{index}"))
        await pause.after_some()
    _refuse_long_name(pods[-1].name, template.name)
    return tuple(pods)


def _refuse_long_name(last: str, name: str) -> None:
    if len(last) > 253:  # noqa: PLR2004 - a DNS subdomain
        message = f"leaves no room for the replicas' numbers: {last[-20:]} is over 253 characters"
        raise InvalidManifest([FieldError("template.metadata.name", message, name)])


def _references(raw: bytes, items_max: int) -> tuple[PodRef, ...]:
    references = converted(decode_strict(raw), list[PodRef], "podRefs")
    if len(references) > items_max:
        raise too_many(items_max).under("podRefs")
    errors = [
        FieldError(f"podRefs[{index}]", "names a pod that is named before", reference.name)
        for index, reference in _later(references)
    ]
    if errors:
        raise InvalidManifest(errors)
    return tuple(references)


def _later(references: list[PodRef]) -> Iterator[tuple[int, PodRef]]:
    """Yield the references that repeat an earlier one, with their positions."""
    seen: set[ObjectName] = set()
    for index, reference in enumerate(references):
        if is_undrawn(reference):
            continue
        if (reference.namespace, reference.name) in seen:
            yield index, reference
        seen.add((reference.namespace, reference.name))


def refuse_repeated(manifests: Sequence[AnyManifest], field: str) -> None:
    """Refuse a list that contains an object twice.

    Raises:
        InvalidManifest: an object occurs twice; the error lists each repetition.
    """
    if len({(manifest.namespace, manifest.name) for manifest in manifests}) == len(manifests):
        return
    references = [
        PodRef(namespace=manifest.namespace, name=manifest.name) for manifest in manifests
    ]
    errors = [
        FieldError(
            f"{field}[{index}].metadata.name",
            f"names a {manifests[index].kind.lower()} that is there before",
            again.name,
        )
        for index, again in _later(references)
    ]
    if errors:
        raise InvalidManifest(errors)


def _read_options(members: Mapping[str, Member]) -> tuple[PlacementRequest, list[FieldError]]:
    """Return the options that can be parsed, and the errors of the others."""
    errors = [] if _FIELDS.keys() >= members.keys() else unknown_fields(members, _FIELDS)
    given: dict[str, object] = {}
    for name, field in _OPTIONS.items():
        if (sent := members.get(name)) is None:
            continue
        try:
            given[field.name] = converted(decode_strict(whole(sent)), field.type, name)
        except InvalidManifest as error:
            errors += error.errors
    return msgspec.structs.replace(_DEFAULTS, **given) if given else _DEFAULTS, errors
