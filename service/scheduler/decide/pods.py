"""What may change in a pod that is stored."""

import msgspec

from service.model.errors import FieldError, InvalidManifest
from service.model.manifest import PodManifest

_MUTABLE = frozenset({"tolerations", "schedulingGates"})
_CONTAINERS = ("containers", "initContainers")


def check_update(stored: PodManifest, updated: PodManifest) -> None:
    """Refuse changes of a placed pod's spec that would make another pod of it.

    Tolerations may be added, and container resources and gates may change. A pod that moved to
    another node is an observed fact: anything may be different.

    Raises:
        InvalidManifest: naming the fields of `spec` that may not change so.
    """
    old_node = stored.pod.node_name
    if old_node is None or updated.pod.node_name != old_node:
        return
    if stored.template.spec_json == updated.template.spec_json:
        return
    old = msgspec.json.decode(stored.template.spec_json, type=dict[str, object])
    new = msgspec.json.decode(updated.template.spec_json, type=dict[str, object])
    errors = [
        FieldError(f"spec.{field}", "may not change in a placed pod")
        for field in sorted(old.keys() | new.keys())
        if _fixed(field, old.get(field)) != _fixed(field, new.get(field))
    ]
    kept = set(map(_text, _list(new.get("tolerations"))))
    if not kept.issuperset(map(_text, _list(old.get("tolerations")))):
        errors.append(FieldError("spec.tolerations", "may only be added to in a placed pod"))
    if errors:
        raise InvalidManifest(errors)


def _fixed(field: str, value: object) -> object:
    """The part of a field of `spec` that may not change."""
    if field in _MUTABLE:
        return None
    if field in _CONTAINERS:
        return [_without_resources(container) for container in _list(value)]
    return value


def _without_resources(container: object) -> object:
    if not isinstance(container, dict):
        return container
    return {name: value for name, value in container.items() if name != "resources"}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")
