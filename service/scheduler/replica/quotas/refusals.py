"""Checks whether quotas have room for a pod, with refusals in Kubernetes' wording.

Source: `CheckRequest` of the ResourceQuota admission controller, v1.35. Only added amounts are
checked, so a pod can always shrink.
"""

from collections.abc import Iterable, Mapping, Sequence

from service.model.cluster.cluster_config import ClusterConfig, LimitedResource
from service.model.pods.pod import Pod
from service.model.policies.quota import ResourceQuota, format_amount, shipped_scope
from service.model.policies.quota_spec import MatchScope
from service.scheduler.replica.quotas.charges import Nanos
from service.scheduler.replica.quotas.ledger import Ledger

_PODS = "pods"


def refusal(
    ledger: Ledger, config: ClusterConfig, after: Pod, before: Pod | None = None
) -> str | None:
    """Return why a pod may not be created, or changed from `before` to `after`, or None."""
    quotas, limited = ledger.quotas(after.namespace), config.limited_resources
    if after.finished or not (quotas or limited):
        return None
    request = QuotaRequest(ledger, config, after, before)
    if request.nothing_new(quotas):
        return None
    covering = [quota for quota in quotas if ledger.charges.covers(quota, after)]
    return (
        _first(request.unspecified(quota) for quota in covering)
        or _first(request.uncovered(limited_resource, covering) for limited_resource in limited)
        or _first(request.exceeded(quota) for quota in covering)
    )


def _first(reasons: Iterable[str | None]) -> str | None:
    return next(filter(None, reasons), None)


class QuotaRequest:
    """A pod to be created or changed, as quotas see it."""

    def __init__(
        self, ledger: Ledger, config: ClusterConfig, after: Pod, before: Pod | None
    ) -> None:
        self._ledger = ledger
        self._charges = ledger.charges
        self._config = config
        self._after = after
        self._before = before if before is not None and not before.finished else None

    def nothing_new(self, quotas: Sequence[ResourceQuota]) -> bool:
        """Return whether the change adds nothing to the pod's charges."""
        if self._before is None:
            return False
        same = self._charges.charge(self._before) == self._charges.charge(self._after)
        return same and not any(map(self.added, quotas))

    def unspecified(self, quota: ResourceQuota) -> str | None:
        """Return the refusal if containers omit a resource that the quota limits, or None."""
        silent = self._charges.charge(self._after).silent
        missing = sorted(quota.hard.keys() & silent.keys())
        if not missing:
            return None
        missing_by_resource = "; ".join(
            f"{resource} for: {','.join(silent[resource])}" for resource in missing
        )
        return f"failed quota: {quota.name}: must specify {missing_by_resource}"

    def uncovered(self, limited: LimitedResource, covering: Sequence[ResourceQuota]) -> str | None:
        """Return the refusal if no quota covers a resource limited by configuration, or None."""
        scopes = [scope for scope in limited.match_scopes if self._is_in(scope)]
        if limited.match_scopes and not scopes:
            return None
        if limited.resource == _PODS and scopes:
            bare = [scope for scope in scopes if not _names_scope(covering, scope)]
            scope_list = " ".join(map(_scope_text, bare))
            return f"insufficient quota to match these scopes: [{scope_list}]" if bare else None
        used = self._charges.charge(self._after).amounts.get(limited.resource)
        if not used or any(limited.resource in quota.hard for quota in covering):
            return None
        return f"insufficient quota to consume: {limited.resource}"

    def exceeded(self, quota: ResourceQuota) -> str | None:
        """Return the refusal if the pod would exceed the quota, or None."""
        added = self.added(quota)
        if not added:
            return None
        used = self._ledger.usage(quota.namespace, quota.name).used
        over = [name for name in sorted(added) if used[name] + added[name] > quota.hard[name]]
        if not over:
            return None
        requested, taken, limits = (
            _format_amounts(over, amounts) for amounts in (added, used, quota.hard)
        )
        return (
            f"exceeded quota: {quota.name}, requested: {requested}, used: {taken}, "
            f"limited: {limits}"
        )

    def added(self, quota: ResourceQuota) -> Nanos:
        """Return the growth of the pod's charge for each resource that the quota limits."""
        before = self._charged(quota, self._before) if self._before is not None else {}
        after = self._charged(quota, self._after)
        grown = {name: after.get(name, 0) - before.get(name, 0) for name in quota.hard}
        return {name: nanos for name, nanos in grown.items() if nanos > 0}

    def _charged(self, quota: ResourceQuota, pod: Pod) -> Mapping[str, int]:
        amounts = self._charges.amounts(quota, pod)
        costs = self._charges.opportunity(quota, pod)
        return {**amounts, **costs} if costs else amounts

    def _is_in(self, scope: MatchScope) -> bool:
        means_all = self._config.empty_namespaces_mean_all
        return self._charges.charge(self._after).is_in(scope, empty_list_means_all=means_all)


def _names_scope(quotas: Sequence[ResourceQuota], scope: MatchScope) -> bool:
    shipped_name = shipped_scope(scope.scope_name)
    return any(
        quota_scope.scope_name == shipped_name for quota in quotas for quota_scope in quota.scopes
    )


def _scope_text(scope: MatchScope) -> str:
    return f"{{{shipped_scope(scope.scope_name)} {scope.operator} [{' '.join(scope.values)}]}}"


def _format_amounts(resources: Sequence[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={format_amount(name, amounts[name])}" for name in resources)
