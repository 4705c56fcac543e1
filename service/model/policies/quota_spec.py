"""Wire types of resource quotas and their scopes."""

from service.model.core.primitives import Quantities, SelectorOperator, Strict, Value


class MatchScope(Strict, frozen=True, kw_only=True):
    """A quota scope that a pod must be in; PriorityClass compares with `values`."""

    scope_name: str
    """Name of the quota scope."""
    operator: SelectorOperator = "Exists"
    """How the scope is compared; only PriorityClass takes In and NotIn."""
    values: tuple[str, ...] = ()
    """Values to compare with; none for Exists and DoesNotExist."""


class QuotaScopeSelector(Strict, frozen=True, kw_only=True):
    """Scopes with operators; a pod has to be in all of them."""

    match_expressions: list[MatchScope] | None = None
    """The scopes; PriorityClass compares the pod's class with `values`."""


class ResourceQuotaSpec(Strict, frozen=True, kw_only=True):
    """How much the pods of a namespace may use, and which pods are meant."""

    hard: Quantities | None = None
    """Limits by resource: `pods`, `requests.…`, `limits.…`, `cpu`, `memory`, `opportunity.…`."""
    scopes: list[str] | None = None
    """Scopes that a pod has to be in to count; all of them."""
    scope_selector: QuotaScopeSelector | None = None
    """Scopes that are given with operators; a pod has to be in all of them, too."""


class ResourceQuotaStatus(Value, frozen=True, kw_only=True):
    """What is used of a quota, exactly as of the answer's revision; ignored where it is sent."""

    hard: Quantities | None = None
    """The limits, as in `spec`."""
    used: Quantities | None = None
    """What the pods that are covered are charged, by resource."""
