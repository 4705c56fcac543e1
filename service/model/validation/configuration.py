"""Which cluster configurations are valid.

Profiles follow `pkg/scheduler/apis/config/validation`, v1.35.
"""

from collections.abc import Callable, Container, Mapping

from service.model.profiles import ALL, FILTERS, PLUGINS, WEIGHTS
from service.model.validation import names
from service.model.validation.affinity import NODE_AFFINITY, default_spread_constraints
from service.model.validation.rules import (
    INT32_MAX,
    Problems,
    Record,
    RecordCheck,
    Rule,
    TextCheck,
    anything,
    at,
    boolean,
    entries_of,
    items_of,
    list_of,
    map_of,
    one_of,
    record,
    text,
    whole_number,
)

SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PRIORITY_MAX = 1_000_000_000
"""The highest priority that is not the system's."""

_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "PriorityClass",
    "CrossNamespaceAffinity",
    "CrossNamespacePodAffinity",
)
"""Names of quota scopes; the last two mean the same, and the last is the one that is shown."""
_HARD_WEIGHT = whole_number(0, 100)
_WEIGHT_MAX = 5_000
"""The greatest weight of a plugin."""
_WEIGHTS_MAX = 40_000
"""The greatest sum of all plugins' weights: times 100 it keeps within what the engine's ranks hold (`ranks.VETO`)."""
_EVICTIONS_A_MINUTE_MAX = 1_000_000
_DAY_SECONDS = 86_400


def _not_empty(word: str) -> str | None:
    return None if word else "can not be empty"


def _rises(shape: object, path: str, problems: Problems) -> None:
    """Utilization rises from point to point."""
    found = [entries_of(point).get("utilization") for point in items_of(shape)]
    for index in range(1, len(found)):
        before, here = found[index - 1], found[index]
        if isinstance(before, int) and isinstance(here, int) and here <= before:
            where = f"{path}[{index}].utilization"
            problems.add(where, "must be greater than that of the point before", here)


_POINT = record(
    {"utilization": whole_number(0, 100), "score": whole_number(0, 10)},
    required=("utilization", "score"),
)
_POINTS = list_of(_POINT, at_least="must have at least one point")


def _shape(value: object, path: str, problems: Problems) -> None:
    _POINTS(value, path, problems)
    _rises(value, path, problems)


_RATIO = record({"shape": _shape}, required=("shape",))


def _ratio_needs_shape(strategy_field: str) -> RecordCheck:
    """The strategy RequestedToCapacityRatio can't do without a shape."""

    def check(fields: Record, path: str, problems: Problems) -> None:
        ratio = "RequestedToCapacityRatio"
        if fields.get(strategy_field) == ratio and fields.get("requestedToCapacityRatio") is None:
            where = at(path, "requestedToCapacityRatio")
            problems.add(where, f"is required for {strategy_field} {ratio}: give its shape")

    return check


_RESOURCE_WEIGHTS = list_of(
    record(
        {"name": text(names.label_key), "weight": whole_number(1, 100)},
        required=("name",),
    ),
    at_least="must have at least one resource",
)
_SCORING_STRATEGY = record(
    {
        "type": one_of(*_STRATEGIES),
        "resources": _RESOURCE_WEIGHTS,
        "requestedToCapacityRatio": _RATIO,
    },
    also=(_ratio_needs_shape("type"),),
)


def _system_has_no_list(args: Record, path: str, problems: Problems) -> None:
    if args.get("defaultingType") == "System" and args.get("defaultConstraints"):
        message = "must be empty when defaultingType is System"
        problems.add(at(path, "defaultConstraints"), message)


def _args(fields: Mapping[str, Rule], *also: RecordCheck) -> Rule:
    """Arguments may say which kind they are, as in KubeSchedulerConfiguration."""
    return record({"apiVersion": text(), "kind": text(), **fields}, also=also)


_ARGS: Mapping[str, Rule] = {
    "NodeResourcesFit": _args({"scoringStrategy": _SCORING_STRATEGY}),
    "NodeResourcesBalancedAllocation": _args({"resources": _RESOURCE_WEIGHTS}),
    "InterPodAffinity": _args(
        {
            "hardPodAffinityWeight": _HARD_WEIGHT,
            "ignorePreferredTermsOfExistingPods": boolean,
        }
    ),
    "PodTopologySpread": _args(
        {
            "defaultConstraints": default_spread_constraints,
            "defaultingType": one_of("List", "System"),
        },
        _system_has_no_list,
    ),
    "NodeAffinity": _args({"addedAffinity": NODE_AFFINITY}),
}


def _args_fit_plugin(config: Record, path: str, problems: Problems) -> None:
    name, args = config.get("name"), config.get("args")
    if not isinstance(name, str) or name not in PLUGINS or args is None:
        return
    rule, configured = _ARGS.get(name), PLUGINS[name].configured
    if rule is not None:
        rule(args, at(path, "args"), problems)
    elif configured is not None:
        _try_out(configured, args, at(path, "args"), problems)
    elif args != {}:
        problems.add(at(path, "args"), f"{name} takes no arguments")


def _try_out(
    configured: Callable[[Record], object], args: object, path: str, problems: Problems
) -> None:
    """The plugin itself says what arguments it understands."""
    if not isinstance(args, dict):
        problems.add(path, "must be an object", args)
        return
    try:
        configured(args)
    except ValueError as error:
        problems.add(path, str(error))


def _plugin(*others: str) -> Rule:
    """The name of a plugin that this process knows by now."""

    def rule(value: object, path: str, problems: Problems) -> None:
        one_of(*PLUGINS, *others)(value, path, problems)

    return rule


