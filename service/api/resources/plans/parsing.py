"""Parse requests to make or commit plans."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from service.api.http.body import parse_items
from service.api.resources.placements.parsing import parse_replicas, refuse_repeated
from service.api.resources.plans import schemas as plan_types
from service.model.core import names
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.primitives import LabelSelector, Taint
from service.model.core.selector_rules import LABEL_SELECTOR, TAINT
from service.model.core.strict_json import decode_strict, encode
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    anything,
    at,
    entries_of,
    items_of,
    list_of,
    map_of,
    nullable,
    one_of,
    record,
    text,
    whole_number,
    without_nulls,
)
from service.model.plans.plan import GOALS, PROTECTED_PODS, GoalFields, fits_across_fields
from service.model.plans.rebalance_objectives import MEASURED, OBJECTIVES_WANTED, block_amount
from service.model.plans.rollout_template import parse_template
from service.model.plans.rollouts import AMOUNTS, PodOwner
from service.model.pods.template_cache import TemplateCache
from service.model.registry.manifests import PodManifest, parse_node, parse_pod
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PodRef
from service.scheduler.protocol.plans import (
    CHANGES,
    AddNodes,
    Compare,
    CordonNodes,
    Domains,
    Drain,
    Fit,
    Goal,
    Place,
    PlanBounds,
    PlanChange,
    PlanStepKey,
    PutPods,
    Rebalance,
    Remove,
    RemoveNodes,
    RemovePods,
    Replace,
    Selection,
    SetConfig,
    SetLabels,
    SetNamespaceLabels,
    SetTaints,
    UncordonNodes,
)

T = TypeVar("T")
Json = Mapping[str, Any]

_SELECTING = ("names", "selector", "topology")
_SELECTED: Mapping[str, Sequence[str]] = {
    "nodes": _SELECTING,
    "pods": _SELECTING,
    "namespaces": ("names", "selector"),
}
"""Maps each kind of object that a change can select to the fields that select it."""


class _Fields(NamedTuple):
    """The fields of one kind of change, in addition to `op`."""

    needed: Sequence[str] = ()
    optional: Sequence[str] = ()
    any_of: Sequence[str] = ()
    """Fields of which at least one is required."""

    @classmethod
    def of(cls, change: type[PlanChange]) -> "_Fields":
        """Derive the fields from the type of a change; a selection expands to several fields."""
        fields = msgspec.structs.fields(change)
        selected = [field.name for field in fields if field.type is Selection]
        stated = [field for field in fields if field.type is not Selection]
        return cls(
            needed=[field.name for field in stated if field.required],
            optional=[field.name for field in stated if not field.required]
            + ["namespace" for name in selected if name == "pods"],
            any_of=[field for selection in selected for field in _SELECTED[selection]],
        )


_FIELDS = {op: _Fields.of(change) for op, change in CHANGES.items()}
_SUBJECTS = ("pods", "podRefs", "template", "displaced")
_GOALS: Mapping[str, GoalFields] = {
    "Place": GoalFields(optional=(*_SUBJECTS, "replicas")),
    "Drain": GOALS["Drain"],
    "Remove": GoalFields(needed=("namespace", "selector", "count")),
    "Replace": GOALS["Replace"],
    "Rebalance": GOALS["Rebalance"],
    "Fit": GoalFields(optional=("pod", "podRef", "changesMax", "limit")),
    "Compare": GoalFields(optional=("namespace", "selector")),
}
"""Maps each type of goal to its fields; alternatives of Place and Fit are checked separately."""


class PlanRequest(NamedTuple):
    """A parsed request for a plan, and the maximum number of steps to return."""

    intent: MakePlan
    steps_max: int
    expected: tuple[PlanStepKey, ...] | None = None
    """The steps that the plan must have, or None to accept any."""


async def parse_plan(
    raw: bytes, templates: TemplateCache, limits: Limits, items_max: int
) -> PlanRequest:
    """Parse a plan request from a request body.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: the request or its manifests are invalid; the error lists everything wrong.
    """
    fields = _checked(
        raw, declared(plan_types.PlanRequest, _rules(limits), also=(_compares_settings,))
    )
    return await _plan(fields, templates, items_max)


async def parse_plan_commit(
    raw: bytes, templates: TemplateCache, limits: Limits, items_max: int
) -> PlanRequest:
    """Parse a plan request and its expected steps from a request body.

    Raises:
        MalformedJSON, InvalidManifest: as for `parse_plan`.
    """
    fields = _checked(
        raw, declared(plan_types.PlanCommit, _rules(limits) | {"steps": list_of(_STEP)})
    )
    sent = fields.get("steps")
    steps = None if sent is None else tuple(_step_key(step) for step in sent)
    plan = await _plan(fields, templates, items_max)
    return plan._replace(expected=steps)


def _checked(raw: bytes, rule: Rule) -> Json:
    sent = decode_strict(raw)
    problems = Problems()
    rule(sent, "", problems)
    problems.raise_any()
    return cast("Json", sent)


async def _plan(fields: Json, templates: TemplateCache, items_max: int) -> PlanRequest:
    changes = fields.get("changes") or ()
    read = partial(_change, templates=templates)
    intent = MakePlan(
        changes=tuple(await parse_items(changes, "changes", read)),
        goal=await _goal(fields.get("goal"), templates, items_max),
        bounds=_converted(fields.get("bounds"), PlanBounds) or PlanBounds(),
        explain=fields.get("explain") or "None",
    )
    steps_max = fields.get("stepsMax")
    return PlanRequest(
        intent, plan_types.PlanRequest().steps_max if steps_max is None else steps_max
    )


def _step_key(sent: Json) -> PlanStepKey:
    return PlanStepKey(
        sent["action"], sent.get("namespace"), sent["name"], sent.get("from"), sent.get("to")
    )


# Rules, which report everything wrong in a request before it is converted


def _rules(limits: Limits) -> dict[str, Rule]:
    return {
        "changes": _at_most(limits.plan_changes_max, _change_rule(limits)),
        "goal": _GOAL,
        "bounds": _BOUNDS,
        "stepsMax": whole_number(0, limits.plan_steps_shown_max),
    }


def _at_most(count_max: int, item: Rule) -> Rule:
    def rule(value: object, path: str, problems: Problems) -> None:
        if isinstance(value, list) and len(value) > count_max:
            problems.add(path, f"has {len(value)} changes, over the limit of {count_max}")
            return
        list_of(item)(value, path, problems)

    return rule


def _change_rule(limits: Limits) -> Rule:
    rules: dict[str, Rule] = {
        "op": one_of(*CHANGES),
        "names": list_of(text(names.dns_subdomain), values=True),
        "selector": LABEL_SELECTOR,
        "topology": _TOPOLOGY,
        "namespace": text(names.dns_label),
        "template": anything,
        "count": whole_number(1, limits.plan_nodes_max),
        "labels": map_of(names.label_key, nullable(text(names.label_value))),
        "taints": list_of(TAINT),
        "pods": list_of(anything, values=True),
        "config": record({}, closed=False),
    }
    return declared(plan_types.PlanChange, rules, also=(_fields_fit_op,))


def _fields_fit_op(change: Record, path: str, problems: Problems) -> None:
    op = change.get("op")
    fields = _FIELDS.get(op) if isinstance(op, str) else None
    if fields is None:
        return
    given = {name for name, value in change.items() if value is not None and name != "op"}
    for name in fields.needed:
        if name not in given:
            problems.add(at(path, name), f"is required by {op}")
    if fields.any_of and given.isdisjoint(fields.any_of):
        problems.add(path, f"must have at least one of {', '.join(fields.any_of)}")
    for name in sorted(given.difference(fields.needed, fields.optional, fields.any_of)):
        problems.add(at(path, name), f"is not a field of {op}")


def _fits_type(goal: Record, path: str, problems: Problems) -> None:
    type_ = goal.get("type")
    if not isinstance(type_, str) or type_ not in _GOALS:
        return
    fields = _GOALS[type_]
    for name in fields.needed:
        if goal.get(name) is None:
            problems.add(at(path, name), f"is required by {type_}")
    given = [name for name, value in goal.items() if value is not None and name != "type"]
    for name in given:
        if not fields.has(name):
            problems.add(at(path, name), _not_taken(name, type_))
    if type_ == "Place":
        _one_subject(goal, path, problems)
    if type_ == "Fit" and (goal.get("pod") is None) == (goal.get("podRef") is None):
        problems.add(path, "must have exactly one of pod, podRef")
    fits_across_fields(goal, path, problems)


def _not_taken(name: str, type_: str) -> str:
    others = [goal for goal, fields in _GOALS.items() if goal != "Place" and fields.has(name)]
    if type_ != "Place" or not others:
        return f"is not a field of {type_}"
    return f"must be given with {' or '.join(others)} only"


def _compares_settings(plan: Record, path: str, problems: Problems) -> None:
    if entries_of(plan.get("goal")).get("type") != "Compare":
        return
    changes = items_of(plan.get("changes"))
    if not changes:
        problems.add(at(path, "changes"), "is required by Compare")
    for index, change in enumerate(changes):
        if entries_of(change).get("op") != "SetConfig":
            problems.add(
                at(path, f"changes[{index}].op"), "must be SetConfig with the goal Compare"
            )


def _any_selecting(nodes: Record, path: str, problems: Problems) -> None:
    if all(nodes.get(name) is None for name in _SELECTING):
        problems.add(path, f"must have at least one of {', '.join(_SELECTING)}")


def _one_subject(goal: Record, path: str, problems: Problems) -> None:
    given = [name for name in _SUBJECTS if goal.get(name) is not None]
    if len(given) != 1:
        problems.add(path, f"must have exactly one of {', '.join(_SUBJECTS)}")
    if (goal.get("replicas") is not None) != (given == ["template"]):
        where = at(path, "replicas")
        problems.add(where, "must be given with a template, and only with one")


def _true(value: object, path: str, problems: Problems) -> None:
    if value is not True:
        problems.add(path, "must be true if it is given", value)


def _seconds(value: object, path: str, problems: Problems) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        problems.add(path, "must be a number greater than 0", value)


_TOPOLOGY = declared(
    Domains,
    {
        "key": text(names.label_key),
        "values": list_of(
            text(names.label_value), at_least="must have at least one value", values=True
        ),
    },
)
_NODES = declared(
    plan_types.PlanNodes,
    {
        "names": list_of(text(names.dns_subdomain), values=True),
        "selector": LABEL_SELECTOR,
        "topology": _TOPOLOGY,
    },
    also=(_any_selecting,),
)
_POD_REF = declared(PodRef, {"namespace": text(names.dns_label), "name": text(names.dns_subdomain)})
_GOAL = declared(
    plan_types.PlanGoal,
    {
        "pods": list_of(anything, values=True),
        "podRefs": list_of(_POD_REF, values=True),
        "template": anything,
        "displaced": _true,
        "pod": anything,
        "podRef": _POD_REF,
        "nodes": _NODES,
        "namespace": text(names.dns_label),
        "selector": LABEL_SELECTOR,
        "owner": declared(PodOwner, {}),
        **MEASURED,
        **AMOUNTS,
    },
    also=(_fits_type,),
)
_STEP = declared(
    plan_types.PlannedStep,
    {
        "namespace": text(names.dns_label),
        "name": text(names.dns_subdomain),
        "from": text(names.dns_subdomain),
        "to": text(names.dns_subdomain),
    },
)
_BOUNDS = declared(PlanBounds, {"seconds": _seconds, "protect": PROTECTED_PODS})


# Conversion of the checked fields


def _change(sent: object, *, templates: TemplateCache) -> PlanChange:
    fields = cast("Json", sent)
    return _READ[CHANGES[fields["op"]]](fields, templates)


def _selection(fields: Json) -> Selection:
    given = fields.get("names")
    return Selection(
        names=None if given is None else tuple(given),
        selector=_converted(fields.get("selector"), LabelSelector),
        topology=_converted(fields.get("topology"), Domains),
        namespace=fields.get("namespace"),
    )


def _add_nodes(fields: Json, templates: TemplateCache) -> AddNodes:
    try:
        template = parse_node(fields["template"], limits=templates.limits)
    except InvalidManifest as error:
        raise error.under("template") from None
    return AddNodes(template, fields["count"], _converted(fields.get("topology"), Domains))


def _put_pods(fields: Json, templates: TemplateCache) -> PutPods:
    errors: list[FieldError] = []
    pods: list[PodManifest] = []
    for index, sent in enumerate(fields["pods"]):
        try:
            pods.append(parse_pod(sent, templates))
        except InvalidManifest as error:
            errors += error.under(f"pods[{index}]").errors
    if errors:
        raise InvalidManifest(errors)
    refuse_repeated(pods, "pods")
    return PutPods(tuple(pods))


def _set_taints(fields: Json, _: TemplateCache) -> SetTaints:
    return SetTaints(
        _selection(fields), msgspec.convert(without_nulls(fields["taints"]), tuple[Taint, ...])
    )


_READ: Mapping[type[PlanChange], Callable[[Json, TemplateCache], PlanChange]] = {
    RemoveNodes: lambda fields, _: RemoveNodes(_selection(fields)),
    CordonNodes: lambda fields, _: CordonNodes(_selection(fields)),
    UncordonNodes: lambda fields, _: UncordonNodes(_selection(fields)),
    AddNodes: _add_nodes,
    SetLabels: lambda fields, _: SetLabels(_selection(fields), fields["labels"]),
    SetTaints: _set_taints,
    RemovePods: lambda fields, _: RemovePods(_selection(fields)),
    PutPods: _put_pods,
    SetConfig: lambda fields, _: SetConfig(fields["config"]),
    SetNamespaceLabels: lambda fields, _: SetNamespaceLabels(_selection(fields), fields["labels"]),
}


async def _goal(sent: Json | None, templates: TemplateCache, items_max: int) -> Goal:
    if sent is None:
        return Place()
    if sent["type"] != "Place":
        return _GOAL_PARSERS[sent["type"]](sent, templates)
    if sent.get("displaced"):
        return Place(displaced=True)
    try:
        return await _named_pods(sent, templates, items_max)
    except InvalidManifest as error:
        raise error.under("goal") from None


def _rebalance(sent: Json, _: TemplateCache) -> Rebalance:
    return Rebalance(
        pods=_selection(sent),
        objectives=tuple(sent.get("objectives") or OBJECTIVES_WANTED),
        moves_max=sent.get("movesMax"),
        resource=sent.get("resource"),
        block=block_amount(sent.get("resource"), sent.get("block")),
    )


def _fit(sent: Json, templates: TemplateCache) -> Fit:
    return Fit(
        pod=_one_pod(sent, templates),
        changes_max=sent.get("changesMax") or plan_types.REPAIR_CHANGES,
        repairs_max=sent.get("limit") or plan_types.REPAIRS,
    )


def _one_pod(sent: Json, templates: TemplateCache) -> Place:
    ref = _converted(sent.get("podRef"), PodRef)
    if ref is not None:
        return Place(pod_refs=(ref,), path="podRefs")
    try:
        return Place(pods=(parse_pod(sent["pod"], templates, to_place=True),))
    except InvalidManifest as error:
        raise error.under("goal.pod") from None


def _replace(sent: Json, templates: TemplateCache) -> Replace:
    namespace, replicas = sent["namespace"], sent["replicas"]
    try:
        template = parse_template(
            sent["template"], templates, namespace=namespace, replicas=replicas
        )
    except InvalidManifest as error:
        raise error.under("goal") from None
    return Replace(
        namespace=namespace,
        selector=_converted(sent.get("selector"), LabelSelector),
        owner=_converted(sent.get("owner"), PodOwner),
        template=template,
        replicas=replicas,
        max_surge=sent.get("maxSurge"),
        max_unavailable=sent.get("maxUnavailable"),
    )


_GOAL_PARSERS: Mapping[str, Callable[[Json, TemplateCache], Goal]] = {
    "Drain": lambda sent, _: Drain(nodes=_selection(sent["nodes"])),
    "Remove": lambda sent, _: Remove(pods=_selection(sent), count=sent["count"]),
    "Replace": _replace,
    "Rebalance": _rebalance,
    "Fit": _fit,
    "Compare": lambda sent, _: Compare(pods=_selection(sent)),
}
"""Maps each type of goal but Place to the function that reads its fields."""


async def _named_pods(sent: Json, templates: TemplateCache, items_max: int) -> Place:
    references = sent.get("podRefs")
    if references is not None:
        refs = msgspec.convert(without_nulls(references), tuple[PodRef, ...])
        return Place(pod_refs=refs, path="podRefs")
    if sent.get("template") is not None:
        if sent["replicas"] > items_max:
            raise InvalidManifest([FieldError("replicas", f"has to be at most {items_max}")])
        raw = encode(sent["template"])
        return Place(pods=await parse_replicas(raw, sent["replicas"], templates), path="template")
    parse = partial(parse_pod, templates=templates, to_place=True)
    pods = await parse_items(sent["pods"], "pods", parse)
    refuse_repeated(pods, "pods")
    return Place(pods=tuple(pods))


def _converted(value: object, type_: type[T]) -> T | None:
    return None if value is None else msgspec.convert(without_nulls(value), type_)
