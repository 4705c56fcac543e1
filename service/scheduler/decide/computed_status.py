"""Showing objects with a `status` that is not stored but computed from the replica."""

import msgspec

from service.model.manifest import PodGroupManifest, QuotaManifest
from service.model.quota import format_amount
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.group_membership import status_of
from service.scheduler.protocol.answers import ComputedAnswer, ShownObject
from service.scheduler.protocol.intents import ReadComputed
from service.scheduler.replica.kinds import StoredManifest
from service.scheduler.replica.replica import Replica


def shown(replica: Replica, manifest: StoredManifest) -> bytes:
    """Render an object as clients see it: the `status` of quotas and pod groups is added here."""
    body = manifest.render()
    match manifest:
        case QuotaManifest():
            return _with_status(body, _usage(replica, manifest))
        case PodGroupManifest():
            return _with_status(body, msgspec.json.encode(status_of(replica, manifest)))
        case _:
            return body


def read_computed(context: DecisionContext, intent: ReadComputed) -> ComputedAnswer:
    """Return the objects that the intent asks for, in the order of namespace and name."""
    replica = context.replica
    return ComputedAnswer(
        revision=replica.revision,
        objects=[
            ShownObject(
                namespace=namespace,
                name=name,
                uid=stored.manifest.uid,
                resource_version=stored.revision,
                body=shown(replica, stored.manifest),
            )
            for namespace, name in sorted(replica.keys(intent.kind))
            if intent.namespace in (None, namespace) and intent.name in (None, name)
            if (stored := replica.get(intent.kind, namespace, name)) is not None
        ],
    )


def _usage(replica: Replica, manifest: QuotaManifest) -> bytes:
    quota, used = replica.ledger.usage(manifest.namespace, manifest.name)
    told = {resource: format_amount(resource, nanos) for resource, nanos in used.items()}
    return msgspec.json.encode({"hard": quota.sent, "used": told})


def _with_status(body: bytes, status: bytes) -> bytes:
    return b'%b,"status":%b}' % (body[:-1], status)
