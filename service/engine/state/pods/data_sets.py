"""Where the data sets are that pods name, and which classes of pods have to follow a change of one."""

from service.engine.state.nodes.node_rules import DataRules, NamedDataSet
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.other_objects import AuxiliaryObjects
from service.model.kinds_kept_for_rules.data_sets import (
    DATA_SET,
    DataSetBody,
    data_sets_of,
    nodes_with,
)
from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptObject
from service.model.objects.pods_and_nodes import ObjectName, Partial, Pod


class DataSets:
    """The data sets of one cluster, as the pods of its classes use them."""

    def __init__(self, objects: AuxiliaryObjects) -> None:
        self._objects = objects
        self._users: dict[ObjectName, dict[PodClass, Pod]] = {}
        """By a data set's namespace and name the classes that name it, each with a pod."""

    def rules_of(self, pod: Pod) -> DataRules | None:
        """Return what a pod asks for, by where it is now, or None if it names no data."""
        wanted = pod.spec.data_affinity
        if wanted is None:
            return None
        return DataRules(
            required=tuple(self._locate(pod, each.data_set) for each in wanted.required),
            preferred=tuple(
                (each.weight, self._locate(pod, each.data_set)) for each in wanted.preferred
            ),
        )

    def _locate(self, pod: Pod, name: str) -> NamedDataSet:
        kept = self._objects.get(DATA_SET.kind, pod.namespace, name)
        body = None if kept is None else kept.body
        return NamedDataSet(name, nodes_with(body.spec) if isinstance(body, DataSetBody) else None)

    def add(self, pod_class: PodClass, pod: Pod) -> None:
        """Have a class follow the data sets that its pods name."""
        for name in data_sets_of(pod.spec):
            self._users.setdefault((pod.namespace, name), {})[pod_class] = pod

    def discard(self, pod_class: PodClass) -> None:
        """Forget a class that is dropped."""
        for name in data_sets_of(pod_class.template.spec):
            users = self._users[pod_class.namespace, name]
            del users[pod_class]
            if not users:
                del self._users[pod_class.namespace, name]

    def affected(
        self, before: KeptObject[Partial] | None, after: KeptObject[Partial] | None
    ) -> list[tuple[PodClass, Pod]]:
        """Return the classes that name an object which came, changed or went, each with a pod."""
        some = after or before
        if some is None or some.kind != DATA_SET.kind:
            return []
        return list(self._users.get((some.namespace, some.name), {}).items())
