"""Runtime classes, and the changes that Kubernetes' admission makes to pods of a class.

Source: `plugin/pkg/admission/runtimeclass` and `pkg/util/tolerations`, v1.35.
"""

from collections.abc import Iterable, Mapping

import msgspec

from service.model.core import names
from service.model.core.kind import KindSpec
from service.model.core.primitives import Partial, Quantities
from service.model.core.quantity import parse_quantity
from service.model.core.resources import overhead
from service.model.core.selector_rules import LABELS
from service.model.core.type_rules import declared
from service.model.core.validators import entries_of, items_of, list_of, text, without_nulls
from service.model.pods.pod import PodSpec, Toleration
from service.model.pods.pod_rules import TOLERATION

Json = dict[str, object]


class Overhead(Partial, frozen=True, kw_only=True):
    """What a pod of the class costs beside its containers."""

    pod_fixed: Quantities | None = None
    """Amounts by resource name, which are the same for every pod."""


class RuntimeClassScheduling(Partial, frozen=True, kw_only=True):
    """Where pods of the class can go."""

    node_selector: dict[str, str] | None = None
    """Labels of the nodes that support the class; added to the pods' own."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of these nodes; added to what the pods tolerate."""


class RuntimeClassBody(Partial, frozen=True, kw_only=True):
    """The fields of a runtime class that admission reads."""

    handler: str
    """What the nodes call the runtime."""
    overhead: Overhead | None = None
    """What a pod costs beside its containers."""
    scheduling: RuntimeClassScheduling | None = None
    """Where pods can go; absent: to all nodes."""


RUNTIME_CLASS = KindSpec(
    kind="RuntimeClass",
    plural="runtimeclasses",
    api_version="node.k8s.io/v1",
    namespaced=False,
    changed_by="observe",
    is_public=True,
    body=RuntimeClassBody,
    fields={
        "handler": text(names.dns_label),
        "overhead": declared(Overhead, {"podFixed": overhead}),
        "scheduling": declared(
            RuntimeClassScheduling, {"nodeSelector": LABELS, "tolerations": list_of(TOLERATION)}
        ),
    },
    required=("handler",),
    description="Runtime classes: what they cost, and the nodes that support them. Both are merged "
    "into pods that are created.",
    example={
        "metadata": {"name": "sandboxed"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {"nodeSelector": {"runtime": "kata"}},
    },
)


class RuntimeClassMerge(msgspec.Struct, frozen=True):
    """The fields that a runtime class merges into its pods."""

    overhead: tuple[tuple[str, str | int | float], ...] | None
    node_selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...] | None

    def amend(self, spec: Json) -> None:
        """Merge the fields into a valid spec, in place; idempotent."""
        if self.overhead is not None and spec.get("overhead") is None:
            spec["overhead"] = dict(self.overhead)
        if self.node_selector:
            spec["nodeSelector"] = entries_of(spec.get("nodeSelector")) | dict(self.node_selector)
        own = items_of(spec.get("tolerations"))
        if self.tolerations is not None and (own or self.tolerations):
            spec["tolerations"] = _merged(own, self.tolerations)

    def conflict(self, spec: PodSpec) -> str | None:
        """Return Kubernetes' message if the pod's own overhead or nodeSelector conflicts."""
        if spec.overhead is not None and _amounts(spec.overhead) != _amounts(self.overhead or ()):
            rule = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            return (
                f"spec.overhead: pod rejected: {rule if self.overhead is not None else _NO_CLASS}"
            )
        own = spec.node_selector or {}
        for key, value in self.node_selector:
            if own.get(key, value) != value:
                return (
                    f"spec.nodeSelector[{key}]: conflict: runtimeClass.scheduling.nodeSelector[{key}]"
                    f" = {value}; pod.spec.nodeSelector[{key}] = {own[key]}"
                )
        return None


_NO_CLASS = "Pod Overhead set without corresponding RuntimeClass defined Overhead"

WITHOUT_CLASS = RuntimeClassMerge(None, (), None)
"""The merge for pods without a runtime class, which changes nothing."""


def read_by_runtime_class(spec: PodSpec) -> object:
    """Return the part of a pod that can conflict with its runtime class, for comparison."""
    return spec.runtime_class_name, spec.overhead, spec.node_selector


def merge_of(body: RuntimeClassBody) -> RuntimeClassMerge:
    """Return the fields that a runtime class merges into its pods."""
    scheduling = body.scheduling or RuntimeClassScheduling()
    overhead = None if body.overhead is None else body.overhead.pod_fixed
    return RuntimeClassMerge(
        overhead=None if overhead is None else tuple(overhead.items()),
        node_selector=tuple((scheduling.node_selector or {}).items()),
        tolerations=None if body.scheduling is None else scheduling.tolerations,
    )


def _amounts(
    quantities: Quantities | Iterable[tuple[str, str | int | float]],
) -> Mapping[str, int]:
    return {name: parse_quantity(text) for name, text in dict(quantities).items()}


def _merged(own: list[object], added: tuple[Toleration, ...]) -> list[object]:
    """Merge tolerations, dropping those that a wider one makes redundant."""
    both = [
        (toleration, msgspec.convert(without_nulls(toleration), Toleration)) for toleration in own
    ]
    both += [(msgspec.to_builtins(toleration), toleration) for toleration in added]
    kept: list[tuple[object, Toleration]] = []
    for index, (sent, toleration) in enumerate(both):
        before, after = kept, both[index + 1 :]
        if any(_tolerates_all(other, toleration) for _, other in before):
            continue
        if any(other != toleration and _tolerates_all(other, toleration) for _, other in after):
            continue
        kept.append((sent, toleration))
    return [sent for sent, _ in kept]


def _tolerates_all(one: Toleration, other: Toleration) -> bool:
    """Return whether `one` tolerates everything that `other` tolerates."""
    if one == other:
        return True
    if one.key != other.key and (one.key or one.operator != "Exists"):
        return False
    if one.effect not in ("", other.effect) or _is_shorter(one, other):
        return False
    return one.operator == "Exists" or (other.operator != "Exists" and one.value == other.value)


def _is_shorter(one: Toleration, other: Toleration) -> bool:
    """Return whether a NoExecute toleration ends earlier than another one."""
    if one.effect != "NoExecute" or one.toleration_seconds is None:
        return False
    return other.toleration_seconds is None or other.toleration_seconds > one.toleration_seconds
