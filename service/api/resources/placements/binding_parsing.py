"""Parse the bodies of bindings, confirmations, and evictions: pod, node, and preconditions.

No field is ignored: with a misspelled `force`, or a pod name that differs from the path's, the
request would do something that the client did not intend.
"""

from collections.abc import Mapping

from service.model.core import names
from service.model.core.quantity import INT64_MAX
from service.model.core.strict_json import decode_strict
from service.model.core.validators import (
    Problems,
    Rule,
    anything,
    boolean,
    entries_of,
    one_of,
    record,
    text,
    whole_number,
)
from service.scheduler.protocol.intents import BindPod, ConfirmBinding, EvictPod

_META = {"name": text(), "namespace": text(), "uid": text()}
_METADATA = record(_META, closed=False)
_BINDING = record(
    {
        "apiVersion": one_of("v1"),
        "kind": one_of("Binding"),
        "metadata": _METADATA,
        "target": record(
            {
                "apiVersion": one_of("v1"),
                "kind": one_of("Node"),
                "name": text(names.dns_subdomain),
                **dict.fromkeys(("namespace", "uid", "resourceVersion", "fieldPath"), anything),
            },
            required=("name",),
        ),
        "force": boolean,
    },
    required=("target",),
)
_EVICTION = record(
    {
        "apiVersion": one_of("policy/v1", "policy/v1beta1"),
        "kind": one_of("Eviction"),
        "metadata": _METADATA,
        "deleteOptions": record(
            {"preconditions": record({"uid": text(), "resourceVersion": text()})}, closed=False
        ),
    }
)


_CONFIRMATION = record(
    {
        "uid": text(),
        "revision": whole_number(1, INT64_MAX),
        "nodeName": text(names.dns_subdomain),
    },
    required=("uid", "revision"),
)


def parse_binding(body: bytes, namespace: str, name: str) -> BindPod:
    """Return the intent of a `bindPod` body; the path names the pod.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is wrong or unknown, or names another pod.
    """
    fields = _read(body, _BINDING, namespace=namespace, name=name)
    return BindPod(
        namespace=namespace,
        name=name,
        node_name=str(entries_of(fields["target"])["name"]),
        force=fields.get("force") is True,
        uid=_text(fields.get("metadata"), "uid"),
    )


def parse_confirmation(body: bytes, namespace: str, name: str) -> ConfirmBinding:
    """Return the intent of a `confirmBinding` body; the path names the pod.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is missing, wrong, or unknown.
    """
    fields = _read(body, _CONFIRMATION)
    revision = fields["revision"]
    assert isinstance(revision, int)
    return ConfirmBinding(
        namespace=namespace,
        name=name,
        uid=str(fields["uid"]),
        pod_revision=revision,
        node_name=_text(fields, "nodeName"),
    )


def parse_eviction(body: bytes, namespace: str, name: str) -> EvictPod:
    """Return the intent of an `evictPod` body, which may be empty.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is wrong or unknown, or names another pod.
    """
    fields = _read(body, _EVICTION, namespace=namespace, name=name) if body.strip() else {}
    preconditions = entries_of(fields.get("deleteOptions")).get("preconditions")
    return EvictPod(
        namespace=namespace,
        name=name,
        uid=_text(preconditions, "uid"),
        resource_version=_text(preconditions, "resourceVersion"),
    )


def _read(body: bytes, rule: Rule, **pod: str) -> Mapping[str, object]:
    fields, problems = decode_strict(body), Problems()
    rule(fields, "", problems)
    metadata = entries_of(entries_of(fields).get("metadata"))
    for field, expected in pod.items():
        sent = metadata.get(field)
        if isinstance(sent, str) and sent not in ("", expected):
            problems.add(f"metadata.{field}", f"must be {expected}, as in the address", sent)
    problems.raise_any()
    return entries_of(fields)


def _text(fields: object, name: str) -> str | None:
    return str(entries_of(fields).get(name) or "") or None
