"""The queue of pods waiting for a node: which to try next, and which conditions to update.

    put ──▶ ACTIVE ──take──▶ (being tried) ──placed──▶ gone
              ▲  ▲                 │ refused
              │  └──backoff over── BACKOFF ◀──┐
              └────────────────────┴── a change that can help ── UNSCHEDULABLE

Pods that no rule can distinguish form an *equivalence class*: what is decided about one holds for
all until something changes, so ten thousand equal pods cost one attempt. The pods of a class are
tried in order. The members of a group form one equivalence class, too: its first pod represents
them all.

The queue does no I/O and has no clock: it is filled from the replica, follows the changes in the
log, and gets the time as an argument. It can be dropped at any moment and rebuilt from the pods
without a node.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from service.engine.framework.events import ClusterEvent
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import ObjectName
from service.model.pods.annotated_rules import annotation_of
from service.model.pods.pod import Pod
from service.model.pods.scheduling_groups import WORKLOAD
from service.model.registry.manifests import PodManifest
from service.scheduler.pending.backoff import Backoff
from service.scheduler.pending.condition_updates import ConditionUpdates
from service.scheduler.pending.equivalence_classes import EquivalenceClass, Order, State
from service.scheduler.pending.hint_index import QueueingHintIndex
from service.scheduler.pending.occupancy import Occupancies
from service.scheduler.pending.queueing_hints import EVERYTHING, MEMBERS, events_of, identity_of
from service.scheduler.pending.starvation import Starvation
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import Attempts, Refused
from service.scheduler.replica.pod_groups import GroupRef, group_of
from service.scheduler.replica.replica import Entry
from service.scheduler.replica.stored_kinds import GroupReservation, StoredManifest, WaitingGroup

_SEEN_MAX = 1_000
SUSPECTS_AFTER_SECONDS = 5.0
"""Pods that may have killed a worker are tried this long after a process's first attempts."""
_LAST = 2**32
"""Replaces the priority in the sort key of a pod that is tried last, and alone."""


class MissedWakeup(NamedTuple):
    """A pod that was placed though no event had woken it."""

    key: ObjectName
    plugins: tuple[str, ...]
    """The plugins that had refused the pod, one of which missed an event."""


def _nobody(_pod: PodManifest) -> bool:
    return False


