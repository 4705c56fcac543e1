"""The check that a pod passes all filters on a node while other pods are removed or reprieved.

Verdicts that do not depend on removals are computed once, for all nodes.
"""

from collections.abc import Sequence
from typing import TypeAlias

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Blame, Headrooms, Plugin
from service.engine.placing.nominations import Reservation, assume_reservation, reservations
from service.engine.placing.placement import profile_of
from service.model.pods.pod import Pod

FilterVerdicts: TypeAlias = Sequence[tuple[Plugin, Headrooms | None]]
"""Filters, each with its permanent headrooms, or with None if it must be called again."""


class NodeCheck:
    """Runs all filters on single nodes for one pod."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster = cluster
        self._pod = pod
        self._filters = profile_of(cluster, pod).filters
        pod_class = cluster.class_of(pod)
        self._permanent = [
            _if_permanent(plugin.headrooms(cluster.nodes, pod_class)) for plugin in self._filters
        ]
        """The permanent headrooms of each filter, or None for a filter that depends on placed pods.
        """

    def reasons(self, slot: int) -> list[str]:
        """Return why the pod does not fit, with or without the pods nominated for the node."""
        return self._refusal_with_nominated(slot) or self._first_refusal(slot, self._verdicts(slot))

    def open_filters(self, slot: int) -> list[Plugin]:
        """Return the filters whose verdict on a node may change as pods leave or are reprieved."""
        return [plugin for plugin, permanent in self._verdicts(slot) if permanent is None]

    def still_fits(self, slot: int, open_filters: Sequence[Plugin]) -> bool:
        """Return whether the pod still fits on a node after other pods were reprieved."""
        fits = all(self._admits(plugin, slot) for plugin in open_filters)
        return fits and not self._refusal_with_nominated(slot)

    def is_reserved(self, slot: int) -> bool:
        """Return whether room on a node is reserved for nominated pods."""
        return self._reservation(slot) is not None

    def blames(self, slot: int) -> list[Blame | None]:
        """Return what the filters that refuse a node blame; empty if no filter refuses it.

        None stands for pods on the node itself. If all filters accept the node without its
        nominated pods, they are applied again with these in place.
        """
        blames, reservation = self._blames(slot), self._reservation(slot)
        if not blames and reservation is not None:
            mark = self._cluster.mark()
            assume_reservation(self._cluster, reservation)
            blames = self._blames(slot)
            self._cluster.undo(mark)
        return blames

    def _blames(self, slot: int) -> list[Blame | None]:
        cluster = self._cluster
        blames: list[Blame | None] = []
        pod_class = cluster.class_of(self._pod)
        for plugin in self._filters:
            if not self._admits(plugin, slot):
                blames += plugin.blames(cluster.nodes, pod_class, slot) or [None]
        return blames

    def _refusal_with_nominated(self, slot: int) -> list[str]:
        """Return why the pod does not fit together with the pods nominated for the node.

        All filters are called again, because permanent headrooms hold for removed pods but not for
        added ones.
        """
        reservation = self._reservation(slot)
        if reservation is None:
            return []
        mark = self._cluster.mark()
        assume_reservation(self._cluster, reservation)
        reasons = self._first_refusal(slot, [(plugin, None) for plugin in self._filters])
        self._cluster.undo(mark)
        return reasons

    def _reservation(self, slot: int) -> Reservation | None:
        """Return the reservation for the pods nominated for a node, or None."""
        cluster = self._cluster
        for reservation in reservations(cluster, self._pod) if cluster.has_reservations else ():
            if reservation.slot == slot:
                return reservation
        return None

    def _first_refusal(self, slot: int, asked: FilterVerdicts) -> list[str]:
        """Return the reasons of the first filter that refuses the node, or an empty list."""
        for plugin, permanent in asked:
            if permanent is not None:
                reasons = [room.reason for room in permanent.rooms if room.spare[slot] < 0]
                if reasons:
                    return reasons[:1] if permanent.first_only else reasons
            elif not self._admits(plugin, slot):
                failures = plugin.failures(self._cluster.nodes, self._cluster.class_of(self._pod))
                return [failure.reason for failure in failures if failure.nodes[slot]]
        return []

    def _verdicts(self, slot: int) -> FilterVerdicts:
        """Return each filter with its permanent headrooms, or with None if it must run again."""
        return [
            (plugin, None if permanent is None or _is_unsure(permanent, slot) else permanent)
            for plugin, permanent in zip(self._filters, self._permanent, strict=True)
        ]

    def _admits(self, plugin: Plugin, slot: int) -> bool:
        cluster = self._cluster
        return plugin.admits_at(cluster.nodes, cluster.class_of(self._pod), slot)


def _if_permanent(headrooms: Headrooms | None) -> Headrooms | None:
    """Return headrooms that hold no matter which pods leave, or None if any depends on pods."""
    if headrooms is None or any(
        room.resource or room.taken is not None for room in headrooms.rooms
    ):
        return None
    return headrooms


def _is_unsure(headrooms: Headrooms, slot: int) -> bool:
    return headrooms.unsure is not None and bool(headrooms.unsure[slot])
