"""Showing quotas with what is used of them."""

import msgspec

from service.model.manifest import QuotaManifest
from service.model.quota import format_amount
from service.scheduler.answers import QuotasAnswer, ShownQuota
from service.scheduler.desk import Desk
from service.scheduler.intents import ReadQuotas
from service.scheduler.kinds import StoredManifest
from service.scheduler.replica import Replica


def shown(replica: Replica, manifest: StoredManifest) -> bytes:
    """An object as clients see it; a quota has its `status` only there."""
    body = manifest.render()
    if not isinstance(manifest, QuotaManifest):
        return body
    quota, used = replica.ledger.usage(manifest.namespace, manifest.name)
    told = {resource: format_amount(resource, nanos) for resource, nanos in used.items()}
    status = msgspec.json.encode({"hard": quota.sent, "used": told})
    return b'%b,"status":%b}' % (body[:-1], status)


def read_quotas(desk: Desk, intent: ReadQuotas) -> QuotasAnswer:
    """The quotas that are asked for, by namespace and name."""
    replica = desk.replica
    return QuotasAnswer(
        revision=replica.revision,
        quotas=[
            ShownQuota(
                namespace=namespace,
                name=name,
                uid=stored.manifest.uid,
                resource_version=stored.revision,
                body=shown(replica, stored.manifest),
            )
            for namespace, name in sorted(replica.keys("ResourceQuota"))
            if intent.namespace in (None, namespace) and intent.name in (None, name)
            if (stored := replica.get("ResourceQuota", namespace, name)) is not None
        ],
    )
