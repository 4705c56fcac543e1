"""The pods that wait for a node: who is tried next, and who has to be told why it waits.

    put ──▶ ACTIVE ──take──▶ (being tried) ──placed──▶ gone
              ▲  ▲                 │ refused
              │  └──backoff over── BACKOFF ◀──┐
              └────────────────────┴── a change that can help ── UNSCHEDULABLE

Pods that no rule can tell apart are one *lot*: what is decided of one is true of all until
something changes, so ten thousand equal pods cost one attempt. A lot's pods leave it in order.
The members of a group are one lot too: its first pod is given out in place of all of them.

The queue is pure: it is filled from the replica, kept up by the changes that the log has, and told
the time. It can be thrown away at any moment and made again from the pods without a node.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from itertools import count

from service.model.config import ClusterConfig
from service.model.manifest import PodManifest
from service.model.objects import Pod
from service.scheduler.pending.equivalence_classes import ALL, Lot, Order, State, Topic, topics_of
from service.scheduler.pending.queueing_hints import (
    EVERYTHING,
    MEMBERS,
    Event,
    events_of,
    helps,
)
from service.scheduler.protocol.attempts import Refused, Tell, Turn
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.kinds import WaitingGroup
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Entry, Key

_SEEN_MAX = 1_000


class PendingQueue:
    """The pending pods of one cluster. All times are in the clock's monotonic seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.reset((), ClusterConfig())

    def reset(
        self,
        pods: Iterable[PodManifest],
        config: ClusterConfig,
        groups: Iterable[WaitingGroup] = (),
    ) -> None:
        """Begin anew with these pods; those that have a node are left out."""
        self._config = config
        self._schedulers = config.scheduler_profiles().keys()
        self._lots: dict[object, Lot] = {}
        self._lot_of: dict[Key, Lot] = {}
        self._pods: dict[Key, PodManifest] = {}
        self._waiting: dict[Key, GroupRef] = {
            key: GroupRef("", group.name) for group in groups for key in group.members
        }
        """The pods that are to be placed all or none."""
        self._grouped: dict[Lot, None] = {}
        """Groups that were refused, for more than a lack of members."""
        self._timed: list[tuple[float, int, Lot, Refused]] = []
        """Groups that have something else to be told at a time."""
        self._active: list[tuple[Order, int, Lot]] = []
        self._backoff: list[tuple[float, int, Lot]] = []
        self._resting: list[tuple[Order, int, Lot]] = []
        """The lots in back-off again, by their first pods."""
        self._early = 0
        """So many of them may be tried before their back-off is over."""
        self._numbers = count()
        self._index: dict[Topic, dict[Lot, None]] = {}
        """Unschedulable lots, by what can help them."""
        self._untold: dict[Lot, None] = {}
        self._starved: dict[Lot, None] = {}
        self._starving: Lot | None = None
        self._taken: dict[Key, Lot] = {}
        self._seen: list[tuple[int, Event]] = []
        """What happened while pods were being tried."""
        for pod in pods:
            self._put(pod)

    # What there is

    def __len__(self) -> int:
        return len(self._lot_of)

    @property
    def places(self) -> bool:
        """Whether the configuration wants pending pods to be placed."""
        return self._config.place_pending_pods

    def counts(self) -> dict[str, int]:
        """Pods by what they wait for, as kube-scheduler's `scheduler_pending_pods`."""
        totals: Counter[State] = Counter()
        for lot in self._lots.values():
            totals[lot.state] += len(lot.members)
        names = (State.ACTIVE, State.BACKOFF, State.UNSCHEDULABLE, State.GATED)
        return {state.value: totals[state] for state in names}

    def has_work(self, now: float) -> bool:
        """Whether `take` may have something; it may turn out to be nothing."""
        if not self.places:
            return False
        if self._active or (self._backoff and self._backoff[0][0] <= now):
            return True
        if self._resting and self._early:
            return True
        if self._timed and self._timed[0][0] <= now:
            return True
        return any(lot.new or lot.stale_due <= now for lot in self._untold)

    # What changes

    def observe(self, entries: Sequence[Entry]) -> None:
        """Take note of changes that the log has."""
        events: dict[object, tuple[int, Event]] = {}
        for entry in entries:
            if entry.kind == "Pod":
                self._follow(entry)
            elif entry.kind == "Cluster":
                self._configure(entry)
            elif entry.kind == "PodGroup":
                self._change(GroupRef(*entry.key), entry.revision)
            elif entry.kind == WaitingGroup.kind:
                self._regroup(entry)
            if self._lot_of:
                events.update((e.identity, (entry.revision, e)) for e in events_of(entry))
        for revision, event in events.values():
            if self._taken:
                self._see(revision, event)
            self._wake_by(event)

    def _see(self, revision: int, event: Event) -> None:
        """Remember what happened while pods are being tried; if that is much, that it was much."""
        self._seen.append((revision, event))
        if len(self._seen) > _SEEN_MAX:
            self._seen = [(revision, EVERYTHING)]

    def _follow(self, entry: Entry) -> None:
        after = entry.after.manifest if entry.after else None
        if not self._lots and not (isinstance(after, PodManifest) and after.pod.wants_node):
            return  # Nobody waits, so nobody is helped.
        before = entry.before.manifest if entry.before else None
        self._follow_pod(entry, after)
        old, new = self._membership(before), self._membership(after)
        if old != new:
            for group in {each[0] for each in (old, new) if each is not None}:
                self._change(group, entry.revision)

    def _membership(self, manifest: object) -> tuple[GroupRef, object] | None:
        """The group that a pod is in, with all that matters of the pod to the others."""
        if not isinstance(manifest, PodManifest):
            return None
        group, pod = self._group_of(manifest), manifest.pod
        if group is None:
            return None
        facts = (pod.node_name, pod.terminating, pod.finished, pod.labels, id(manifest.template))
        return group, facts

    def _group_of(self, manifest: PodManifest) -> GroupRef | None:
        return group_of(manifest) or self._waiting.get((manifest.namespace, manifest.name))

    def _change(self, group: GroupRef, revision: int) -> None:
        """Something of a group is another: its members are tried at once."""
        lot = self._lots.get(group)
        if lot is not None:
            self._change_lot(lot, revision)

    def _change_lot(self, lot: Lot, revision: int) -> None:
        lot.changed, lot.failures = revision, 0
        self._untold.pop(lot, None)  # What there is to tell is known after the next attempt.
        if lot.state in (State.UNSCHEDULABLE, State.BACKOFF):
            self._activate(lot)

    def _regroup(self, entry: Entry) -> None:
        """Other pods wait for each other now."""
        before = entry.before.manifest if entry.before else None
        after = entry.after.manifest if entry.after else None
        keys: dict[Key, None] = {}
        if isinstance(before, WaitingGroup):
            keys.update(dict.fromkeys(before.members))
            for key in before.members:
                if self._waiting.get(key) == GroupRef("", before.name):
                    del self._waiting[key]
        if isinstance(after, WaitingGroup):
            keys.update(dict.fromkeys(after.members))
            self._waiting.update(dict.fromkeys(after.members, GroupRef("", after.name)))
        for key in keys:
            if key in self._pods:
                self._put(self._pods[key])
        self._change(GroupRef("", entry.key[1]), entry.revision)

    def _follow_pod(self, entry: Entry, after: object) -> None:
        if isinstance(after, PodManifest) and after.pod.wants_node:
            self._put(after)
            return
        lot = self._lot_of.get(entry.key)
        if lot is not None and after is not None:
            lot.failures, lot.refused = 0, None  # There is room for pods like this one.
        self._remove(entry.key)

    def _configure(self, entry: Entry) -> None:
        """Priorities and known schedulers may be others now."""
        config = getattr(entry.after and entry.after.manifest, "config", None) or ClusterConfig()
        self._config = config
        self._schedulers = config.scheduler_profiles().keys()
        for lot in self._lots.values():
            lot.members = {
                key: (-self._priority(self._pods[key].pod), *order[1:])
                for key, order in lot.members.items()
            }
            lot.heap = sorted(o for key, o in lot.members.items() if key not in self._taken)
            self._sort_in(lot)
        for manifest in list(self._pods.values()):
            self._put(manifest)  # Who waits with a group depends on the known schedulers.

    def retry_all(self) -> None:
        """Try every pod once more, at once."""
        for lot in self._lots.values():
            lot.failures = 0
            self._sort_in(lot)

    def sweep(self, now: float) -> None:
        """Try again what has waited very long since its last attempt, whatever the hints say."""
        long_ago = now - self._limits.pending_retry_seconds
        for lot in self._lots.values():
            if lot.state is State.UNSCHEDULABLE and lot.refused_at <= long_ago:
                self._wake(lot)

    def _put(self, manifest: PodManifest) -> None:
        pod = manifest.pod
        if not pod.wants_node:
            return
        held = bool(pod.spec.scheduling_gates) or pod.spec.scheduler_name not in self._schedulers
        group = None if held else self._group_of(manifest)
        identity: object = group or (
            pod.namespace,
            manifest.template.spec_json,
            frozenset(pod.labels.items()),
            pod.required_node_name,
        )
        key = (pod.namespace, pod.name)
        order = (-self._priority(pod), pod.created, *key)
        known = self._lot_of.get(key)
        if known and known.identity == identity and known.members[key] == order:
            self._pods[key] = manifest
            return  # Only what no rule reads has changed, such as its own condition.
        self._remove(key)
        self._pods[key] = manifest
        lot = self._lots.get(identity)
        if lot is None:
            lot = self._lots[identity] = Lot(identity, pod, group)
            self._sort_in(lot)
        self._lot_of[key] = lot
        lot.members[key] = order
        lot.new[key] = None
        heapq.heappush(lot.heap, order)
        if lot.state is State.ACTIVE:
            self._enter(lot)
        elif lot.state is not State.UNKNOWN:
            self._untold[lot] = None

    def _remove(self, key: Key) -> None:
        lot = self._lot_of.pop(key, None)
        if lot is None:
            return
        del lot.members[key], self._pods[key]
        lot.new.pop(key, None)
        lot.stale.pop(key, None)
        self._taken.pop(key, None)
        if lot.state is State.ACTIVE:
            self._enter(lot)  # The pod may have been the one by which the lot was known.
        if not lot.members:
            self._forget(lot)
            del self._lots[lot.identity]
            lot.state = State.UNKNOWN

    def _priority(self, pod: Pod) -> int:
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self._config.priority_of(pod.spec.priority_class_name) or 0

    def _sort_in(self, lot: Lot) -> None:
        """Put a lot where it belongs, whatever was decided of it before."""
        self._forget(lot)
        if lot.group is not None:
            lot.state = State.ACTIVE
            self._enter(lot)
        elif lot.pod.spec.scheduler_name not in self._schedulers:
            lot.state = State.UNKNOWN
        elif lot.pod.spec.scheduling_gates:
            lot.state = State.GATED
            self._untold[lot] = None
        else:
            lot.state = State.ACTIVE
            self._enter(lot)

    # What is tried

    def take(self, count_max: int, now: float) -> Turn:
        """The pods to try next, and those to tell why they wait, at most so many together.

        None of them is given out again until `conclude`.
        """
        assert not self._taken
        while self._backoff and self._backoff[0][0] <= now:
            _, _, lot = heapq.heappop(self._backoff)
            if lot.state is State.BACKOFF and lot.due <= now:
                self._activate(lot)
        while self._timed and self._timed[0][0] <= now:
            _, _, lot, refused = heapq.heappop(self._timed)
            if lot.state is State.UNSCHEDULABLE and lot.refused is refused:
                self._activate(lot)
        self._starving = self._most_starved()
        first = self._head(self._starving) if self._starving else None
        orders: list[Order] = []
        while len(orders) < count_max and (order := self._next()) is not None:
            orders.append(order)
        behind = sum(first is not None and order <= first for order in orders)
        return Turn(
            tries=tuple((namespace, name) for _, _, namespace, name in orders),
            tells=tuple(self._tells(count_max - len(orders), now)),
            starving=first[2:] if first else None,
            behind=behind,
        )

    def conclude(self, turn: Turn, refusals: Mapping[Key, Refused], now: float) -> None:
        """Learn what became of a turn, after the changes that it made were observed.

        Pods that are neither refused nor gone are tried again.
        """
        refused_lots: dict[Lot, Refused] = {}
        for key in turn.tries:
            lot = self._taken.pop(key, None)
            if lot is None:
                continue
            heapq.heappush(lot.heap, lot.members[key])
            lot.new.pop(key, None)
            if key in refusals:
                refused_lots[lot] = refusals[key]
        for lot in {self._lot_of[key]: None for key in turn.tries if key in self._lot_of}:
            if lot.state is State.ACTIVE:
                self._enter(lot)
        tried = refusals.keys() | turn.tries
        for key in refusals.keys() & self._lot_of.keys():
            self._lot_of[key].new.pop(key, None)  # Tried with the member that stood for its group.
        for lot, refused in refused_lots.items():
            if lot.state is State.ACTIVE:
                self._refuse(lot, refused, tried, now)
        self._seen.clear()

    def give_back(self, turn: Turn, now: float) -> None:
        """Nothing came of a turn; all of it is to be done again."""
        self.conclude(turn, {}, now)
        for tell in turn.tells:
            lot = self._lot_of.get(tell.key)
            if lot is not None:
                lot.new[tell.key] = None
                self._untold[lot] = None

    def _pop(self) -> Order | None:
        """The first pod of all that may be tried.

        Of a lot that was refused before, one pod has to succeed before others follow: a turn for
        each would mean that all of them are told the reasons of the moment (P18).
        """
        while self._active:
            order, _, lot = self._active[0]
            head = self._head(lot) if lot.state is State.ACTIVE else None
            heapq.heappop(self._active)
            if head == order and not (lot.group and lot in self._taken.values()):
                heapq.heappop(lot.heap)
                self._taken[order[2:]] = lot
                if lot.refused is None and lot.group is None:
                    self._enter(lot)
                return order
        return None

    def _next(self) -> Order | None:
        """The next pod to try: of those that are due, and some of those in back-off.

        So a change that can help is offered at once to the first ones, however often they were
        refused; kube-scheduler, too, does not stay idle while pods are in back-off.
        """
        while self._resting and self._early:
            first, _, lot = self._resting[0]
            if self._active and self._active[0][0] < first:
                break
            heapq.heappop(self._resting)
            if lot.state is State.BACKOFF:
                self._early -= 1
                self._activate(lot)
        return self._pop()

    def _head(self, lot: Lot) -> Order | None:
        """The first member that is not being tried."""
        while lot.heap:
            order = lot.heap[0]
            if lot.members.get(order[2:]) == order and order[2:] not in self._taken:
                return order
            heapq.heappop(lot.heap)
        return None

    def _enter(self, lot: Lot) -> None:
        head = self._head(lot)
        if head is not None:
            heapq.heappush(self._active, (head, next(self._numbers), lot))

    # What is refused, and what wakes it

    def _refuse(self, lot: Lot, refused: Refused, tried: AbstractSet[Key], now: float) -> None:
        lot.state = State.UNSCHEDULABLE
        lot.refused, lot.refused_at = refused, now
        lot.failures += 1
        seconds = self._backoff_seconds(lot.failures)
        lot.due = now + (self._limits.pending_backoff_seconds_max if lot.is_costly else seconds)
        if lot.group is not None:
            self._refuse_group(lot, refused, tried, now)
            return
        lot.topics = topics_of(lot.pod, refused)
        for topic in lot.topics:
            self._index.setdefault(topic, {})[lot] = None
        if lot.failures >= self._limits.pending_failures_max and lot.insufficient:
            self._starved[lot] = None
        self._note_reasons(lot, refused, tried, now)
        self._wake_by_seen(lot, refused)

    def _refuse_group(
        self, lot: Lot, refused: Refused, tried: AbstractSet[Key], now: float
    ) -> None:
        """What one member lacks may come by what no hint about it tells: any event can help."""
        if refused.reasons.keys() == {MEMBERS}:
            lot.failures = 0  # Nothing was searched for.
        else:
            self._grouped[lot] = None
        if refused.again_after is not None:
            timed = (now + refused.again_after, next(self._numbers), lot, refused)
            heapq.heappush(self._timed, timed)
        self._note_reasons(lot, refused, tried, now)
        if lot.changed > refused.revision:
            self._change_lot(lot, lot.changed)
        else:
            self._wake_by_seen(lot, refused)

    def _wake_by_seen(self, lot: Lot, refused: Refused) -> None:
        for revision, event in self._seen:
            if revision > refused.revision and self._is_helped(lot, event):
                self._wake(lot)
                break

    def _backoff_seconds(self, failures: int) -> float:
        """None after the first refusal, then 1 s, doubling."""
        limits = self._limits
        doubled = 2.0 ** min(failures - 2, 32) if failures > 1 else 0.0
        return min(limits.pending_backoff_seconds * doubled, limits.pending_backoff_seconds_max)

    def _wake_by(self, event: Event) -> None:
        """Wake the lots that an event can help."""
        if event.plugins is None:
            candidates = list(self._lots.values())
        else:
            candidates = [lot for plugin in event.plugins for lot in self._asking(plugin, event)]
            candidates += self._grouped
        for lot in candidates:
            if lot.state is State.UNSCHEDULABLE and self._is_helped(lot, event):
                self._wake(lot)

    def _asking(self, plugin: str, event: Event) -> list[Lot]:
        """The lots rejected by a plugin that an event may be about."""
        pairs = event.pairs
        if pairs is None:
            return list(self._index.get((plugin, ALL), ()))
        return [lot for pair in (None, *pairs) for lot in self._index.get((plugin, pair), ())]

    def _is_helped(self, lot: Lot, event: Event) -> bool:
        if lot.group is not None:
            return lot in self._grouped
        reasons = lot.refused.reasons if lot.refused else {}
        return event is EVERYTHING or any(
            helps(event, plugin, lot.pod, each) for plugin, each in reasons.items()
        )

    def _wake(self, lot: Lot) -> None:
        """Try an unschedulable lot again, though not before its back-off is over.

        The one that starves is not made to wait: every chance is offered to it first.
        """
        if lot is self._starving or (lot.failures <= 1 and not lot.is_costly):
            self._activate(lot)
            return
        self._unlist(lot)
        lot.state = State.BACKOFF
        heapq.heappush(self._backoff, (lot.due, next(self._numbers), lot))
        head = None if lot.is_costly else self._head(lot)
        if head is not None:
            heapq.heappush(self._resting, (head, next(self._numbers), lot))
            self._early = self._limits.pending_early_tries

    def _activate(self, lot: Lot) -> None:
        self._unlist(lot)
        lot.state = State.ACTIVE
        self._enter(lot)

    def _unlist(self, lot: Lot) -> None:
        self._grouped.pop(lot, None)
        for topic in lot.topics:
            lots = self._index[topic]
            del lots[lot]
            if not lots:
                del self._index[topic]
        lot.topics = frozenset()

    def _forget(self, lot: Lot) -> None:
        """Drop all that was decided of a lot."""
        self._unlist(lot)
        self._untold.pop(lot, None)
        self._starved.pop(lot, None)
        if lot is self._starving:
            self._starving = None

    def _most_starved(self) -> Lot | None:
        """The first of the lots that were refused too often for lack of room."""
        self._starved = {
            lot: None
            for lot in self._starved
            if lot.failures >= self._limits.pending_failures_max and lot.insufficient
        }
        heads = [(head, lot) for lot in self._starved if (head := self._head(lot)) is not None]
        return min(heads, key=lambda each: each[0])[1] if heads else None

    # What is told

    def _note_reasons(
        self, lot: Lot, refused: Refused, tried: AbstractSet[Key], now: float
    ) -> None:
        """Those that were not tried themselves are told; if they were before, not at once (P18)."""
        reasons = refused.reasons.items()
        told = frozenset(f"{plugin}: {reason}" for plugin, each in reasons for reason in each)
        if lot.group is not None:
            told = frozenset({refused.message})
        if told != lot.told:
            lot.told = told
            if lot.told_at is None:
                lot.told_at = now
            if not lot.stale:
                small = lot.group and len(lot.members) <= self._limits.pending_group_told_max
                lot.stale_due = now if small else lot.told_at + self._limits.pending_told_seconds
            lot.stale = {
                key: None for key in lot.members if key not in tried and key not in lot.new
            }
        if lot.new or lot.stale:
            self._untold[lot] = None

    def _tells(self, count_max: int, now: float) -> Iterable[Tell]:
        for lot in list(self._untold):
            while lot.new and count_max > 0:
                count_max -= 1
                yield self._tell(lot, lot.new)
            while lot.stale and lot.stale_due <= now and count_max > 0:
                count_max -= 1
                yield self._tell(lot, lot.stale)
            if not lot.new and not lot.stale:
                lot.told_at = now
                del self._untold[lot]

    def _tell(self, lot: Lot, keys: dict[Key, None]) -> Tell:
        key = next(iter(keys))
        del keys[key]
        if lot.state is State.GATED:
            return Tell(key, "SchedulingGated", "")
        return Tell(key, "Unschedulable", lot.refused.message if lot.refused else "")
