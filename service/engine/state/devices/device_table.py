"""The devices of a cluster, the claims to them, and which of them are in use."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from service.engine.state.devices.pools import DevicePool, PoolID, gather_pool
from service.engine.state.devices.search import (
    UNANSWERED,
    DeviceSearch,
    NoAllocation,
    WantedClaim,
)
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_sets import NodeSet, NodeSets
from service.engine.state.nodes.node_table import NodeTable
from service.model.objects.cel_questions import OpenQuestions
from service.model.objects.devices import (
    DeviceClaimSpec,
    DeviceClass,
    DeviceID,
    DeviceObject,
    Grant,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from service.model.objects.pods_and_nodes import NodeSelector, ObjectName

VERDICTS_MAX = 64
"""For so many different sets of claims it is kept which nodes can meet them; the oldest are dropped."""
VERDICTS_BYTES, REASON_BYTES = 1_024, 224
"""About what verdicts take, and each of their reasons."""
TOUCHED_MAX = 4_096
"""After so many changes of single nodes all nodes are looked at again."""
SliceNames = tuple[str, ...]
"""The names of slices, sorted."""
K = TypeVar("K")
V = TypeVar("V")


class NodeVerdicts:
    """Which nodes can meet some claims, kept up with what changes on them."""

    __slots__ = ("failing", "position", "reasons", "turn", "unanswered", "users")

    def __init__(self) -> None:
        self.users: dict[object, None] = {}
        """Who asked, and was not dropped since."""
        self.failing: Mask = np.zeros(0, dtype=np.bool_)
        """Shape (nodes,): where they can't be met."""
        self.reasons: dict[int, str] = {}
        """By slot, why not."""
        self.position = -1
        """How many changes were known when the nodes were looked at; -1: they never were."""
        self.turn = -1
        """The decision in which the nodes were looked at last."""
        self.unanswered: set[int] = set()
        """The slots where it is not known yet which devices are selected."""


