"""The pods that default spread constraints select: those of a pod's services and its owner.

Source: `DefaultSelector` in `pkg/scheduler/framework/plugins/helper/spread.go`, v1.35.
"""

from collections.abc import Iterator, Mapping

from service.engine.state.pods.classes import MatchIndex, PodClass
from service.engine.state.pods.matchers import Requirement, Selector, compile_selector
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import ObjectName, OwnerReference, Partial
from service.model.pods.pod import Pod
from service.model.registry.kinds import DECLARED_KINDS
from service.model.workloads.owners import (
    ReplicaSetBody,
    ReplicationControllerBody,
    ServiceBody,
    StatefulSetBody,
)

Labels = Mapping[str, str]
OwnerKey = tuple[str, str, str, str]
"""The namespace, API version, kind, and name of an owner."""


class DefaultSelectors:
    """The selectors of the services and controllers of one cluster."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Labels]] = {}
        """The labels that each service selects, by namespace and name, except services without a
        selector."""
        self._controllers: dict[OwnerKey, Labels] = {}
        """The labels that each replication controller selects, which override those of services."""
        self._sets: dict[OwnerKey, Selector] = {}
        """The selectors of ReplicaSets and StatefulSets, which must match as well."""

    def change(
        self,
        key: ObjectName,
        before: DeclaredObject[Partial] | None,
        after: DeclaredObject[Partial] | None,
    ) -> None:
        """Record an object's addition (no `before`), change, or removal (no `after`)."""
        some = after or before
        if some is None:
            return
        owner = owner_key(some)
        body = None if after is None else after.body
        match some.body:
            case ServiceBody():
                self._put_service(*key, service_labels(after))
            case ReplicationControllerBody():
                self._controllers.pop(owner, None)
                if isinstance(body, ReplicationControllerBody):
                    self._controllers[owner] = body.spec.selector or {}
            case ReplicaSetBody() | StatefulSetBody():
                self._sets.pop(owner, None)
                if isinstance(body, ReplicaSetBody | StatefulSetBody):
                    self._sets[owner] = compile_selector(body.spec.selector) or frozenset()
            case _:
                pass

    def _put_service(self, namespace: str, name: str, labels: Labels) -> None:
        services = self._services.setdefault(namespace, {})
        services.pop(name, None)
        if labels:
            services[name] = labels
        if not services:
            del self._services[namespace]

    def of(self, pod: Pod) -> Selector:
        """Return the selector for a pod's default constraints; empty if they do not apply."""
        labels: dict[str, str] = {}
        for selected in self._services.get(pod.namespace, {}).values():
            if _has(pod.labels, selected):
                labels.update(selected)
        owner = None if pod.controller is None else _key_of(pod.namespace, pod.controller)
        if owner is not None:
            labels.update(self._controllers.get(owner, {}))
        also = self._sets.get(owner, frozenset()) if owner is not None else frozenset()
        own = (Requirement(key, "In", frozenset((value,))) for key, value in labels.items())
        return frozenset((*own, *also))


class DefaultedClasses:
    """The classes that use the default constraints, each with one of its pods."""

    def __init__(self, match_index: MatchIndex) -> None:
        self._match_index = match_index
        self._pods: dict[PodClass, Pod] = {}
        self._owned: dict[OwnerKey, dict[PodClass, None]] = {}

    def add(self, pod_class: PodClass, pod: Pod) -> None:
        """Record that a class uses the default constraints."""
        self._pods[pod_class] = pod
        if pod.controller is not None:
            key = _key_of(pod.namespace, pod.controller)
            self._owned.setdefault(key, {})[pod_class] = None

    def discard(self, pod_class: PodClass) -> None:
        """Remove a class, if it uses the default constraints."""
        pod = self._pods.pop(pod_class, None)
        if pod is None or pod.controller is None:
            return
        key = _key_of(pod.namespace, pod.controller)
        del self._owned[key][pod_class]
        if not self._owned[key]:
            del self._owned[key]

    def affected(
        self, before: DeclaredObject[Partial] | None, after: DeclaredObject[Partial] | None
    ) -> list[tuple[PodClass, Pod]]:
        """Return the classes that may select other pods after a change, each with a pod."""
        classes: dict[PodClass, None] = {}
        for kept in (before, after):
            if kept is not None and self._pods:
                classes.update(dict.fromkeys(self._selected_classes(kept)))
                classes.update(self._owned.get(owner_key(kept), {}))
        return [(pod_class, self._pods[pod_class]) for pod_class in classes]

    def _selected_classes(self, service: DeclaredObject[Partial]) -> Iterator[PodClass]:
        labels = service_labels(service)
        for pair in labels.items():
            for pod_class in self._match_index.having(pair):
                if (
                    pod_class.namespace == service.namespace
                    and pod_class in self._pods
                    and _has(pod_class.labels, labels)
                ):
                    yield pod_class
            return  # classes with all pairs have the first pair


def owner_key(kept: DeclaredObject[Partial]) -> OwnerKey:
    """Return the key that an object's pods use to refer to it as their owner."""
    return kept.namespace, DECLARED_KINDS[kept.kind].api_version, kept.kind, kept.name


def service_labels(kept: DeclaredObject[Partial] | None) -> Labels:
    """Return the labels that a service selects, or nothing for any other object."""
    body = None if kept is None else kept.body
    return (body.spec.selector or {}) if isinstance(body, ServiceBody) else {}


def decides(kept: DeclaredObject[Partial], pod: Pod) -> bool:
    """Return whether an object may affect which pods a pod's default constraints select."""
    if kept.namespace != pod.namespace:
        return False
    labels = service_labels(kept)
    if labels:
        return _has(pod.labels, labels)
    return pod.controller is not None and owner_key(kept) == _key_of(pod.namespace, pod.controller)


def _key_of(namespace: str, owner: OwnerReference) -> OwnerKey:
    return namespace, owner.api_version, owner.kind, owner.name


def _has(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())
