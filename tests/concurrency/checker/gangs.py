"""A9 of pod groups: their members get nodes together with enough others, or not."""

from collections.abc import Iterator

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.state import State
from tests.reference.view import labels_of

LABEL = "scheduling.x-k8s.io/pod-group"


class Gangs:
    """Follows the placements of one decision; what it found wrong is told when the next begins."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._groups: dict[tuple[str, str], None] = {}

    def see(self, change: Change, *, is_placement: bool) -> Iterator[str]:
        """To be called before a change is applied."""
        if not is_placement and change.kind != "WaitingGroup":
            yield from self.end()
        group = pod_group_of(change) if is_placement else None
        if group is not None:
            self._groups[group] = None

    def end(self) -> Iterator[str]:
        """No further placement belongs to those before."""
        for namespace, name in self._groups:
            yield from self._short_of(namespace, name)
        self._groups = {}

    def _short_of(self, namespace: str, name: str) -> Iterator[str]:
        stored = self._state.bodies.get(("PodGroup", namespace, name))
        if stored is None:
            yield f"members of {namespace}/{name} are placed, which does not exist"
            return
        least = msgspec.json.decode(stored[1])["spec"]["minMember"]
        members = [
            pod
            for (inside, _), pod in self._state.cluster.pods.items()
            if inside == namespace and labels_of(pod).get(LABEL) == name
        ]
        scheduled = sum(bool(pod["spec"].get("nodeName")) for pod in members)
        if scheduled < least:
            yield f"{scheduled} members of {namespace}/{name} have nodes, of at least {least}"


def pod_group_of(change: Change) -> tuple[str, str] | None:
    """Namespace and name of the pod group that a pod is a member of."""
    name = labels_of(msgspec.json.decode(change.body)).get(LABEL)
    return None if name is None else (change.namespace, name)
