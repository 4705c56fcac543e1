"""Reads the bodies of nodes' reports: names of nodes, or leases in the form of Kubernetes."""

from collections.abc import Iterator, Mapping

from service.model.core import names
from service.model.core.strict_json import decode_strict, too_many
from service.model.core.validators import (
    Problems,
    anything,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
)

NAMESPACE = "kube-node-lease"
"""The namespace in which Kubernetes keeps the leases of nodes."""

_HEAD = {"apiVersion": one_of("coordination.k8s.io/v1"), "kind": one_of("Lease")}
_NAME = text(names.dns_subdomain)
_METADATA = record({"name": _NAME, "namespace": one_of(NAMESPACE)}, closed=False)
_NAMED = record({"name": _NAME, "namespace": one_of(NAMESPACE)}, required=("name",), closed=False)
_LEASE = record({**_HEAD, "metadata": _METADATA, "spec": anything}, closed=False)
_REPORT = record(
    {
        "apiVersion": one_of("coordination.k8s.io/v1"),
        "kind": one_of("LeaseList"),
        "metadata": anything,
        "nodes": list_of(_NAME),
        "items": list_of(
            record(
                {**_HEAD, "metadata": _NAMED, "spec": anything},
                required=("metadata",),
                closed=False,
            )
        ),
    }
)


def check_lease(body: bytes, name: str) -> None:
    """Check the lease that a node sends; nothing is read of it, for the time is the database's.

    Raises:
        MalformedJSON: the body is no JSON that Moorage reads.
        InvalidManifest: it is not a lease, or that of another node.
    """
    if not body.strip():
        return
    fields, problems = decode_strict(body), Problems()
    _LEASE(fields, "", problems)
    sent = entries_of(entries_of(fields).get("metadata")).get("name")
    if isinstance(sent, str) and sent != name:
        problems.add("metadata.name", f"must be {name}, as in the address", sent)
    problems.raise_any()


def parse_report(body: bytes, items_max: int) -> list[str]:
    """Return the names of the nodes that report.

    Raises:
        MalformedJSON: the body is no JSON that Moorage reads.
        InvalidManifest: a field is wrong, unknown or missing, or there are too many nodes.
    """
    fields, problems = decode_strict(body), Problems()
    _REPORT(fields, "", problems)
    report = entries_of(fields)
    present = [name for name in ("nodes", "items") if report.get(name) is not None]
    if len(present) != 1:
        problems.add("", "must have exactly one of nodes, items")
    problems.raise_any()
    found = list(_names(report))
    if len(found) > items_max:
        raise too_many(items_max)
    return found


def _names(report: Mapping[str, object]) -> Iterator[str]:
    yield from map(str, items_of(report.get("nodes")))
    for lease in items_of(report.get("items")):
        yield str(entries_of(entries_of(lease).get("metadata"))["name"])
