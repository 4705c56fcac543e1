"""Renders objects whose `status` is computed from the replica instead of stored."""

import msgspec

from service.model.policies.quota import format_amount
from service.model.policies.quota_spec import ResourceQuotaStatus
from service.model.registry.manifests import DeclaredManifest, PodGroupManifest, QuotaManifest
from service.model.workloads.disruption_budget import PodDisruptionBudgetBody
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.disruption_budgets import status_of_budget
from service.scheduler.decide.groups.group_membership import status_of
from service.scheduler.protocol.answers import ComputedAnswer, ShownObject
from service.scheduler.protocol.intents import ReadComputed
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import StoredManifest


def render_for_clients(replica: Replica, manifest: StoredManifest) -> bytes:
    """Render an object as clients see it, with the computed `status` of quotas, groups, and budgets."""
    body = manifest.render()
    match manifest:
        case QuotaManifest():
            return _with_status(body, _usage(replica, manifest))
        case PodGroupManifest() if not manifest.has_own_status:
            return _with_status(body, msgspec.json.encode(status_of(replica, manifest)))
        case DeclaredManifest():
            return _with_budget_status(replica, manifest, body)
        case _:
            return body


def _with_budget_status(replica: Replica, manifest: DeclaredManifest, body: bytes) -> bytes:
    """Return a disruption budget with its current allowance; return other objects unchanged."""
    budgets = replica.cluster.objects.having(PodDisruptionBudgetBody)
    budget = budgets.get((manifest.namespace, manifest.name))
    if budget is None or budget.kind != manifest.kind:
        return body
    computed = msgspec.to_builtins(status_of_budget(replica.cluster, budget))
    zeros = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    fields = msgspec.json.decode(body)
    sent = fields.get("status") or {}
    return msgspec.json.encode(fields | {"status": sent | zeros | computed})


def read_computed(context: DecisionContext, intent: ReadComputed) -> ComputedAnswer:
    """Return the requested objects, ordered by namespace and name."""
    replica = context.replica
    return ComputedAnswer(
        revision=replica.revision,
        objects=[
            ShownObject(
                namespace=namespace,
                name=name,
                uid=stored.manifest.uid,
                resource_version=stored.revision,
                body=render_for_clients(replica, stored.manifest),
            )
            for namespace, name in sorted(replica.keys(intent.kind))
            if intent.namespace in (None, namespace) and intent.name in (None, name)
            if (stored := replica.get(intent.kind, namespace, name)) is not None
        ],
    )


def _usage(replica: Replica, manifest: QuotaManifest) -> bytes:
    quota, used = replica.ledger.usage(manifest.namespace, manifest.name)
    usage = {resource: format_amount(resource, nanos) for resource, nanos in used.items()}
    return msgspec.json.encode(ResourceQuotaStatus(hard=quota.sent, used=usage))


def _with_status(body: bytes, status: bytes) -> bytes:
    return b'%b,"status":%b}' % (body[:-1], status)
