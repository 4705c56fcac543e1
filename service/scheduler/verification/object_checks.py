"""Checks the objects of one cluster as stored in a database."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from service.engine.rules.violations import Inspection
from service.model.log.commit import ObjectRow
from service.model.policies.quota import format_amount
from service.model.registry.manifests import PodManifest, QuotaManifest, TemplateCache
from service.model.verification_findings import FINDINGS_MAX, Check, Finding
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import StoredManifest, load_manifest
from service.scheduler.verification.claim_conflicts import torn_bindings
from service.scheduler.verification.overcommitted_nodes import overfull_nodes

Wrong = tuple[str, str]
"""The subject of a problem, and its description."""


class LoadedObjects:
    """A replica built from a cluster's rows, with a list of the invalid rows."""

    def __init__(self, revision: int) -> None:
        """Create an empty replica; `revision` is the head's, and no object may be newer."""
        self._revision = revision
        self._templates = TemplateCache()
        self._replica = Replica(self._templates)
        self._mistaken: list[Wrong] = []
        self.count = 0
        """The number of objects, including unreadable ones."""

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Add objects in key order, ignoring unreadable ones."""
        self.count += len(rows)
        self._replica.load([row for row in rows if self._is_readable(row)])

    def _is_readable(self, row: ObjectRow) -> bool:
        try:
            manifest = load_manifest(row.kind, row.body, self._templates)
        except Exception as raised:  # noqa: BLE001 - damaged bytes may be anything
            error = raised.__cause__ or raised
            self._note(row, f"It cannot be read: {type(error).__name__}: {error}")
            return False
        for difference in _differences(row, manifest, self._revision):
            self._note(row, difference)
        return True

    def _note(self, row: ObjectRow, message: str) -> None:
        if len(self._mistaken) < FINDINGS_MAX:
            name = f"{row.namespace}/{row.name}" if row.namespace else row.name
            self._mistaken.append((f"{row.kind} {name}", message))

    def findings(self, check: Check) -> list[Finding]:
        """Return the findings of one of the checks in `service.model.verification_findings.STATE`."""
        wrong = _CHECKS[check](self)
        return [
            Finding(check=check, subject=subject, message=message)
            for subject, message in islice(wrong, FINDINGS_MAX)
        ]

    def mistaken(self) -> Iterator[Wrong]:
        """Yield rows whose columns differ from their objects."""
        yield from self._mistaken

    def overfull(self) -> Iterator[Wrong]:
        """Yield nodes with more pods than they have room for."""
        yield from overfull_nodes(self._replica)

    def broken_rules(self) -> Iterator[Wrong]:
        """Yield placed pods that break a required rule, like `moorage violations`."""
        inspection = Inspection(self._replica.cluster)
        for pod_class in inspection.suspects(self._replica.cluster.placed_classes()):
            for violation in inspection.of(pod_class):
                pod, rule = violation.pod, violation.breach.rule
                breach = f"On node {pod.node_name} it breaks {rule.path} ({rule.plugin})"
                yield f"Pod {pod.namespace}/{pod.name}", f"{breach}: {violation.breach.reason}."

    def exceeded_quotas(self) -> Iterator[Wrong]:
        """Yield quotas that are exceeded by their usage."""
        for stored in self._replica.objects(QuotaManifest.kind):
            namespace, name = stored.manifest.namespace, stored.manifest.name
            quota, used = self._replica.ledger.usage(namespace, name)
            for resource in sorted(quota.hard):
                if used[resource] > quota.hard[resource]:
                    amounts = (used[resource], quota.hard[resource])
                    used_amount, allowed = (format_amount(resource, amount) for amount in amounts)
                    subject = f"ResourceQuota {namespace}/{name}"
                    yield (
                        subject,
                        f"Its pods use {used_amount} of {resource}, of which {allowed} are allowed.",
                    )

    def torn_bindings(self) -> Iterator[Wrong]:
        """Yield contradictory claims and volumes, and doubly allocated devices."""
        yield from torn_bindings(self._replica.cluster)


_CHECKS: Mapping[Check, Callable[[LoadedObjects], Iterator[Wrong]]] = {
    Check.COPIES: LoadedObjects.mistaken,
    Check.CAPACITY: LoadedObjects.overfull,
    Check.RULES: LoadedObjects.broken_rules,
    Check.QUOTAS: LoadedObjects.exceeded_quotas,
    Check.BINDINGS: LoadedObjects.torn_bindings,
}


def _differences(row: ObjectRow, manifest: StoredManifest, revision: int) -> Iterator[str]:
    """Yield the differences between a row's columns and the object itself."""
    if (manifest.namespace, manifest.name) != (row.namespace, row.name):
        yield f"Its manifest is that of {manifest.namespace or '-'}/{manifest.name}."
    if manifest.uid != row.uid:
        yield f"The row has the uid {row.uid or '-'}, the manifest {manifest.uid or '-'}."
    node_name = manifest.pod.node_name if isinstance(manifest, PodManifest) else None
    if node_name != row.node_name:
        yield f"The row has the node {row.node_name or '-'}, the manifest {node_name or '-'}."
    if row.revision > revision:
        yield f"It is of revision {row.revision}, and the head is at {revision}."
