"""ResourceQuota: what pods are charged, counted anew each time, and who may not come in."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil

from tests.reference import opportunity
from tests.reference.resources import Amounts, amounts, pod_amounts
from tests.reference.view import (
    NEWEST,
    PREFERRED,
    REQUIRED,
    Manifest,
    affinity_of,
    is_finished,
    name_of,
    namespace_of,
    spec_of,
)

CROSS_NAMESPACE = ("CrossNamespaceAffinity", "CrossNamespacePodAffinity")
SPECIFIED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
Scope = tuple[str, str, list[str]]
"""Name, operator and values."""


class Quotas:
    """The quotas and pods of a cluster at one moment."""

    def __init__(
        self,
        config: Manifest,
        quotas: Iterable[Manifest],
        pods: Iterable[Manifest],
        nodes: Iterable[Manifest] = (),
    ) -> None:
        self._config = config
        self._kubernetes = config.get("kubernetes", NEWEST)
        self._nodes = list(nodes)
        self._means_all = _empty_list_means_all(config)
        self._limited = config.get("limitedResources") or []
        self._quotas = sorted(quotas, key=lambda each: (namespace_of(each), name_of(each)))
        self._pods = list(pods)

    def used(self, quota: Manifest) -> Amounts:
        """What its pods are charged, of each resource that it limits."""
        used = dict.fromkeys(hard(quota), Fraction())
        for pod in self._pods:
            for resource, amount in self._charged(quota, pod).items():
                if resource in used:
                    used[resource] += amount
        return used

    def excess(self, pod: Manifest) -> list[str]:
        """Limits that are exceeded, of those that a stored pod adds to.

        Of opportunity cost what counts is the cost of a pod that is still to be placed: it was
        placed, if it was, after it came in.
        """
        asked = _unplaced(pod)
        return [
            f"{name_of(quota)}: {resource} {used[resource]} of {limit}"
            for quota in self._covering(pod)
            for used in (self._used_with(quota, pod, asked),)
            for resource, limit in hard(quota).items()
            if used[resource] > limit and self._charged(quota, asked).get(resource)
        ]

    def _used_with(self, quota: Manifest, pod: Manifest, asked: Manifest) -> Amounts:
        used = self.used(quota)
        own, as_asked = self._charged(quota, pod), self._charged(quota, asked)
        return {name: used[name] - own.get(name, 0) + as_asked.get(name, 0) for name in used}

    def refusal(self, pod: Manifest) -> str | None:
        """Why a new pod may not come in, in Kubernetes' words."""
        covering = self._covering(pod)
        reasons = (
            *(_unspecified(quota, pod) for quota in covering),
            *(self._uncovered(each, pod, covering) for each in self._limited),
            *(self._exceeded(quota, pod) for quota in covering),
        )
        return next(filter(None, reasons), None)

    def _covering(self, pod: Manifest) -> list[Manifest]:
        return [quota for quota in self._quotas if self._covers(quota, pod)]

    def _covers(self, quota: Manifest, pod: Manifest) -> bool:
        same = namespace_of(quota) == namespace_of(pod)
        return same and all(self._is_in(scope, pod) for scope in scopes(spec_of(quota)))

    def _charged(self, quota: Manifest, pod: Manifest) -> Amounts:
        if not self._covers(quota, pod):
            return {}
        count = {"count/pods": Fraction(1)}
        if is_finished(pod):
            return count
        costs = {}
        if any(each.startswith(opportunity.PREFIX) for each in hard(quota)):
            costs = opportunity.cost(self._config, self._nodes, pod)
        return charge(pod, self._kubernetes) | count | costs

    def _is_in(self, scope: Scope, pod: Manifest) -> bool:
        name, operator, values = scope
        spec = spec_of(pod)
        match name:
            case "BestEffort" | "NotBestEffort":
                needs = any(
                    charge(pod, self._kubernetes).get(f"{side}.{resource}")
                    for side in ("requests", "limits")
                    for resource in ("cpu", "memory")
                )
                return needs == (name == "NotBestEffort")
            case "Terminating" | "NotTerminating":
                bounded = spec.get("activeDeadlineSeconds") is not None
                return bounded == (name == "Terminating")
            case "PriorityClass":
                return _has(spec.get("priorityClassName") or "", operator, values)
            case _:
                return any(self._crosses(term) for term in all_terms(pod))

    def _crosses(self, term: Manifest) -> bool:
        listed = term.get("namespaces")
        return bool(
            listed
            or term.get("namespaceSelector") is not None
            or (listed == [] and self._means_all)
        )

    def _exceeded(self, quota: Manifest, pod: Manifest) -> str | None:
        asked, used, limits = self._charged(quota, pod), self.used(quota), hard(quota)
        over = sorted(
            each for each in limits if asked.get(each) and used[each] + asked[each] > limits[each]
        )
        if not over:
            return None
        told = (
            ",".join(f"{each}={written(each, amounts[each])}" for each in over)
            for amounts in (asked, used, limits)
        )
        return "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(
            name_of(quota), *told
        )

    def _uncovered(self, limited: Manifest, pod: Manifest, covering: list[Manifest]) -> str | None:
        wanted = [_scope(each) for each in limited.get("matchScopes") or []]
        own = [scope for scope in wanted if self._is_in(scope, pod)]
        resource = limited["resource"]
        if wanted and not own:
            return None
        if resource == "pods" and own:
            named = {each[0] for quota in covering for each in scopes(spec_of(quota))}
            bare = " ".join(
                f"{{{name} {operator} [{' '.join(values)}]}}"
                for name, operator, values in own
                if name not in named
            )
            return f"insufficient quota to match these scopes: [{bare}]" if bare else None
        if not charge(pod).get(resource) or any(resource in hard(each) for each in covering):
            return None
        return f"insufficient quota to consume: {resource}"


