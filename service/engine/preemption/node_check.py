"""Whether a pod passes all filters on one node, while others leave nodes or are taken back.

What filters say whichever pods leave is asked of them once, for all nodes.
"""

from collections.abc import Sequence
from typing import TypeAlias

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Blame, Headrooms, Plugin
from service.engine.placing.nominations import Reservation, assume_reservation, reservations
from service.engine.placing.placement import profile_of
from service.model.pods.pod import Pod

Asked: TypeAlias = Sequence[tuple[Plugin, Headrooms | None]]
"""Filters, each with what it says of a node for good, or None if it has to be asked again."""


class NodeCheck:
    """Asks the filters about one node after the other for one pod."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster = cluster
        self._pod = pod
        self._filters = profile_of(cluster, pod).filters
        pod_class = cluster.class_of(pod)
        self._told = [
            _lasting(plugin.headrooms(cluster.nodes, pod_class)) for plugin in self._filters
        ]
        """What each filter says for good, or None for a filter that looks at placed pods."""

    def reasons(self, slot: int) -> list[str]:
        """Why the pod does not fit, beside the pods that are nominated for the node and without them."""
        return self._reserved(slot) or self._refused(slot, self._asked(slot))

    def open_filters(self, slot: int) -> list[Plugin]:
        """The filters whose verdict on a node may change when pods leave or are taken back."""
        return [each for each, told in self._asked(slot) if told is None]

    def still_fits(self, slot: int, open_filters: Sequence[Plugin]) -> bool:
        """Return whether a pod that did fit on a node does so when others have been taken back."""
        fits = all(self._admits(plugin, slot) for plugin in open_filters)
        return fits and not self._reserved(slot)

    def is_reserved(self, slot: int) -> bool:
        """Return whether room is kept on a node for pods that are nominated for it."""
        return self._reservation(slot) is not None

    def blames(self, slot: int) -> list[Blame | None]:
        """What every filter that refuses a node blames; None: pods of the node alone. Empty: none refuses.

        If all accept it without the pods that are nominated for it, they are asked beside these.
        """
        found, reservation = self._blames(slot), self._reservation(slot)
        if not found and reservation is not None:
            mark = self._cluster.mark()
            assume_reservation(self._cluster, reservation)
            found = self._blames(slot)
            self._cluster.undo(mark)
        return found

    def _blames(self, slot: int) -> list[Blame | None]:
        cluster = self._cluster
        found: list[Blame | None] = []
        pod_class = cluster.class_of(self._pod)
        for plugin in self._filters:
            if not self._admits(plugin, slot):
                found += plugin.blames(cluster.nodes, pod_class, slot) or [None]
        return found

    def _reserved(self, slot: int) -> list[str]:
        """Why the pod does not fit beside the pods that are nominated for the node.

        All filters are asked again: what they say for good is so whoever leaves, not whoever comes.
        """
        reservation = self._reservation(slot)
        if reservation is None:
            return []
        mark = self._cluster.mark()
        assume_reservation(self._cluster, reservation)
        reasons = self._refused(slot, [(plugin, None) for plugin in self._filters])
        self._cluster.undo(mark)
        return reasons

    def _reservation(self, slot: int) -> Reservation | None:
        """Return the pods that are nominated for a node, if there are such."""
        cluster = self._cluster
        for each in reservations(cluster, self._pod) if cluster.has_reservations else ():
            if each.slot == slot:
                return each
        return None

    def _refused(self, slot: int, asked: Asked) -> list[str]:
        """Return what the first filter says that refuses the node; nothing if none does."""
        for plugin, told in asked:
            if told is not None:
                reasons = [each.reason for each in told.rooms if each.spare[slot] < 0]
                if reasons:
                    return reasons[:1] if told.first_only else reasons
            elif not self._admits(plugin, slot):
                failures = plugin.failures(self._cluster.nodes, self._cluster.class_of(self._pod))
                return [failure.reason for failure in failures if failure.nodes[slot]]
        return []

    def _asked(self, slot: int) -> Asked:
        """Each filter, with what it says of a node for good; None if it has to be asked again."""
        return [
            (plugin, None if told is None or _is_unsure(told, slot) else told)
            for plugin, told in zip(self._filters, self._told, strict=True)
        ]

    def _admits(self, plugin: Plugin, slot: int) -> bool:
        cluster = self._cluster
        return plugin.admits_at(cluster.nodes, cluster.class_of(self._pod), slot)


def _lasting(told: Headrooms | None) -> Headrooms | None:
    """Return what a filter says whichever pods leave, or None if any of it depends on these."""
    if told is None or any(each.resource or each.taken is not None for each in told.rooms):
        return None
    return told


def _is_unsure(told: Headrooms, slot: int) -> bool:
    return told.unsure is not None and bool(told.unsure[slot])
