"""The nodes that have the data sets named by pods, and the classes affected by their changes."""

from service.engine.state.nodes.node_rules import DataRules, NamedDataSet
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.other_objects import AuxiliaryObjects
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import ObjectName, Partial
from service.model.pods.pod import Pod
from service.model.volumes.data_sets import (
    DATA_SET,
    DataSetBody,
    data_sets_of,
    nodes_with,
)


class DataSets:
    """The data sets of one cluster, with the pod classes that name them."""

    def __init__(self, objects: AuxiliaryObjects) -> None:
        self._objects = objects
        self._users: dict[ObjectName, dict[PodClass, Pod]] = {}
        """The classes that name each data set, each with one of its pods, by the data set's
        namespace and name."""

    def rules_of(self, pod: Pod) -> DataRules | None:
        """Return a pod's data sets with the nodes that have them, or None if it names none."""
        wanted = pod.spec.data_affinity
        if wanted is None:
            return None
        return DataRules(
            required=tuple(self._locate(pod, reference.data_set) for reference in wanted.required),
            preferred=tuple(
                (reference.weight, self._locate(pod, reference.data_set))
                for reference in wanted.preferred
            ),
        )

    def _locate(self, pod: Pod, name: str) -> NamedDataSet:
        kept = self._objects.get(DATA_SET.kind, pod.namespace, name)
        body = None if kept is None else kept.body
        return NamedDataSet(name, nodes_with(body.spec) if isinstance(body, DataSetBody) else None)

    def add(self, pod_class: PodClass, pod: Pod) -> None:
        """Make a class depend on the data sets named by its pods."""
        for name in data_sets_of(pod.spec):
            self._users.setdefault((pod.namespace, name), {})[pod_class] = pod

    def discard(self, pod_class: PodClass) -> None:
        """Remove a dropped class."""
        for name in data_sets_of(pod_class.template.spec):
            users = self._users[pod_class.namespace, name]
            del users[pod_class]
            if not users:
                del self._users[pod_class.namespace, name]

    def affected(
        self, before: DeclaredObject[Partial] | None, after: DeclaredObject[Partial] | None
    ) -> list[tuple[PodClass, Pod]]:
        """Return the classes that name a changed data set, each with one of its pods."""
        some = after or before
        if some is None or some.kind != DATA_SET.kind:
            return []
        return list(self._users.get((some.namespace, some.name), {}).items())
