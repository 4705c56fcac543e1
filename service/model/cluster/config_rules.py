"""Validation rules of cluster configurations.

Profiles are checked as in `pkg/scheduler/apis/config/validation`, v1.35.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from service.model.cluster.extender_rules import EXTENDERS
from service.model.cluster.features import Features
from service.model.cluster.plugin_rules import ALL, KNOWN, arguments_rule, filtering, scoring
from service.model.cluster.policy_rules import POLICY, few
from service.model.cluster.scoring_rules import HARD_AFFINITY_WEIGHT, RATIO, ratio_needs_shape
from service.model.cluster.versions.known import NEWEST, VERSIONS
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core import names
from service.model.core.type_rules import declared
from service.model.core.validators import (
    INT32_MAX,
    Problems,
    Record,
    RecordCheck,
    Rule,
    TextCheck,
    anything,
    at,
    entries_of,
    items_of,
    key_at,
    list_of,
    map_of,
    number,
    one_of,
    record,
    text,
    whole_number,
)
from service.model.pods.affinity_rules import default_spread_constraints, system_has_no_list
from service.model.policies.priority_classes import PriorityClassEntry
from service.model.policies.quota_rules import MATCH_SCOPE, PRIORITY_MAX

_WEIGHT_MAX = 5_000
"""The maximum weight of a plugin."""
_WEIGHTS_MAX = 40_000
"""The maximum sum of all plugins' weights; 100 times this sum fits the engine's ranks
(`ranks.VETO`)."""
_EVICTIONS_A_MINUTE_MAX = 1_000_000
_NODES_A_SECOND_MAX = 1_000
_DAY_SECONDS = 86_400


def _args_fit_plugin(config: Record, path: str, problems: Problems) -> None:
    name, args = config.get("name"), config.get("args")
    if not isinstance(name, str) or name not in KNOWN or args is None:
        return
    arguments = KNOWN[name].plugin.arguments
    if arguments is not None:
        arguments_rule(arguments)(args, at(path, "args"), problems)
    elif args != {}:
        problems.add(at(path, "args"), f"{name} takes no arguments")


def _plugin(*others: str) -> Rule:
    """Return a rule for the name of a plugin that is known at the time of the check."""

    def rule(value: object, path: str, problems: Problems) -> None:
        one_of(*KNOWN, *others)(value, path, problems)

    return rule


def _extends(step: str, plugins: Callable[[], Container[str]]) -> TextCheck:
    return lambda name: None if name in plugins() else f"is a plugin that does not {step}"


def _distinct(items: object, field: str, path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items_of(items)):
        name = entries_of(item).get(field)
        if isinstance(name, str) and name in seen:
            problems.add(f"{path}[{index}].{field}", "is there already", name)
        seen.add(name if isinstance(name, str) else "")


def _distinct_list(item: Rule, field: str) -> Rule:
    """Return a rule for a list whose items have distinct values of a field."""
    items = list_of(item)

    def rule(value: object, path: str, problems: Problems) -> None:
        items(value, path, problems)
        _distinct(value, field, path, problems)

    return rule


def _plugin_set(*checks: TextCheck) -> Rule:
    plugin = _plugin()

    def name(value: object, path: str, problems: Problems) -> None:
        plugin(value, path, problems)
        if isinstance(value, str) and value in KNOWN:
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
        for plugin in items_of(entries_of(plugins.get(step)).get("enabled")):
            name, weight = entries_of(plugin).get("name"), entries_of(plugin).get("weight")
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
                "filter": _plugin_set(_extends("filter", filtering)),
                "score": _plugin_set(_extends("score", scoring)),
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
        "extenders": EXTENDERS,
    },
    required=("schedulerName",),
    also=(_weights_add_up,),
)


def _not_the_systems(name: str) -> str | None:
    if name.startswith("system-"):
        return "must not start with system-, which is for built-in classes"
    return names.dns_subdomain(name)


_PRIORITY = whole_number(-INT32_MAX - 1, PRIORITY_MAX)
_PRIORITY_CLASS = declared(PriorityClassEntry, {"value": _PRIORITY}, required=("value",))


def _priority_class(value: object, path: str, problems: Problems) -> None:
    """Check a priority class: a number, or an object with more fields."""
    (_PRIORITY_CLASS if isinstance(value, dict) else _PRIORITY)(value, path, problems)


def _one_global_default(config: Record, path: str, problems: Problems) -> None:
    first = None
    for name, entry in entries_of(config.get("priorityClasses")).items():
        if entries_of(entry).get("globalDefault") is not True:
            continue
        if first is not None:
            where = at(key_at(at(path, "priorityClasses"), name), "globalDefault")
            problems.add(where, only_one_default(first))
        first = first or name


def only_one_default(name: str) -> str:
    """Return Kubernetes' message that another priority class is already the default."""
    return f"PriorityClass {name} is already marked as default. Only one default can exist"


