"""Validation rules of resource quotas and priority classes.

Source: `ValidateResourceQuotaSpec` and `ValidatePriorityClass`, v1.35. The `opportunity.…`
resources are specific to Moorage.
"""

from collections.abc import Iterable, Mapping

from service.model.core import names
from service.model.core.kind_rules import KindRules, kind_rules, metadata_rule
from service.model.core.quantity import NANO
from service.model.core.resources import (
    COMPUTE,
    EPHEMERAL,
    HUGE_PAGES,
    OPPORTUNITY,
    is_extended,
    nanos_or_none,
    quantity,
)
from service.model.core.type_rules import declared
from service.model.core.validators import (
    INT32_MAX,
    Problems,
    Record,
    anything,
    at,
    entries_of,
    items_of,
    key_at,
    list_of,
    nullable,
    one_of,
    text,
    whole_number,
)
from service.model.policies.priority_classes import PriorityClassFields
from service.model.policies.quota_spec import MatchScope, QuotaScopeSelector, ResourceQuotaSpec

SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PRIORITY_MAX = 1_000_000_000
"""The highest priority of classes that are not built in."""
SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "PriorityClass",
    "CrossNamespaceAffinity",
    "CrossNamespacePodAffinity",
)
"""The names of quota scopes; the last two mean the same, and the last one is shown."""

_COUNTED = frozenset(
    {
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
    }
)
_STANDARD = _COUNTED | COMPUTE | EPHEMERAL | OPPORTUNITY | {"requests.storage"}
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def quota_resource(name: str) -> str | None:
    """Check the name of a resource that a quota limits."""
    wrong = names.label_key(name)
    if wrong is not None or "/" in name:
        return wrong
    if name in _STANDARD or name.startswith(HUGE_PAGES):
        return None
    return "must be a standard resource for quota, or have a domain: requests.example.com/name"


def _is_integer(resource: str) -> bool:
    counted = resource in _COUNTED or resource.startswith("count/")
    extended = is_extended(resource.removeprefix("requests."))
    return counted or extended or resource == "opportunity.nodes"


def _hard(value: object, path: str, problems: Problems) -> None:
    """Check a map from resources to quantities."""
    if not isinstance(value, dict):
        problems.add(path, "must be an object", value)
        return
    for resource, sent in value.items():
        where = key_at(path, resource)
        wrong = quota_resource(resource)
        if wrong is not None:
            problems.add(where, f"the resource {wrong}", resource)
        quantity(sent, where, problems)
        if _is_integer(resource) and (nanos_or_none(sent) or 0) % NANO:
            problems.add(where, "must be an integer", sent)


def scopes_of(spec: Record) -> Iterable[tuple[str, str]]:
    """Yield a spec's scopes, each with its path below `spec`."""
    for index, scope in enumerate(items_of(spec.get("scopes"))):
        if isinstance(scope, str):
            yield f"scopes[{index}]", scope
    selector = entries_of(spec.get("scopeSelector"))
    for index, expression in enumerate(items_of(selector.get("matchExpressions"))):
        scope = entries_of(expression).get("scopeName")
        if isinstance(scope, str):
            yield f"scopeSelector.matchExpressions[{index}].scopeName", scope


def _scopes_fit(spec: Record, path: str, problems: Problems) -> None:
    """Check that scopes do not contradict each other and apply to the limited resources."""
    scopes = list(scopes_of(spec))
    present = {scope for _, scope in scopes}
    for one, other in _CONFLICTS:
        if {one, other} <= present:
            problems.add(at(path, "scopes"), f"conflicting scopes: {one} and {other}")
    resources = entries_of(spec.get("hard"))
    for where, scope in scopes:
        fitting = {"pods", *OPPORTUNITY} | (set() if scope == "BestEffort" else COMPUTE)
        for resource in resources:
            if scope in SCOPES and resource not in fitting:
                problems.add(at(path, where), f"unsupported scope applied to {resource}", scope)


def _scope_fits_operator(scope: Record, path: str, problems: Problems) -> None:
    operator, values = scope.get("operator") or "Exists", items_of(scope.get("values"))
    if scope.get("scopeName") != "PriorityClass" and operator != "Exists":
        problems.add(at(path, "operator"), "must be Exists for this scope", operator)
    elif operator in ("In", "NotIn") and not values:
        problems.add(at(path, "values"), "must be specified when operator is In or NotIn")
    elif operator in ("Exists", "DoesNotExist") and values:
        problems.add(at(path, "values"), "may not be specified when operator is Exists")


MATCH_SCOPE = declared(
    MatchScope,
    {"scopeName": one_of(*SCOPES), "values": list_of(text(names.dns_subdomain), values=True)},
    also=(_scope_fits_operator,),
)
"""The rule for one scope in a quota's `scopeSelector` or in a limited resource."""
_SCOPE_SELECTOR = declared(QuotaScopeSelector, {"matchExpressions": list_of(MATCH_SCOPE)})
_QUOTA_SPEC = declared(
    ResourceQuotaSpec,
    {"hard": _hard, "scopes": list_of(one_of(*SCOPES)), "scopeSelector": _SCOPE_SELECTOR},
    also=(_scopes_fit,),
)


def _class_has_value(fields: Record, path: str, problems: Problems) -> None:
    """Check a priority class's value: fixed for built-in classes, limited for all others."""
    name, value = entries_of(fields.get("metadata")).get("name"), fields.get("value")
    where = at(path, "value")
    if not isinstance(name, str):
        return
    if name in SYSTEM_PRIORITY_CLASSES:
        if value != SYSTEM_PRIORITY_CLASSES[name]:
            problems.add(where, f"must be {SYSTEM_PRIORITY_CLASSES[name]} for this class", value)
        return
    if name.startswith("system-"):
        problems.add("metadata.name", "must not start with system-, but for built-in classes", name)
    whole_number(-INT32_MAX - 1, PRIORITY_MAX)(value, where, problems)


QUOTA_RULES = kind_rules(
    "ResourceQuota", names.dns_subdomain, namespaced=True, spec=nullable(_QUOTA_SPEC)
)
PRIORITY_CLASS_RULES = KindRules(
    namespaced=False,
    envelope=declared(
        PriorityClassFields,
        {
            "apiVersion": one_of("scheduling.k8s.io/v1"),
            "kind": one_of("PriorityClass"),
            "metadata": metadata_rule(names.dns_subdomain, namespaced=False),
            "value": anything,
        },
        required=("metadata", "value"),
        also=(_class_has_value,),
    ),
    spec=anything,
)