class PendingQueue:
    """The pending pods of one cluster. All times are in the clock's monotonic seconds."""

    def __init__(self, limits: Limits, is_suspect: Callable[[PodManifest], bool] = _nobody) -> None:
        """Create an empty queue; `is_suspect` returns whether a pod may have killed a worker."""
        self._limits = limits
        self._is_suspect = is_suspect
        self._suspects_from: float | None = None
        self.reset((), ClusterConfig())

    def reset(
        self,
        pods: Iterable[PodManifest],
        config: ClusterConfig,
        groups: Iterable[WaitingGroup] = (),
        reservations: Mapping[ObjectName, GroupReservation] = MappingProxyType({}),
    ) -> None:
        """Start over with these pods, ignoring those that have a node."""
        pods = tuple(pods)
        self._config = config
        self._schedulers = config.scheduler_profiles().keys()
        self._equivalences: dict[object, EquivalenceClass] = {}
        self._equivalence_of: dict[ObjectName, EquivalenceClass] = {}
        self._pods: dict[ObjectName, PodManifest] = {}
        self._waiting: dict[ObjectName, GroupRef] = {
            key: GroupRef("", group.name) for group in groups for key in group.members
        }
        """The group of each pod that a request asked to be placed all or none."""
        self._timed: list[tuple[float, int, EquivalenceClass, Refused]] = []
        """The classes to retry at a fixed time: groups, whose message changes then, and pods that
        wait for the eviction budget."""
        self._active: list[tuple[Order, int, EquivalenceClass]] = []
        self._index = QueueingHintIndex()
        self._backoff = Backoff(self._limits)
        self._starvation = Starvation(self._limits.pending_failures_max)
        self._kept_for: tuple[EquivalenceClass, Order] | None = None
        """The starving pod, with its class, for which the last attempts kept room."""
        self._updates = ConditionUpdates(self._limits)
        self._occupancies = Occupancies()
        self._occupancies.load(reservations, pods)
        self._numbers = count()
        self._taken: dict[ObjectName, EquivalenceClass] = {}
        self._swept: dict[EquivalenceClass, None] = {}
        """The classes to be tried only because much time has passed since they were refused."""
        self._missed: list[MissedWakeup] = []
        self._seen: list[tuple[int, ClusterEvent]] = []
        """The events seen while pods were being tried, with their revisions."""
        for pod in pods:
            self._put(pod)

    # Pods

    def __len__(self) -> int:
        return len(self._equivalence_of)

    def __contains__(self, key: ObjectName) -> bool:
        return key in self._equivalence_of

    def equivalences(self) -> Collection[EquivalenceClass]:
        """Return the equivalence classes of all waiting pods."""
        return self._equivalences.values()

    @property
    def places(self) -> bool:
        """Whether Moorage places the cluster's pending pods, according to its configuration."""
        return self._config.place_pending_pods

    @property
    def starving(self) -> Order | None:
        """The pod for which room is kept, and which other pods may not take, or None."""
        chosen = self._starvation.chosen
        return None if chosen is None or self._starvation.is_over else chosen[1]

    def counts(self) -> dict[str, int]:
        """Count the pods by state, like kube-scheduler's `scheduler_pending_pods`."""
        totals: Counter[State] = Counter()
        for equivalence in self._equivalences.values():
            totals[equivalence.state] += len(equivalence.members)
        names = (State.ACTIVE, State.BACKOFF, State.UNSCHEDULABLE, State.GATED)
        return {state.value: totals[state] for state in names}

    def has_work(self, now: float) -> bool:
        """Return whether calling `take` is worthwhile; it may still find nothing to do."""
        if not self._equivalence_of or not self.places:
            return False
        if self._active or self._backoff.has_work(now):
            return True
        if self._timed and self._timed[0][0] <= now:
            return True
        return self._updates.are_due(now)

    # Changes

    def observe(self, entries: Sequence[Entry]) -> None:
        """Process changes that are in the log."""
        events: dict[object, tuple[int, ClusterEvent]] = {}
        for entry in entries:
            caused = self._occupancies.follow(entry, self._pods)
            self._observe(entry)
            if self._equivalence_of:
                caused += events_of(entry)
                events.update((identity_of(event), (entry.revision, event)) for event in caused)
        for revision, event in events.values():
            if self._taken:
                self._see(revision, event)
            self._excuse(event)
            self._wake_by(event)
        if self._starvation.is_over:
            self._release()

    def _observe(self, entry: Entry) -> None:
        """Process the change of an object that itself waits, or says how pods wait."""
        if entry.kind == "Pod":
            self._follow(entry)
        elif entry.kind == "Cluster":
            self._configure(entry)
        elif entry.kind == "PodGroup":
            self._change(GroupRef(*entry.key), entry.revision)
        elif entry.kind == WORKLOAD.kind:
            self._change_workload(entry)
        elif entry.kind == WaitingGroup.kind:
            self._regroup(entry)
        elif entry.kind == GroupReservation.kind and entry.key in self._pods:
            self._put(self._pods[entry.key])

    def _see(self, revision: int, event: ClusterEvent) -> None:
        """Remember an event while pods are being tried, collapsing too many into EVERYTHING."""
        self._seen.append((revision, event))
        if len(self._seen) > _SEEN_MAX:
            self._seen = [(revision, EVERYTHING)]

    def _follow(self, entry: Entry) -> None:
        after = entry.after.manifest if entry.after else None
        if not self._equivalences:
            pod = after.pod if isinstance(after, PodManifest) else None
            if pod is None or pod.node_name is not None or not pod.wants_node:
                return  # No pod is waiting, so the event can help none.
        before = entry.before.manifest if entry.before else None
        self._follow_pod(entry, after)
        old, new = self._membership(before), self._membership(after)
        if old != new:
            for group in {membership[0] for membership in (old, new) if membership is not None}:
                self._change(group, entry.revision)

    def _membership(self, manifest: object) -> tuple[GroupRef, object] | None:
        """Return a pod's group and the facts that matter to other members, or None."""
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
        """Schedule an immediate try of a changed group."""
        equivalence = self._equivalences.get(group)
        if equivalence is not None:
            self._change_equivalence(equivalence, revision)

    def _change_workload(self, entry: Entry) -> None:
        """Schedule an immediate try of all groups of a changed Workload."""
        groups = [
            equivalence.group
            for equivalence in self._equivalences.values()
            if equivalence.group is not None
        ]
        for group in groups:
            if group.workload and (group.namespace, group.workload) == entry.key:
                self._change(group, entry.revision)

    def _change_equivalence(self, equivalence: EquivalenceClass, revision: int) -> None:
        equivalence.changed, equivalence.failures = revision, 0
        self._swept.pop(equivalence, None)
        # The next attempt sets the reasons in the conditions.
        self._updates.drop(equivalence)
        if equivalence.state in (State.UNSCHEDULABLE, State.BACKOFF):
            self._activate(equivalence)

    def _regroup(self, entry: Entry) -> None:
        """Process the change of a waiting group, whose members now wait for each other."""
        before = entry.before.manifest if entry.before else None
        after = entry.after.manifest if entry.after else None
        keys: dict[ObjectName, None] = {}
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

    def _follow_pod(self, entry: Entry, after: StoredManifest | None) -> None:
        if isinstance(after, PodManifest) and after.pod.wants_node:
            self._put(after)
            return
        equivalence = self._equivalence_of.get(entry.key)
        if equivalence is not None and after is not None:
            self._note_missed(equivalence, entry.key, after)
            # A pod like these was placed, so the others may fit, too.
            equivalence.failures, equivalence.refused = 0, None
        self._remove(entry.key)

    def _note_missed(
        self, equivalence: EquivalenceClass, key: ObjectName, after: StoredManifest
    ) -> None:
        """Note a pod that is being tried only because of a sweep, and was placed."""
        is_placed = isinstance(after, PodManifest) and after.pod.node_name is not None
        is_swept = equivalence in self._swept
        if is_swept and is_placed and equivalence in self._taken.values():
            reasons = equivalence.refused.reasons if equivalence.refused else {}
            self._missed.append(MissedWakeup(key, tuple(reasons)))
        self._swept.pop(equivalence, None)

    def _excuse(self, event: ClusterEvent) -> None:
        """Note that an event would have woken some swept classes, which are awake already."""
        for equivalence in list(self._swept):
            refused = equivalence.refused
            if (
                equivalence.group is not None
                or refused is None
                or refused.is_held_back
                or self._index.is_helped(equivalence, event)
            ):
                del self._swept[equivalence]

    def _configure(self, entry: Entry) -> None:
        """Sort all pods again, since priorities and known schedulers may have changed."""
        config = getattr(entry.after and entry.after.manifest, "config", None) or ClusterConfig()
        self._config = config
        self._schedulers = config.scheduler_profiles().keys()
        self._swept.clear()
        for equivalence in self._equivalences.values():
            equivalence.members = {
                key: (self._rank(self._pods[key]), *order[1:])
                for key, order in equivalence.members.items()
            }
            equivalence.heap = sorted(
                o for key, o in equivalence.members.items() if key not in self._taken
            )
            self._sort_in(equivalence)
        self.sort_anew()  # The known schedulers determine which pods wait with a group.

    def sort_anew(self) -> None:
        """Sort all pods into their classes, and the classes into order, again."""
        for manifest in list(self._pods.values()):
            self._put(manifest)

    def retry_all(self) -> None:
        """Schedule an immediate retry of every pod."""
        for equivalence in self._equivalences.values():
            equivalence.failures = 0
            self._sort_in(equivalence)

    def sweep(self, now: float) -> None:
        """Wake pods whose last attempt was very long ago, even if no event seems to help them.

        If one of them is placed, an event was missed, which `take_missed` returns.
        """
        long_ago = now - self._limits.pending_retry_seconds
        for equivalence in self._equivalences.values():
            if equivalence.state is State.UNSCHEDULABLE and equivalence.refused_at <= long_ago:
                # Otherwise, it may be time itself that lets the pod fit, such as an extender's.
                if equivalence.refused is not None and equivalence.refused.again_after is None:
                    self._swept[equivalence] = None
                self._wake(equivalence)

    def take_missed(self) -> list[MissedWakeup]:
        """Return, once, the pods that were placed though no event had woken them."""
        missed, self._missed = self._missed, []
        return missed

    def _put(self, manifest: PodManifest) -> None:
        pod = manifest.pod
        if not pod.wants_node:
            return
        key = (pod.namespace, pod.name)
        held = bool(pod.spec.scheduling_gates) or pod.spec.scheduler_name not in self._schedulers
        group = None if held else self._group_of(manifest)
        identity: object = group or (
            pod.namespace,
            manifest.template.spec_json,
            # The pod's rules outside its spec.
            annotation_of(pod.spec),
            frozenset(pod.labels.items()),
            pod.required_node_name,
            pod.controller,
            pod.name if any(volume.ephemeral is not None for volume in pod.spec.volumes) else None,
            pod.device_claims,
            # Room kept for one pod is not available to equal pods.
            (pod.nominated_node_name or self._occupancies.is_reserved(key)) and pod.name,
        )
        order = (self._rank(manifest), pod.created, *key)
        known = self._equivalence_of.get(key)
        if known and known.identity == identity and known.members[key] == order:
            self._pods[key] = manifest
            return  # Only fields that no rule reads have changed, such as its own condition.
        self._remove(key)
        self._pods[key] = manifest
        equivalence = self._equivalences.get(identity)
        if equivalence is None:
            equivalence = self._equivalences[identity] = EquivalenceClass(identity, pod, group)
            self._sort_in(equivalence)
        self._equivalence_of[key] = equivalence
        equivalence.members[key] = order
        equivalence.new[key] = None
        heapq.heappush(equivalence.heap, order)
        if equivalence.state is State.ACTIVE:
            self._enter(equivalence)
        elif equivalence.state is not State.UNKNOWN:
            self._updates.put(equivalence)

    def _remove(self, key: ObjectName) -> None:
        equivalence = self._equivalence_of.pop(key, None)
        if equivalence is None:
            return
        del equivalence.members[key], self._pods[key]
        equivalence.new.pop(key, None)
        equivalence.stale.pop(key, None)
        self._taken.pop(key, None)
        if equivalence.state is State.ACTIVE:
            # The pod may have been the head of its equivalence class.
            self._enter(equivalence)
        if not equivalence.members:
            self._forget(equivalence)
            self._swept.pop(equivalence, None)
            del self._equivalences[equivalence.identity]
            equivalence.state = State.UNKNOWN

    def _rank(self, manifest: PodManifest) -> int:
        return _LAST if self._is_suspect(manifest) else -self._priority(manifest.pod)

    def _priority(self, pod: Pod) -> int:
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self._config.priority_of(pod.spec.priority_class_name) or 0

    def _sort_in(self, equivalence: EquivalenceClass) -> None:
        """Move an equivalence class to its proper state, ignoring earlier decisions."""
        self._forget(equivalence)
        if equivalence.group is not None:
            equivalence.state = State.ACTIVE
            self._enter(equivalence)
        elif equivalence.pod.spec.scheduler_name not in self._schedulers:
            equivalence.state = State.UNKNOWN
        elif equivalence.pod.spec.scheduling_gates:
            equivalence.state = State.GATED
            self._updates.put(equivalence)
        else:
            equivalence.state = State.ACTIVE
            self._enter(equivalence)

    # Attempts

    def take(self, count_max: int, now: float) -> Attempts:
        """Return the next pods to try and conditions to update, at most `count_max` in total.

        The pods are not returned again until `conclude` is called.
        """
        assert not self._taken
        for equivalence in self._backoff.take(now):
            self._activate(equivalence)
        while self._timed and self._timed[0][0] <= now:
            _, _, equivalence, refused = heapq.heappop(self._timed)
            if equivalence.state is State.UNSCHEDULABLE and equivalence.refused is refused:
                self._activate(equivalence)
        first = self._choose_starving()
        if self._suspects_from is None:
            self._suspects_from = now + SUSPECTS_AFTER_SECONDS
        orders: list[Order] = []
        while len(orders) < count_max and (order := self._next(orders, now)) is not None:
            orders.append(order)
            if order[0] == _LAST:
                break
        behind = sum(first is not None and order <= first for order in orders)
        return Attempts(
            tries=tuple((namespace, name) for _, _, namespace, name in orders),
            condition_updates=tuple(self._updates.take(count_max - len(orders), now)),
            starving=first[2:] if first else None,
            behind=behind,
        )

    def conclude(
        self, attempts: Attempts, refusals: Mapping[ObjectName, Refused], now: float
    ) -> None:
        """Record the results of attempts, after observing the changes that the attempts made.

        Pods that are neither refused nor gone are tried again.
        """
        refused_classes: dict[EquivalenceClass, Refused] = {}
        for key in attempts.tries:
            equivalence = self._taken.pop(key, None)
            if equivalence is None:
                continue
            heapq.heappush(equivalence.heap, equivalence.members[key])
            equivalence.new.pop(key, None)
            if key in refusals:
                refused_classes[equivalence] = refusals[key]
        for equivalence in {
            self._equivalence_of[key]: None for key in attempts.tries if key in self._equivalence_of
        }:
            if equivalence.state is State.ACTIVE:
                self._enter(equivalence)
        tried = refusals.keys() | attempts.tries
        for key in refusals.keys() & self._equivalence_of.keys():
            # This pod was tried with the member that represents their group.
            self._equivalence_of[key].new.pop(key, None)
        for equivalence, refused in refused_classes.items():
            if equivalence.state is State.ACTIVE:
                self._refuse(equivalence, refused, tried, now)
        self._seen.clear()
        self._choose_starving()

    def give_back(self, attempts: Attempts, now: float) -> None:
        """Put back attempts that could not be made, to be retried."""
        self.conclude(attempts, {}, now)
        for update in attempts.condition_updates:
            equivalence = self._equivalence_of.get(update.key)
            if equivalence is not None:
                equivalence.new[update.key] = None
                self._updates.put(equivalence)

    def _may_be_next(self, order: Order, before: Sequence[Order], now: float) -> bool:
        """Return whether a pod may be tried after others, given that it might kill a worker."""
        if order[0] != _LAST:
            return True
        assert self._suspects_from is not None
        return not before and now >= self._suspects_from

    def _pop(self, before: Sequence[Order], now: float) -> Order | None:
        """Return the first pod that may be tried now, or None.

        If an equivalence class was refused before, one of its pods has to succeed before others
        follow: otherwise all their conditions would be updated with momentary reasons (protocol
        rule P18).
        """
        while self._active:
            order, _, equivalence = self._active[0]
            head = self._head(equivalence) if equivalence.state is State.ACTIVE else None
            if head == order and not self._may_be_next(order, before, now):
                return None
            heapq.heappop(self._active)
            if head == order and not (equivalence.group and equivalence in self._taken.values()):
                heapq.heappop(equivalence.heap)
                self._taken[order[2:]] = equivalence
                if equivalence.refused is None and equivalence.group is None:
                    self._enter(equivalence)
                return order
        return None

    def _next(self, before: Sequence[Order], now: float) -> Order | None:
        """Return the next pod to try, either due or among the first in back-off, or None."""
        while early := self._backoff.take_early(self._active[0][0] if self._active else None):
            self._activate(early)
        return self._pop(before, now)

    def _head(self, equivalence: EquivalenceClass) -> Order | None:
        """Return the first member that is not being tried, or None."""
        while equivalence.heap:
            order = equivalence.heap[0]
            if equivalence.members.get(order[2:]) == order and order[2:] not in self._taken:
                return order
            heapq.heappop(equivalence.heap)
        return None

    def _enter(self, equivalence: EquivalenceClass) -> None:
        head = self._head(equivalence)
        if head is not None:
            heapq.heappush(self._active, (head, next(self._numbers), equivalence))

    # Starvation

    def _choose_starving(self) -> Order | None:
        """Choose the pod for which room is kept; wake those held back if it is another one."""
        first = self._starvation.choose(self._head)
        if self._starvation.chosen != self._kept_for:
            self._kept_for = self._starvation.chosen
            self._release()
        return first

    def _release(self) -> None:
        """Wake the pods that were refused because of a starving pod that needs no room now."""
        for equivalence in self._index.held_back():
            if equivalence.state is State.UNSCHEDULABLE:
                self._wake(equivalence)

    # Refusals

    def _refuse(
        self,
        equivalence: EquivalenceClass,
        refused: Refused,
        tried: AbstractSet[ObjectName],
        now: float,
    ) -> None:
        equivalence.state = State.UNSCHEDULABLE
        self._swept.pop(equivalence, None)
        equivalence.refused, equivalence.refused_at = refused, now
        equivalence.failures += 1
        self._backoff.begin(equivalence, now)
        if refused.again_after is not None:
            timed = (now + refused.again_after, next(self._numbers), equivalence, refused)
            heapq.heappush(self._timed, timed)
        if equivalence.group is not None:
            self._refuse_group(equivalence, refused, tried, now)
            return
        if refused.is_held_back:
            self._index.put_held_back(equivalence)
        else:
            self._index.put(equivalence, refused)
        self._starvation.note(equivalence)
        self._updates.note(equivalence, refused, tried, now)
        self._wake_by_seen(equivalence, refused)

    def _refuse_group(
        self,
        equivalence: EquivalenceClass,
        refused: Refused,
        tried: AbstractSet[ObjectName],
        now: float,
    ) -> None:
        """Record a group's refusal; any event may help it unless members are missing."""
        if refused.reasons.keys() == {MEMBERS}:
            equivalence.failures = 0  # Members are missing, so no nodes were searched.
        else:
            self._index.put_group(equivalence)
            if refused.is_held_back:
                self._index.put_held_back(equivalence)
        self._updates.note(equivalence, refused, tried, now)
        if equivalence.changed > refused.revision:
            self._change_equivalence(equivalence, equivalence.changed)
        else:
            self._wake_by_seen(equivalence, refused)

    def _wake_by_seen(self, equivalence: EquivalenceClass, refused: Refused) -> None:
        for revision, event in self._seen:
            if revision > refused.revision and self._index.is_helped(equivalence, event):
                self._wake(equivalence)
                break

    def _wake_by(self, event: ClusterEvent) -> None:
        """Wake the equivalence classes that an event can help."""
        for equivalence in self._index.concerned(event, self._equivalences.values()):
            if equivalence.state is State.UNSCHEDULABLE and self._index.is_helped(
                equivalence, event
            ):
                self._wake(equivalence)

    def _wake(self, equivalence: EquivalenceClass) -> None:
        """Schedule an unschedulable equivalence class for a retry when its back-off is over.

        The starving class does not wait for its back-off.
        """
        at_once = equivalence.failures <= 1 and not equivalence.is_costly
        if at_once or self._starvation.is_chosen(equivalence):
            self._activate(equivalence)
            return
        self._index.drop(equivalence)
        self._backoff.put(equivalence, self._head(equivalence))

    def _activate(self, equivalence: EquivalenceClass) -> None:
        self._index.drop(equivalence)
        equivalence.state = State.ACTIVE
        self._enter(equivalence)

    def _forget(self, equivalence: EquivalenceClass) -> None:
        """Drop everything recorded about past decisions for an equivalence class."""
        self._index.drop(equivalence)
        self._updates.drop(equivalence)
        self._starvation.forget(equivalence)
