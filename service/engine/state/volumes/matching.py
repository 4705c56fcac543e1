"""The matching of unbound claims on each node to existing volumes or to newly provisioned ones.

Claims are matched in order of size, each to the smallest suitable volume on a node. A claim without
a match is provisioned, and no match is revised for a better one. All nodes are matched together, so
a volume that many nodes can use is examined once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from service.engine.state.nodes.columns import Ids, Ints, Mask
from service.engine.state.nodes.node_sets import NodeSet
from service.engine.state.volumes.volume_table import Accessible, VolumeTable
from service.model.core.primitives import ObjectName
from service.model.core.quantity import ceil_whole
from service.model.core.selectors import matches
from service.model.volumes.volume import PersistentVolume, PersistentVolumeClaim, StorageClass

NO_VOLUME = -1
PROVISION = "provision"
"""The placeholder for the name of a volume that is yet to be provisioned."""


@dataclass(frozen=True)
class StorageUse:
    """The storage of one class that a pod's claims take on each node, in bytes.

    All arrays have the shape (nodes,).
    """

    requested: Ints
    capacity: Ints
    """The capacity of the volumes bound to the claims, or that from which they are provisioned."""
    counted: Mask
    """The nodes where claims of the class take storage of known capacity."""

    @classmethod
    def none(cls, size: int) -> "StorageUse":
        """Return the use of no storage on `size` nodes."""
        return cls(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_))


class VolumeMatches:
    """The volumes to bind to a pod's unbound claims on every node."""

    def __init__(self, table: VolumeTable, claims: Sequence[PersistentVolumeClaim]) -> None:
        """Match `claims`, which wait for their first consumer, in order of the pod's volumes."""
        self._table = table
        self._size = table.nodes.size
        self._names: list[str] = []
        """The candidate volumes; chosen ones are stored by their index in this list."""
        self._numbers: dict[str, int] = {}
        self._chosen: dict[ObjectName, Ids] = {}
        """The volume of each claim on each node, shape (nodes,)."""
        self.without_volume: Mask = np.zeros(self._size, dtype=np.bool_)
        """The nodes where a claim has no volume and none can be provisioned, shape (nodes,)."""
        self.without_room: Mask = np.zeros(self._size, dtype=np.bool_)
        """The nodes where only a lack of capacity prevents provisioning, shape (nodes,)."""
        self._selected = [claim for claim in claims if claim.selected_node is not None]
        others = [claim for claim in claims if claim.selected_node is None]
        self._others = sorted(others, key=_requested_size)
        self._find()

    @property
    def failing(self) -> Mask:
        """The nodes where not all claims can be bound, shape (nodes,)."""
        return self.without_volume | self.without_room

    def volumes_on(self, slot: int) -> dict[str, str]:
        """Return the volume, or `PROVISION`, for each claim on a node where all can be bound."""
        volumes = {claim.name: PROVISION for claim in self._selected}
        for claim in self._others:
            number = int(self._chosen[claim.key][slot])
            volumes[claim.name] = PROVISION if number == NO_VOLUME else self._names[number]
        return volumes

    def storage_uses(self) -> list[StorageUse]:
        """Return the use of storage by class, for nodes where all claims can be bound.

        On nodes where any claim is bound to an existing volume, only existing volumes count.
        """
        existing = self._uses_of_existing()
        elsewhere = np.ones(self._size, dtype=np.bool_)
        for use in existing:
            elsewhere &= ~use.counted
        return existing + self._uses_of_provisioned(elsewhere)

    def _uses_of_existing(self) -> list[StorageUse]:
        if not self._names:
            return []
        volumes = [self._table.volumes[name] for name in self._names]
        capacities = np.array([ceil_whole(volume.capacity) for volume in volumes], dtype=np.int64)
        uses: list[StorageUse] = []
        for class_name in dict.fromkeys(volume.class_field for volume in volumes):
            in_class = np.array([volume.class_field == class_name for volume in volumes])
            use = StorageUse.none(self._size)
            for claim in self._others:
                chosen = self._chosen[claim.key]
                counted = (chosen != NO_VOLUME) & in_class[chosen]
                use.requested[counted] += ceil_whole(claim.requested)
                use.capacity[counted] += capacities[chosen[counted]]
                use.counted[counted] = True
            uses.append(use)
        return uses

    def _uses_of_provisioned(self, where: Mask) -> list[StorageUse]:
        uses: dict[str, StorageUse] = {}
        for claim in (*self._selected, *self._others):
            storage_class = self._table.provisioning_class(claim)
            if storage_class is None or not self._table.reports_capacity(storage_class):
                continue
            use = uses.get(claim.class_field) or StorageUse.none(self._size)
            uses[claim.class_field] = use
            capacity, counted = self._capacity_for(storage_class, claim.requested)
            counted &= where
            if claim.key in self._chosen:
                counted &= self._chosen[claim.key] == NO_VOLUME
            use.requested[counted] += ceil_whole(claim.requested)
            # All claims of the class are provisioned from the same capacity, which counts once.
            use.capacity[counted] = capacity[counted]
            use.counted[counted] = True
        return list(uses.values())

    def _capacity_for(self, storage_class: StorageClass, size: int) -> tuple[Ints, Mask]:
        """Return the capacity from which a volume is provisioned, in bytes, and the nodes with one.

        Of several that a node can use, the first by name counts; kube-scheduler takes any.
        """
        capacity, known = np.zeros(self._size, np.int64), np.zeros(self._size, np.bool_)
        cells, known_cells = capacity.data, known.data
        for item, nodes in self._table.capacities(storage_class, size):
            total = item.capacity
            if nodes.slots is None:
                more = nodes.mask & ~known
                capacity[more] = total
                known |= more
                continue
            for slot in nodes.slots:
                if not known_cells[slot]:
                    cells[slot], known_cells[slot] = total, True
        return capacity, known

    def _find(self) -> None:
        for claim in self._selected:
            elsewhere = np.ones(self._size, dtype=np.bool_)
            slot = self._table.nodes.slots.get(claim.selected_node or "")
            if slot is not None:
                elsewhere[slot] = False
            self.without_volume |= elsewhere
        for rank, claim in enumerate(self._others):
            self._chosen[claim.key] = self._choose(claim, rank)
        for claim in self._selected:
            self._provision(claim, ~self.failing)
        for claim in self._others:
            self._provision(claim, (self._chosen[claim.key] == NO_VOLUME) & ~self.failing)

    # Existing volumes

    def _choose(self, claim: PersistentVolumeClaim, rank: int) -> Ids:
        """Choose a claim's volume on each node, shape (nodes,), after `rank` earlier claims."""
        chosen = np.full(self._size, NO_VOLUME, dtype=np.int32)
        for volume in self._table.reserved_for(claim):
            if _could_hold(volume, claim):
                self._assign(chosen, volume)
                return chosen
        # Go from the largest to the smallest, so that the smallest wins.
        for volume in reversed(self._candidates(claim, rank)):
            self._assign(chosen, volume)
        return chosen

    def _candidates(self, claim: PersistentVolumeClaim, rank: int) -> list[PersistentVolume]:
        """Return the smallest volumes that a claim could be bound to.

        For each set of nodes, one volume more than the earlier claims can take is enough.
        """
        candidates: list[PersistentVolume] = []
        counts: dict[NodeSet | None, int] = {}
        for volume in self._table.free(claim.class_name, claim.requested):
            if not (_could_hold(volume, claim) and _suits(volume, claim)):
                continue
            nodes = self._table.nodes_of(volume)
            known = counts.get(nodes, 0)
            if known > rank:
                continue
            counts[nodes] = known + 1
            candidates.append(volume)
            if nodes is None and known == rank:
                break
        return candidates

    def _assign(self, chosen: Ids, volume: PersistentVolume) -> None:
        """Choose a volume on the nodes that can use it, unless another claim has it there."""
        number = self._number(volume.name)
        nodes = self._table.nodes_of(volume)
        before = [
            chosen_before for chosen_before in self._chosen.values() if chosen_before is not chosen
        ]
        if nodes is not None and nodes.slots is not None:
            for slot in nodes.slots:
                if not any(chosen_before[slot] == number for chosen_before in before):
                    chosen[slot] = number
            return
        free = np.ones(self._size, dtype=np.bool_) if nodes is None else nodes.mask
        for chosen_before in before:
            free &= chosen_before != number
        chosen[free] = number

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    # Provisioned volumes

    def _provision(self, claim: PersistentVolumeClaim, needed: Mask) -> None:
        """Record the nodes in `needed` where no volume can be provisioned for a claim."""
        if not needed.any():
            return
        storage_class = self._table.provisioning_class(claim)
        if storage_class is None:
            self.without_volume |= needed
            return
        if storage_class.allowed_topologies:
            allowed = self._table.sets.of_topologies(storage_class.allowed_topologies).mask
            self.without_volume |= needed & ~allowed
            needed &= allowed
        if self._table.reports_capacity(storage_class):
            capacities = self._table.capacities(storage_class, claim.requested)
            self.without_room |= needed & ~_union(capacities, self._size)


def _requested_size(claim: PersistentVolumeClaim) -> int:
    return claim.requested


def _could_hold(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether an unreserved volume has the class, size, and mode of a claim."""
    return (
        volume.class_name == claim.class_name
        and volume.capacity >= claim.requested
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume satisfies a claim's selector and access modes."""
    return volume.access_modes.issuperset(claim.access_modes) and (
        claim.selector is None or matches(claim.selector, volume.labels)
    )


def _union(capacities: Iterable[Accessible], size: int) -> Mask:
    """Return the nodes that can use any of these capacities, shape (nodes,)."""
    union = np.zeros(size, dtype=np.bool_)
    slots: list[int] = []
    for _, nodes in capacities:
        if nodes.slots is None:
            union |= nodes.mask
        else:
            slots += nodes.slots
    union[slots] = True
    return union