def _unplaced(pod: Manifest) -> Manifest:
    return pod | {"spec": {k: v for k, v in spec_of(pod).items() if k != "nodeName"}}


def hard(quota: Manifest) -> Amounts:
    return amounts(spec_of(quota).get("hard"))


def scopes(spec: Manifest) -> list[Scope]:
    named = [{"scopeName": name} for name in spec.get("scopes") or []]
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return [_scope(each) for each in (*named, *selected)]


def _scope(each: Manifest) -> Scope:
    name = each["scopeName"]
    shipped = CROSS_NAMESPACE[1] if name in CROSS_NAMESPACE else name
    return shipped, each.get("operator") or "Exists", each.get("values") or []


def charge(pod: Manifest, kubernetes: str) -> Amounts:
    """Under the names that quotas have; requests of cpu, memory and storage under two."""
    requested = pod_amounts(pod, placed=True, missing={}, kubernetes=kubernetes, quota=True)
    limits: Amounts = {}
    for container in spec_of(pod).get("containers") or []:
        own = amounts((container.get("resources") or {}).get("limits"))
        limits = {each: limits.get(each, Fraction()) + own.get(each, 0) for each in limits | own}
    return {
        "pods": Fraction(1),
        **requested,
        **{f"requests.{each}": amount for each, amount in requested.items()},
        **{f"limits.{each}": amount for each, amount in limits.items()},
    }


def all_terms(pod: Manifest) -> Iterator[Manifest]:
    """Yield the terms of all six lists of pod affinity and anti-affinity."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = affinity_of(pod, kind)
        for variant in REQUIRED:
            yield from affinity.get(variant) or []
        for weighted in affinity.get(PREFERRED) or []:
            yield weighted["podAffinityTerm"]


def written(resource: str, amount: Fraction) -> str:
    """Write an amount as Kubernetes does; of bytes only whole numbers of the largest unit are told apart."""
    if amount.denominator != 1:
        return f"{ceil(amount * 1000)}m"
    whole = int(amount)
    if whole and any(each in resource for each in ("memory", "storage", "hugepages-")):
        for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if whole % 1024**power == 0:
                return f"{whole // 1024**power}{suffix}"
    return str(whole)


def _unspecified(quota: Manifest, pod: Manifest) -> str | None:
    """Containers have to say how much they need of what a quota limits."""
    silent: dict[str, list[str]] = {}
    for container in spec_of(pod).get("containers") or []:
        resources = container.get("resources") or {}
        said = {f"limits.{each}" for each in resources.get("limits") or {}}
        for each in resources.get("requests") or {}:
            said |= {each, f"requests.{each}"}
        for each in set(SPECIFIED) & hard(quota).keys() - said:
            silent.setdefault(each, []).append(container["name"])
    told = "; ".join(f"{each} for: {','.join(sorted(silent[each]))}" for each in sorted(silent))
    return f"failed quota: {name_of(quota)}: must specify {told}" if silent else None


def _has(name: str, operator: str, values: list[str]) -> bool:
    match operator:
        case "Exists":
            return name != ""
        case "DoesNotExist":
            return name == ""
        case "In":
            return name in values
    return name not in values


def _empty_list_means_all(config: Manifest) -> bool:
    if config.get("emptyNamespaceList") is None:
        return config.get("semantics") == "DesignDocuments"
    return bool(config["emptyNamespaceList"] == "AllNamespaces")
