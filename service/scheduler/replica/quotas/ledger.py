"""The ledger of resource quotas: their usage, updated change by change.

Creating or deleting a pod adds or removes its charge, and undoing a change applies the opposite
one, so the sums include tentative changes. Sums are recomputed lazily after changes of a quota or
the configuration or, for opportunity cost, of nodes.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from service.engine import Cluster
from service.model.pods.pod import Pod
from service.model.policies.quota import ResourceQuota
from service.model.registry.manifests import NodeManifest, PodManifest, QuotaManifest
from service.scheduler.replica.quotas.charges import Charges, Nanos
from service.scheduler.replica.stored_kinds import ConfigManifest, StoredManifest


class Usage(NamedTuple):
    """A quota with the used amount of each resource that it limits."""

    quota: ResourceQuota
    used: Nanos


class Account:
    """One quota with its usage; a sum is None until it is computed."""

    def __init__(self, quota: ResourceQuota) -> None:
        self.quota = quota
        self.used: Nanos | None = None
        """The sums of all charges except opportunity cost."""
        self.opportunity: Nanos | None = None

    def charge(self, charges: Charges, pod: Pod, sign: int) -> None:
        """Charge a pod (1), or refund its charge (-1)."""
        if self.used is not None:
            self.add(self.used, charges.amounts(self.quota, pod), sign)
        if self.opportunity is not None:
            self.add(self.opportunity, charges.opportunity(self.quota, pod), sign)

    def add(self, used: Nanos, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add amounts to the sums, or subtract them, for the resources that the quota limits."""
        if not amounts:
            return
        for resource in self.quota.hard:
            if resource in amounts:
                used[resource] = used.get(resource, 0) + sign * amounts[resource]


class _Residents:
    """The pods of one namespace, and the pods among them that exclude all others."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.exclusive: dict[str, Pod] = {}


class Ledger:
    """The quotas of one cluster. The caller must call `change` after each change of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.charges = Charges(cluster)
        self._cluster = cluster
        self.accounts: dict[str, dict[str, Account]] = {}
        """The quotas by namespace and name; while there is none, changes of pods need not be
        reported."""
        self._residents: dict[str, _Residents] | None = None
        """The pods by namespace, or None while no sum is needed or no quota exists."""

    # Changes

    def change(self, before: StoredManifest | None, after: StoredManifest | None) -> None:
        """Process the creation (no `before`), change, or deletion (no `after`) of an object."""
        match after or before:
            case PodManifest():
                self.move(_pod_of(before), _pod_of(after))
            case NodeManifest():
                if _shape_of(before) != _shape_of(after):
                    self._forget_costs()
            case QuotaManifest():
                self.swap_quota(before, after)
            case ConfigManifest():
                self._forget_all()
            case _:
                pass

    def move(self, before: Pod | None, after: Pod | None) -> None:
        """Charge for the creation, change, or deletion of a pod.

        A caller may also reserve an amount by a move, to be refunded by the opposite move.
        """
        if not self.accounts:
            return
        pod = after or before
        assert pod is not None
        for account in self.accounts.get(pod.namespace, {}).values():
            if before is not None:
                account.charge(self.charges, before, -1)
            if after is not None:
                account.charge(self.charges, after, 1)
        if self._residents is not None:
            self._settle(self._residents, pod, after)

    def _settle(self, residents: dict[str, _Residents], pod: Pod, after: Pod | None) -> None:
        here = residents.setdefault(pod.namespace, _Residents())
        here.pods.pop(pod.name, None)
        here.exclusive.pop(pod.name, None)
        if after is None:
            return
        here.pods[pod.name] = after
        if self.charges.exclusive_keys(after):
            here.exclusive[pod.name] = after

    def swap_quota(self, before: StoredManifest | None, after: StoredManifest | None) -> None:
        """Process a quota's creation, change, or deletion; sums are computed when needed."""
        if isinstance(before, QuotaManifest):
            accounts = self.accounts[before.namespace]
            del accounts[before.name]
            if not accounts:
                del self.accounts[before.namespace]
        if isinstance(after, QuotaManifest):
            self.accounts.setdefault(after.namespace, {})[after.name] = Account(after.quota)
        if not self.accounts:
            self._residents = None

    def _forget_all(self) -> None:
        """Drop all sums, since a new configuration may change scopes and costs."""
        self._residents = None
        self._forget_costs()
        for account in self._all():
            account.used = None

    def _forget_costs(self) -> None:
        self.charges.forget_costs()
        for account in self._all():
            account.opportunity = None

    def _all(self) -> Iterator[Account]:
        return (account for accounts in self.accounts.values() for account in accounts.values())

    # Usage

    def quotas(self, namespace: str) -> list[ResourceQuota]:
        """Return the quotas of a namespace, by name."""
        accounts = self.accounts.get(namespace)
        return [accounts[name].quota for name in sorted(accounts)] if accounts else []

    def usage(self, namespace: str, name: str) -> Usage:
        """Return the usage of a quota.

        Raises:
            KeyError: the quota does not exist.
        """
        account = self.accounts[namespace][name]
        used = self._used(account) | self._opportunity(account)
        return Usage(
            account.quota, {resource: used.get(resource, 0) for resource in account.quota.hard}
        )

    def _used(self, account: Account) -> Nanos:
        if account.used is None:
            account.used = {}
            for pod in self._in(account.quota.namespace).pods.values():
                account.add(account.used, self.charges.amounts(account.quota, pod))
        return account.used

    def _opportunity(self, account: Account) -> Nanos:
        if account.opportunity is None:
            account.opportunity = {}
            for pod in self._in(account.quota.namespace).exclusive.values():
                account.add(account.opportunity, self.charges.opportunity(account.quota, pod))
        return account.opportunity

    def _in(self, namespace: str) -> _Residents:
        if self._residents is None:
            self._residents = {}
            for pod in self._cluster.pods():
                self._settle(self._residents, pod, pod)
        return self._residents.get(namespace) or _Residents()


def _pod_of(manifest: StoredManifest | None) -> Pod | None:
    return manifest.pod if isinstance(manifest, PodManifest) else None


def _shape_of(manifest: StoredManifest | None) -> tuple[Mapping[str, str], object] | None:
    """Return the parts of a node that opportunity costs depend on, or None."""
    if not isinstance(manifest, NodeManifest):
        return None
    return manifest.node.labels, manifest.node.allocatable
