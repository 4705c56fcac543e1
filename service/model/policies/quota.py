"""Resource quotas: their limits, the pods that they cover, and the charge of each pod.

Source: `pkg/quota/v1/evaluator/core/pods.go`, v1.35. All amounts are in nanos.
"""

from collections.abc import Mapping

import msgspec

from service.model.core.primitives import Quantities
from service.model.core.quantity import NANO, format_quantity
from service.model.core.resources import NATIVE_RESOURCES, OPPORTUNITY, is_extended
from service.model.pods.affinity import all_terms
from service.model.pods.pod import (
    Affinity,
    Container,
    PodResize,
    PodSpec,
)
from service.model.pods.requests import (
    BY_CONTAINER,
    Nanos,
    ResizeRules,
    exact_limits,
    exact_requests,
)
from service.model.policies.quota_spec import MatchScope

CROSS_NAMESPACE = "CrossNamespacePodAffinity"
COUNT_PODS = "count/pods"
"""The resource that counts all pods, including finished ones."""

_SHIPPED = {"CrossNamespaceAffinity": CROSS_NAMESPACE}
_SPECIFIED = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""The resources that, if limited by a quota, every container must request or limit explicitly."""
_BINARY = ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki"))


def shipped_scope(name: str) -> str:
    """Return the final Kubernetes name of a scope, possibly given by an earlier proposed name."""
    return _SHIPPED.get(name, name)


class ResourceQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A quota for pods in all of its scopes; `hard` is in nanos, and `sent` is as sent."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    hard: Mapping[str, int]
    sent: Quantities
    scopes: tuple[MatchScope, ...] = ()
    uid: str = ""

    @property
    def opportunity(self) -> frozenset[str]:
        """The opportunity cost resources that the quota limits."""
        return OPPORTUNITY & self.hard.keys()


class PodCharge(msgspec.Struct, frozen=True, kw_only=True):
    """The charge of one pod, based on its manifest, and the pod's properties that scopes read.

    `silent` maps each resource that some containers do not state to the names of these containers.
    """

    amounts: Nanos
    best_effort: bool
    bounded: bool
    """Whether the pod has an `activeDeadlineSeconds`."""
    priority_class: str
    names_namespaces: bool
    """Whether any term names or selects namespaces, even if only the pod's own."""
    empties_namespaces: bool
    """Whether any term has an empty list of namespaces."""
    silent: Mapping[str, tuple[str, ...]]

    def is_in(self, scope: MatchScope, *, empty_list_means_all: bool) -> bool:
        """Return whether the pod is in a scope."""
        match shipped_scope(scope.scope_name):
            case "BestEffort":
                return self.best_effort
            case "NotBestEffort":
                return not self.best_effort
            case "Terminating":
                return self.bounded
            case "NotTerminating":
                return not self.bounded
            case "PriorityClass":
                return _has_class(self.priority_class, scope)
            case _:
                return self.names_namespaces or (empty_list_means_all and self.empties_namespaces)


def pod_charge(
    spec: PodSpec, resize: PodResize | None = None, rules: ResizeRules = BY_CONTAINER
) -> PodCharge:
    """Compute the charge of a pod; an in-place resize in progress may raise it.

    Unlike kube-scheduler, kube-apiserver never reads the pod-level resources in the status.
    """
    rules = rules._replace(pod_level=False)
    requests, limits = exact_requests(spec, resize, rules), exact_limits(spec, resize, rules)
    terms = list(all_terms(spec.affinity or Affinity()))
    return PodCharge(
        amounts={"pods": NANO, COUNT_PODS: NANO} | _named(requests, limits),
        best_effort=not any(
            amounts.get(resource)
            for amounts in (requests, limits)
            for resource in ("cpu", "memory")
        ),
        bounded=spec.active_deadline_seconds is not None,
        priority_class=spec.priority_class_name,
        names_namespaces=any(t.namespaces or t.namespace_selector is not None for t in terms),
        empties_namespaces=any(t.namespaces == () for t in terms),
        silent=_silent(spec),
    )


def format_amount(resource: str, nanos: int) -> str:
    """Format an amount: bytes in the largest exact binary unit, others in whole units or millis."""
    whole, fraction = divmod(nanos, NANO)
    if not fraction and whole and _is_bytes(resource):
        for power, suffix in _BINARY:
            if whole % 1024**power == 0:
                return f"{whole // 1024**power}{suffix}"
    return format_quantity(nanos)


def _is_bytes(resource: str) -> bool:
    return "memory" in resource or "storage" in resource or "hugepages-" in resource


def _has_class(name: str, scope: MatchScope) -> bool:
    match scope.operator:
        case "Exists":
            return name != ""
        case "DoesNotExist":
            return name == ""
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values


def _named(requests: Nanos, limits: Nanos) -> Nanos:
    """Return requests and limits keyed by the resource names of quotas."""
    named: Nanos = {}
    for resource, nanos in requests.items():
        if resource in NATIVE_RESOURCES or resource.startswith("hugepages-"):
            named[resource] = nanos
        if resource in named or is_extended(resource):
            named[f"requests.{resource}"] = nanos
    return named | {f"limits.{r}": nanos for r, nanos in limits.items() if r in NATIVE_RESOURCES}


def _silent(spec: PodSpec) -> dict[str, tuple[str, ...]]:
    """Return the resources that containers must state but do not, nor does the pod as a whole."""
    pod_level = _own_charge(Container(resources=spec.resources))
    silent: dict[str, list[str]] = {}
    for container in (*spec.containers, *spec.init_containers):
        for resource in _SPECIFIED - _own_charge(container) - pod_level:
            silent.setdefault(resource, []).append(container.name)
    return {resource: tuple(sorted(names)) for resource, names in silent.items()}


def _own_charge(container: Container) -> frozenset[str]:
    resources = container.resources
    if resources is None:
        return frozenset()
    named = [f"limits.{resource}" for resource in resources.limits or ()]
    for resource in resources.requests or ():
        named += [resource, f"requests.{resource}"]
    return frozenset(named)