def _extends(step: str, plugins: Container[str]) -> TextCheck:
    return lambda name: None if name in plugins else f"is a plugin that does not {step}"


def _distinct(items: object, field: str, path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items_of(items)):
        name = entries_of(item).get(field)
        if isinstance(name, str) and name in seen:
            problems.add(f"{path}[{index}].{field}", "is there already", name)
        seen.add(name if isinstance(name, str) else "")


def _distinct_list(item: Rule, field: str) -> Rule:
    """A list whose items differ in a field."""
    items = list_of(item)

    def rule(value: object, path: str, problems: Problems) -> None:
        items(value, path, problems)
        _distinct(value, field, path, problems)

    return rule


def _plugin_set(*checks: TextCheck) -> Rule:
    plugin = _plugin()

    def name(value: object, path: str, problems: Problems) -> None:
        plugin(value, path, problems)
        if value in PLUGINS:
            text(*checks)(value, path, problems)

    weight = whole_number(0, _WEIGHT_MAX)
    enabled = record({"name": name, "weight": weight}, required=("name",))
    disabled = record({"name": _plugin(ALL), "weight": weight}, required=("name",))
    return record(
        {"enabled": _distinct_list(enabled, "name"), "disabled": _distinct_list(disabled, "name")}
    )


def _weights_add_up(profile: Record, path: str, problems: Problems) -> None:
    plugins, weights = entries_of(profile.get("plugins")), dict[object, int]()
    for step in ("score", "multiPoint"):
        for each in items_of(entries_of(plugins.get(step)).get("enabled")):
            name, weight = entries_of(each).get("name"), entries_of(each).get("weight")
            if isinstance(name, str) and isinstance(weight, int):
                weights[name] = max(weight, weights.get(name, 0))
    if sum(weights.values()) > _WEIGHTS_MAX:
        message = f"has weights that add up to more than {_WEIGHTS_MAX}"
        problems.add(at(path, "plugins"), message)


_PROFILE = record(
    {
        "schedulerName": text(names.dns_subdomain),
        "plugins": record(
            {
                "filter": _plugin_set(_extends("filter", FILTERS)),
                "score": _plugin_set(_extends("score", WEIGHTS)),
                "multiPoint": _plugin_set(),
            }
        ),
        "pluginConfig": _distinct_list(
            record(
                {"name": _plugin(), "args": anything},
                required=("name",),
                also=(_args_fit_plugin,),
            ),
            "name",
        ),
    },
    required=("schedulerName",),
    also=(_weights_add_up,),
)


def _scope_fits_operator(scope: Record, path: str, problems: Problems) -> None:
    operator, values = scope.get("operator") or "Exists", items_of(scope.get("values"))
    if scope.get("scopeName") != "PriorityClass" and operator != "Exists":
        problems.add(at(path, "operator"), "must be Exists for this scope", operator)
    elif operator in ("In", "NotIn") and not values:
        problems.add(at(path, "values"), "must be specified when operator is In or NotIn")
    elif operator in ("Exists", "DoesNotExist") and values:
        problems.add(at(path, "values"), "may not be specified when operator is Exists")


MATCH_SCOPE = record(
    {
        "scopeName": one_of(*SCOPES),
        "operator": one_of("In", "NotIn", "Exists", "DoesNotExist"),
        "values": list_of(text(names.dns_subdomain), values=True),
    },
    required=("scopeName",),
    also=(_scope_fits_operator,),
)
"""One scope of a quota's `scopeSelector`, or of a limited resource."""


def _not_the_systems(name: str) -> str | None:
    if name.startswith("system-"):
        return "must not start with system-, which is for built-in classes"
    return names.dns_subdomain(name)


_NAMESPACES = list_of(text(names.dns_label), values=True)

CONFIG = record(
    {
        "semantics": one_of("Kubernetes", "DesignDocuments"),
        "emptyNodeSelectorTerm": one_of("MatchNone", "MatchAll"),
        "requiredAffinityTerms": one_of("SamePod", "PerTerm"),
        "emptyNamespaceList": one_of("OwnNamespace", "AllNamespaces"),
        "preferredTermWeight": one_of("PerPod", "PerTerm"),
        "hardPodAffinityWeight": _HARD_WEIGHT,
        "symmetricPreferredAffinity": boolean,
        "symmetricPreferredAntiAffinity": boolean,
        "daemonNamespaces": _NAMESPACES,
        "restrictAllNamespacesAntiAffinity": boolean,
        "nodeTopologyKeys": list_of(text(names.topology_key)),
        "trustedNamespaces": _NAMESPACES,
        "defaultTopologySpreadConstraints": default_spread_constraints,
        "scoringStrategy": one_of(*_STRATEGIES),
        "requestedToCapacityRatio": _RATIO,
        "profiles": _distinct_list(_PROFILE, "schedulerName"),
        "placePendingPods": boolean,
        "groupSearchSteps": whole_number(1, 100_000_000),
        "priorityClasses": map_of(_not_the_systems, whole_number(-INT32_MAX - 1, PRIORITY_MAX)),
        "limitedResources": list_of(
            record(
                {"resource": text(names.label_key), "matchScopes": list_of(MATCH_SCOPE)},
                required=("resource",),
            )
        ),
        "opportunityCostBasis": one_of("Largest", "Average"),
        "affinityViolationGraceSeconds": whole_number(0, _DAY_SECONDS),
        "antiAffinityVictim": one_of("RuleOwner", "LowestPriority"),
        "evictionsPerMinute": whole_number(1, _EVICTIONS_A_MINUTE_MAX),
    },
    also=(_ratio_needs_shape("scoringStrategy"),),
)