class DeviceTable:
    """The objects of devices by name, and what follows from them.

    Which devices are in use is read of the claims that were given them. Objects are put and removed
    by the cluster, which knows how to undo it.
    """

    def __init__(self, nodes: NodeTable, steps_max: int) -> None:
        self.nodes = nodes
        self._steps_max = steps_max
        self.questions = OpenQuestions()
        """What is to be known of devices, and is not yet."""
        self.claims: dict[ObjectName, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.templates: dict[ObjectName, ResourceClaimTemplate] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        """By node: the slices that only this node reaches."""
        self._wide: dict[str, None] = {}
        """The slices that several nodes may reach."""
        self._by_pool: dict[PoolID, dict[str, None]] = {}
        self.in_use: dict[DeviceID, int] = {}
        """How many claims were given each device: more than one only where somebody reports it."""
        self.sets = NodeSets(nodes)
        self._reached: dict[int, SliceNames] = {}
        """By slot: the slices that the node reaches, as far as anybody asked."""
        self._pools: dict[SliceNames, tuple[DevicePool, ...]] = {}
        """By the slices that a node reaches: the pools that these are of."""
        self._touched: list[int] = []
        """The slots whose verdicts may be others since, newest last."""
        self._forgotten = 0
        """How many entries were dropped from the start of that."""
        self._verdicts: OrderedDict[tuple[DeviceClaimSpec, ...], NodeVerdicts] = OrderedDict()
        self._asked: dict[object, dict[tuple[DeviceClaimSpec, ...], None]] = {}
        """By asker: for which claims it had verdicts."""

    # What claims find

    def nodes_of(self, selector: NodeSelector) -> NodeSet:
        """Return the nodes that a claim's devices can be used on."""
        return self.sets.of_affinity(selector, msgspec.json.encode(selector))

    def verdicts(self, wanted: tuple[WantedClaim, ...], user: object) -> NodeVerdicts:
        """On which nodes claims can be given what they ask for; their classes have to exist.

        They are kept until all that asked for them are dropped (`release_user`), or longer ago than
        others. The names in reasons are those of `with_placeholders` claims, since what is known is shared by all
        claims that ask for the same.
        """
        key = tuple([each.spec for each in wanted])
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = NodeVerdicts()
            if len(self._verdicts) > VERDICTS_MAX:
                self._verdicts.popitem(last=False)
        else:
            self._verdicts.move_to_end(key)
        if user not in found.users:
            found.users[user] = None
            self._asked.setdefault(user, {})[key] = None
        self._refresh(found, with_placeholders(wanted))
        return found

    def sizes(self) -> Iterator[int]:
        """Yield about the size in bytes of each set of verdicts."""
        for verdict in self._verdicts.values():
            yield VERDICTS_BYTES + int(verdict.failing.nbytes) + REASON_BYTES * len(verdict.reasons)

    def release_user(self, user: object) -> None:
        """Drop the verdicts that nobody else has asked for."""
        for key in self._asked.pop(user, ()):
            verdicts = self._verdicts.get(key)
            if verdicts is not None:
                verdicts.users.pop(user, None)
                if not verdicts.users:
                    del self._verdicts[key]

    def find(self, wanted: tuple[WantedClaim, ...], slot: int) -> list[tuple[Grant, ...]]:
        """Return what claims are given on a node, in their order.

        Raises:
            NoAllocation: not all of them can be given what they ask for.
        """
        return self._search(wanted, self._pools_of(self._reached_at(slot)))

    def _refresh(self, verdicts: NodeVerdicts, wanted: tuple[WantedClaim, ...]) -> None:
        slots = self._changed_since(verdicts.position)
        if verdicts.unanswered and verdicts.turn != self.questions.turn:
            again = [slot for slot in verdicts.unanswered if slot < self.nodes.size]
            slots = list(dict.fromkeys([*slots, *again]))
            verdicts.unanswered.clear()
        verdicts.turn = self.questions.turn
        verdicts.position = self._forgotten + len(self._touched)
        size = self.nodes.size
        if len(verdicts.failing) != size:
            grown = np.zeros(size, dtype=np.bool_)
            kept = min(size, len(verdicts.failing))
            grown[:kept] = verdicts.failing[:kept]
            verdicts.failing = grown
        elif slots:
            # Whoever was told before may still read what was told then.
            verdicts.failing = verdicts.failing.copy()
        known: dict[SliceNames, str | None] = {}
        for slot in slots:
            reason = None
            if self.nodes.nodes[slot] is not None:
                reached = self._reached_at(slot)
                if reached not in known:
                    known[reached] = self._reason(wanted, self._pools_of(reached))
                reason = known[reached]
            if reason == UNANSWERED:
                verdicts.unanswered.add(slot)
            verdicts.failing[slot] = reason is not None
            if reason is None:
                verdicts.reasons.pop(slot, None)
            else:
                verdicts.reasons[slot] = reason

    def _changed_since(self, position: int) -> Sequence[int]:
        start = position - self._forgotten
        if position >= 0 and start >= 0:
            return list(dict.fromkeys(self._touched[start:]))
        return range(self.nodes.size)

    def _reason(self, wanted: tuple[WantedClaim, ...], pools: tuple[DevicePool, ...]) -> str | None:
        try:
            self._search(wanted, pools)
        except NoAllocation as refused:
            return str(refused)
        return None

    def _search(
        self, wanted: tuple[WantedClaim, ...], pools: tuple[DevicePool, ...]
    ) -> list[tuple[Grant, ...]]:
        return DeviceSearch(
            pools, wanted, self.classes, self.in_use, self._steps_max, self.questions
        ).run()

    def _reached_at(self, slot: int) -> SliceNames:
        """Return the slices that a node reaches."""
        found = self._reached.get(slot)
        if found is None:
            node = self.nodes.nodes[slot]
            own = self._by_node.get(node.name, ()) if node is not None else ()
            names = [name for name in (*own, *self._wide) if self._reaches(name, slot)]
            found = self._reached[slot] = tuple(sorted(names))
        return found

    def _pools_of(self, names: SliceNames) -> tuple[DevicePool, ...]:
        found = self._pools.get(names)
        if found is None:
            found = self._pools[names] = tuple(self._gather(names))
        return found

    def _gather(self, names: SliceNames) -> Iterator[DevicePool]:
        """Return the pools of some slices, by driver and name."""
        reached: dict[PoolID, list[ResourceSlice]] = {}
        for name in names:
            each = self._slices[name]
            reached.setdefault(each.pool_id, []).append(each)
        for pool_id in sorted(reached):
            others = [self._slices[name] for name in self._by_pool[pool_id]]
            pool = gather_pool(reached[pool_id], others)
            if pool is not None:
                yield pool

    def _reaches(self, name: str, slot: int) -> bool:
        """Return whether a node reaches a slice that can be read, and is not another node's."""
        each = self._slices[name]
        if not each.is_known:
            return False
        if each.node_name is not None or each.all_nodes:
            return True
        if each.node_selector is None:
            return False
        return bool(self.nodes_of(each.node_selector).vetoes.at(slot) == 0)

    # Objects

    def put(self, new: DeviceObject) -> None:
        """Add or replace an object."""
        match new:
            case ResourceClaim():
                self._swap_claim(new.key, new)
            case ResourceSlice():
                self._swap_slice(new.name, new)
            case DeviceClass():
                self.classes[new.name] = new
                self._note_all()
            case ResourceClaimTemplate():
                self.templates[new.namespace, new.name] = new

    def remove(self, old: DeviceObject) -> None:
        """Remove an object that is there."""
        match old:
            case ResourceClaim():
                self._swap_claim(old.key, None)
            case ResourceSlice():
                self._swap_slice(old.name, None)
            case DeviceClass():
                del self.classes[old.name]
                self._note_all()
            case ResourceClaimTemplate():
                del self.templates[old.namespace, old.name]

    def _swap_claim(self, key: ObjectName, new: ResourceClaim | None) -> None:
        old = _swap(self.claims, key, new)
        before = set() if old is None else set(old.devices)
        after = set() if new is None else set(new.devices)
        for device in before - after:
            self._use(device, -1)
        for device in after - before:
            self._use(device, 1)

    def _use(self, device: DeviceID, claims: int) -> None:
        after = self.in_use.get(device, 0) + claims
        if after:
            self.in_use[device] = after
        else:
            del self.in_use[device]
        for name in self._by_pool.get((device.driver, device.pool), ()):
            node_name = self._slices[name].node_name
            if node_name is None:
                self._note_all()
            else:
                self._note(self.nodes.slots.get(node_name))

    def _swap_slice(self, name: str, new: ResourceSlice | None) -> None:
        old = _swap(self._slices, name, new)
        if old is not None:
            self._forget_slice(old)
        if new is not None:
            self._note_slice(new)
        self._pools.clear()
        for each in (old, new):
            if each is not None:
                for other in self._by_pool.get(each.pool_id, ()):
                    self._touch_slice(self._slices[other])
                self._touch_slice(each)

    def _note_slice(self, new: ResourceSlice) -> None:
        self._by_pool.setdefault(new.pool_id, {})[new.name] = None
        if new.node_name is None:
            self._wide[new.name] = None
        else:
            self._by_node.setdefault(new.node_name, {})[new.name] = None

    def _forget_slice(self, old: ResourceSlice) -> None:
        _discard(self._by_pool, old.pool_id, old.name)
        if old.node_name is None:
            del self._wide[old.name]
        else:
            _discard(self._by_node, old.node_name, old.name)

    # What changes where

    def touch(self, slot: int) -> None:
        """Note that a node came, went or is described anew."""
        self._reached.pop(slot, None)
        self._note(slot)

    def _touch_slice(self, each: ResourceSlice) -> None:
        """Note that a slice came, went or is another."""
        if each.node_name is None:
            self._reached.clear()
            self._note_all()
            return
        slot = self.nodes.slots.get(each.node_name)
        if slot is not None:
            self.touch(slot)

    def _note(self, slot: int | None) -> None:
        """Note that the verdicts on a node may be others."""
        if slot is None or not self._verdicts:
            return
        if len(self._touched) == TOUCHED_MAX:
            self._note_all()
        else:
            self._touched.append(slot)

    def _note_all(self) -> None:
        """Note that the verdicts on all nodes may be others."""
        self._forgotten += len(self._touched) + 1
        self._touched.clear()

    # What it counts

    def objects(self) -> Iterator[DeviceObject]:
        """All objects, kind by kind in the order of their names."""
        kinds: tuple[Mapping[Any, DeviceObject], ...] = (
            self.claims,
            self.classes,
            self.templates,
            self._slices,
        )
        for known in kinds:
            for key in sorted(known):
                yield known[key]


def with_placeholders(wanted: Iterable[WantedClaim]) -> tuple[WantedClaim, ...]:
    """Claims that are told apart by their place alone; `named` puts their names into a text."""
    return tuple([WantedClaim(f"<{n}>", each.spec) for n, each in enumerate(wanted)])


def named(text: str, wanted: Iterable[WantedClaim]) -> str:
    """Return a reason with the names of claims in place of `with_placeholders` ones."""
    for number, each in enumerate(wanted):
        text = text.replace(f"claim <{number}>", f"claim {each.name}")
    return text


def allocated(
    claim: ResourceClaim, grants: Iterable[Grant], selector: NodeSelector | None
) -> ResourceClaim:
    """Return a claim that was given devices, for one pod more."""
    devices = tuple([grant.device for grant in grants if not grant.admin_access])
    return replace(
        claim,
        is_allocated=True,
        devices=devices,
        node_selector=selector,
        consumers=claim.consumers + 1,
    )


def _swap(known: dict[K, V], key: K, new: V | None) -> V | None:
    old = known.pop(key, None)
    if new is not None:
        known[key] = new
    return old


def _discard(index: dict[K, dict[str, None]], key: K, name: str) -> None:
    members = index[key]
    del members[name]
    if not members:
        del index[key]