_NAMESPACES = list_of(text(names.dns_label), values=True)

LIMITED_RESOURCE: Mapping[str, Rule] = {
    "resource": text(names.label_key),
    "matchScopes": list_of(MATCH_SCOPE),
}
"""Validation rules for the fields of a limited resource."""


def version_name(value: object, path: str, problems: Problems) -> None:
    """Check that a value names a Kubernetes version that is known at the time of the check."""
    one_of(*VERSIONS)(value, path, problems)


def _plugins_of_version(config: Record, path: str, problems: Problems) -> None:
    """Check that profiles name only plugins that the cluster's version has."""
    version = VERSIONS.get(str(config.get("kubernetes") or NEWEST))
    if version is None:
        return
    lacking = {name for name, known in KNOWN.items() if not known.plugin.is_in(version)}
    for index, profile in enumerate(items_of(config.get("profiles"))):
        for where, name in _named_plugins(entries_of(profile)):
            if name in lacking:
                field = f"{at(path, 'profiles')}[{index}].{where}"
                problems.add(field, f"is no plugin of Kubernetes {version.name}", name)


def _named_plugins(profile: Record) -> Iterator[tuple[str, str]]:
    """Yield each field of a profile that names a plugin, with the name."""
    lists = {
        f"plugins.{step}.{state}": items_of(entries_of(plugins).get(state))
        for step, plugins in entries_of(profile.get("plugins")).items()
        for state in ("enabled", "disabled")
    }
    for where, plugins in {**lists, "pluginConfig": items_of(profile.get("pluginConfig"))}.items():
        for index, plugin in enumerate(plugins):
            name = entries_of(plugin).get("name")
            if isinstance(name, str):
                yield f"{where}[{index}].name", name


SETTINGS: Mapping[str, Rule] = {
    "kubernetes": version_name,
    "hardPodAffinityWeight": HARD_AFFINITY_WEIGHT,
    "daemonNamespaces": _NAMESPACES,
    "nodeTopologyKeys": list_of(text(names.topology_key)),
    "trustedNamespaces": _NAMESPACES,
    "defaultTopologySpreadConstraints": default_spread_constraints,
    "requestedToCapacityRatio": RATIO,
    "profiles": _distinct_list(_PROFILE, "schedulerName"),
    "deviceSearchSteps": whole_number(1, 1_000_000),
    "groupSearchSteps": whole_number(1, 100_000_000),
    "priorityClasses": map_of(_not_the_systems, _priority_class),
    "features": declared(Features, {}),
    "policies": few(_distinct_list(POLICY, "id")),
    "affinityViolationGraceSeconds": whole_number(0, _DAY_SECONDS),
    "evictionsPerMinute": whole_number(1, _EVICTIONS_A_MINUTE_MAX),
    "defaultNotReadyTolerationSeconds": whole_number(0, INT32_MAX),
    "defaultUnreachableTolerationSeconds": whole_number(0, INT32_MAX),
    "nodeMonitorGraceSeconds": whole_number(1, _DAY_SECONDS),
    "nodeEvictionRate": number(0, _NODES_A_SECOND_MAX),
    "secondaryNodeEvictionRate": number(0, _NODES_A_SECOND_MAX),
    "unhealthyZoneThreshold": number(0, 1),
    "largeZoneNodes": whole_number(0, INT32_MAX),
    "orphanGraceSeconds": whole_number(0, _DAY_SECONDS),
}
"""Validation rules for settings that the configuration's type does not restrict enough."""


def _args_fit_version(config: Record, path: str, problems: Problems) -> None:
    """Check that the configured Kubernetes version has all arguments that are given."""
    name = config.get("kubernetes") or NEWEST
    version = VERSIONS.get(name) if isinstance(name, str) else None
    if version is None:
        return
    for position, profile in enumerate(items_of(config.get("profiles"))):
        for index, plugin in enumerate(items_of(entries_of(profile).get("pluginConfig"))):
            where = f"{at(path, 'profiles')}[{position}].pluginConfig[{index}].args"
            _require_version(entries_of(plugin), version, where, problems)


def _require_version(
    plugin: Record, version: SchedulerVersion, path: str, problems: Problems
) -> None:
    name, args = plugin.get("name"), entries_of(plugin.get("args"))
    arguments = KNOWN[name].plugin.arguments if isinstance(name, str) and name in KNOWN else None
    for field, is_known in arguments.versioned.items() if arguments is not None else ():
        if args.get(field) is not None and not is_known(version):
            first = next(known.name for known in VERSIONS.values() if is_known(known))
            problems.add(at(path, field), f"needs the setting kubernetes to be {first} or newer")


CONFIG_CHECKS: Sequence[RecordCheck] = (
    ratio_needs_shape("scoringStrategy"),
    system_has_no_list("defaultTopologySpread", "defaultTopologySpreadConstraints"),
    _one_global_default,
    _plugins_of_version,
    _args_fit_version,
)
"""Checks across several settings."""
