"""One cluster in memory: its objects by kind and key, and the engine's counters over them.

All changes take one path, whether they come from the log or are only tentative. Each is recorded
with the previous state, so that changes can be undone, the newest first, until they are in the log
(`settle`). If an error interrupts a change, the replica may be wrong and has to be dropped; no
repair is attempted (protocol rule P7).
"""

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from service.engine import Cluster, digest as counted
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import ObjectName
from service.model.devices.cel_questions import OpenQuestions
from service.model.log.commit import Change, ObjectRow
from service.model.nodes.namespaces import NamespaceManifest
from service.model.pods.pod import Pod
from service.model.registry.manifests import (
    DeclaredManifest,
    NodeManifest,
    PodGroupManifest,
    PodManifest,
    QuotaManifest,
    TemplateCache,
)
from service.scheduler.replica.pod_groups import Groups
from service.scheduler.replica.quotas import Ledger
from service.scheduler.replica.stored_kinds import (
    ConfigManifest,
    EvictionState,
    GroupReservation,
    MoveReservation,
    NodeState,
    SplitGroup,
    StoredManifest,
    WaitingGroup,
    read_row,
)

# These are structs because named tuples take four times as long to make, and each change makes
# several of them.


class Stored(msgspec.Struct, frozen=True, gc=False):
    """An object and the revision that last changed it."""

    manifest: StoredManifest
    revision: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A change of the replica: an object before and after."""

    revision: int
    kind: str
    key: ObjectName
    before: Stored | None
    after: Stored | None


UNDO_STEP = 32
"""How many engine changes one step of an undo reverts."""


def grown_by(entries: Sequence[Entry]) -> int:
    """Return how much some changes increased the number of objects."""
    return sum((entry.after is not None) - (entry.before is not None) for entry in entries)


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A moment in the replica's history to which it can return."""

    position: int
    engine: int
    revision: int


class Replica:
    """The objects of one cluster at `revision`, including tentative changes."""

    def __init__(self, templates: TemplateCache) -> None:
        self.cluster = Cluster(ClusterConfig())
        self.ledger = Ledger(self.cluster)
        self.groups = Groups()
        self.reservations: dict[ObjectName, GroupReservation] = {}
        """The reservations for pods of split groups whose outcome is unknown."""
        self.revision = 0
        self._templates = templates
        self._objects: dict[str, dict[ObjectName, Stored]] = {}
        self._journal: list[Entry] = []
        self._digested: tuple[int, str] | None = None
        """The revision and value of the last digest computed, or None."""
        self._settled = 0
        """The number of entries ever dropped from the journal's start."""
        self.on_committed: Callable[[Sequence[Entry]], None] | None = None
        """Called with changes once they are in the log; the replica may be ahead by then."""

    @property
    def committed_revision(self) -> int:
        """The newest revision known to be in the log."""
        return self.revision - len(self._journal)

    @property
    def object_count(self) -> int:
        """The number of objects of all kinds."""
        return sum(map(len, self._objects.values()))

    def count(self, kind: str) -> int:
        """Return the number of objects of a kind."""
        return len(self._objects.get(kind, ()))

    @property
    def config(self) -> ClusterConfig:
        return self.cluster.config

    @property
    def questions(self) -> OpenQuestions:
        """Decisions' open questions to expressions."""
        return self.cluster.devices.questions

    def get(self, kind: str, namespace: str, name: str) -> Stored | None:
        """Return the object with this key, or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def pod(self, namespace: str, name: str) -> PodManifest | None:
        """Return the pod with this name, or None."""
        stored = self.get("Pod", namespace, name)
        if stored is None:
            return None
        assert isinstance(stored.manifest, PodManifest)
        return stored.manifest

    def node(self, name: str) -> NodeManifest | None:
        """Return the node with this name, or None."""
        stored = self.get(NodeManifest.kind, "", name)
        if stored is None:
            return None
        assert isinstance(stored.manifest, NodeManifest)
        return stored.manifest

    def node_state(self, name: str) -> NodeState | None:
        """Return the stored state of the node with this name, or None."""
        stored = self.get(NodeState.kind, "", name)
        if stored is None:
            return None
        assert isinstance(stored.manifest, NodeState)
        return stored.manifest

    def keys(self, kind: str) -> Sequence[ObjectName]:
        """Return the namespaces and names of all objects of a kind, in no order."""
        return tuple(self._objects.get(kind, ()))

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds that have or once had objects."""
        return tuple(self._objects)

    def objects(self, kind: str) -> Sequence[Stored]:
        """Return all objects of a kind, in no order."""
        return tuple(self._objects.get(kind, {}).values())

    def committed_objects(self) -> dict[str, Sequence[Stored]]:
        """Return all objects by kind as in the log, without tentative changes."""
        objects = {kind: dict(objects_by_key) for kind, objects_by_key in self._objects.items()}
        for entry in reversed(self._journal):
            if entry.before is None:
                del objects[entry.kind][entry.key]
            else:
                objects[entry.kind][entry.key] = entry.before
        return {kind: tuple(objects_by_key.values()) for kind, objects_by_key in objects.items()}

    def pending_pods(self) -> Iterator[PodManifest]:
        """Yield all pods without a node, in no order."""
        for stored in self._objects.get("Pod", {}).values():
            if isinstance(stored.manifest, PodManifest) and stored.manifest.pod.node_name is None:
                yield stored.manifest

    def in_namespace(self, namespace: str) -> list[tuple[str, ObjectName]]:
        """Return the kinds and keys of all objects in a namespace, sorted."""
        if not namespace:
            return []
        return [
            (kind, key)
            for kind in sorted(self._objects)
            for key in sorted(key for key in self._objects[kind] if key[0] == namespace)
        ]

    # Changes

    def put(self, manifest: StoredManifest) -> Entry:
        """Add or replace an object, at the next revision."""
        after = Stored(manifest, self.revision + 1)
        key = self.enter(manifest)
        objects = self._objects.setdefault(manifest.kind, {})
        entry = Entry(after.revision, manifest.kind, key, objects.get(key), after)
        objects[key] = after
        self._remember(entry)
        self.account(entry.before, after)
        return entry

    def delete(self, kind: str, namespace: str, name: str) -> Entry:
        """Delete an existing object, at the next revision."""
        key = (namespace, name)
        before = self._objects[kind][key]
        self._leave(before.manifest)
        del self._objects[kind][key]
        entry = Entry(self.revision + 1, kind, key, before, None)
        self._remember(entry)
        self.account(before, None)
        return entry

    def apply(self, change: Change) -> None:
        """Apply a change that is in the log.

        Raises:
            ValueError: the change is not the next one of the log.
        """
        self._check_next(change)
        if change.verb == "Put":
            self.put(read_row(change, self._templates))
        else:
            self.delete(change.kind, change.namespace, change.name)

    def pass_over(self, change: Change) -> None:
        """Skip a change in the log whose object will be loaded later (protocol rule P13).

        Raises:
            ValueError: the change is not the next one of the log.
        """
        self._check_next(change)
        self.revision = change.revision

    def _check_next(self, change: Change) -> None:
        if change.revision != self.revision + 1:
            raise ValueError(f"The log goes on at {change.revision} after {self.revision}.")

    def arrive(self, revision: int) -> None:
        """Record that the loaded objects are at this revision and will never be undone."""
        self.revision = revision
        self.settle_all()

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Add stored objects, in key order.

        The configuration affects how all other objects are compiled, so it has to come first; then
        namespaces, nodes, and the pods that are counted on them. The order of the kinds' names is
        the same.

        Each step handles all objects before the next step begins, which keeps code and data in the
        processor's caches and saves a sixth of the time.
        """
        manifests = [read_row(row, self._templates) for row in rows]
        keys = [self.enter(manifest) for manifest in manifests]
        for row, key, manifest in zip(rows, keys, manifests, strict=True):
            objects = self._objects.setdefault(row.kind, {})
            stored = objects[key] = Stored(manifest, row.revision)
            self.account(None, stored)
        self.settle_all()

    def adopt(self, objects: Sequence[Stored]) -> None:
        """Add another replica's objects, in the order that `load` requires."""
        for stored in objects:
            manifest = stored.manifest
            key = self.enter(manifest)
            self._objects.setdefault(manifest.kind, {})[key] = stored
            self.account(None, stored)
        self.settle_all()

    def follow(self, entries: Sequence[Entry]) -> None:
        """Apply committed changes of another replica.

        Raises:
            ValueError: the changes are not the next ones of the log.
        """
        for entry in entries:
            if entry.revision != self.revision + 1:
                raise ValueError(f"The log goes on at {entry.revision} after {self.revision}.")
            if entry.after is None:
                self.delete(entry.kind, *entry.key)
            else:
                self.put(entry.after.manifest)
        self.settle_all()

    def mark(self) -> Mark:
        """Return a mark of the current moment, for `undo` and `settle`."""
        return Mark(self._settled + len(self._journal), self.cluster.position, self.revision)

    def tentative(self) -> Sequence[Entry]:
        """Return the changes not known to be in the log, oldest first."""
        return tuple(self._journal)

    def since(self, mark: Mark) -> list[Entry]:
        """Return the changes made after a mark."""
        return self._journal[mark.position - self._settled :]

    def until(self, mark: Mark) -> list[Entry]:
        """Return the uncommitted changes made before a mark."""
        return self._journal[: mark.position - self._settled]

    def undo(self, mark: Mark) -> None:
        """Undo all changes since a mark."""
        self._undo_objects(mark)
        self.cluster.undo(mark.engine)

    def undoing(self, mark: Mark) -> Generator[None, None, None]:
        """Undo all changes since a mark in steps; meanwhile, read only committed objects."""
        self._undo_objects(mark)
        while self.cluster.position - mark.engine > UNDO_STEP:
            self.cluster.undo(self.cluster.position - UNDO_STEP)
            yield
        self.cluster.undo(mark.engine)

    def _undo_objects(self, mark: Mark) -> None:
        self._digested = None
        while self._settled + len(self._journal) > mark.position:
            self.put_back(self._journal.pop())
        self.revision = mark.revision

    def put_back(self, entry: Entry) -> None:
        """Restore an object as it was before a change, and update quotas and groups."""
        objects = self._objects[entry.kind]
        if entry.before is None:
            del objects[entry.key]
        else:
            objects[entry.key] = entry.before
        if entry.kind == GroupReservation.kind:
            self._put_back_reservation(entry)
        self.account(entry.after, entry.before)

    def _put_back_reservation(self, entry: Entry) -> None:
        before = entry.before.manifest if entry.before is not None else None
        if isinstance(before, GroupReservation):
            self.reservations[entry.key] = before
        else:
            del self.reservations[entry.key]

    def settle(self, mark: Mark) -> None:
        """Record that all changes before a mark are in the log and will never be undone."""
        entries = self.until(mark)
        del self._journal[: len(entries)]
        self._settled = mark.position
        self.cluster.commit_until(mark.engine)
        if entries and self.on_committed is not None:
            self.on_committed(entries)

    def settle_all(self) -> None:
        """Record that all changes so far are in the log."""
        self.settle(self.mark())

    def digest(self) -> str:
        """Return a hash that is equal for equal replicas.

        The value is a hash of all keys and revisions, a dash, and a hash of all engine counters.
        """
        if self._digested is None or self._digested[0] != self.revision:
            self._digested = (self.revision, self._digest())
        return self._digested[1]

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for kind, objects in sorted(self._objects.items()):
            for key, stored in sorted(objects.items()):
                digest.update(msgspec.json.encode((kind, *key, stored.revision)))
        return f"{digest.hexdigest()}-{counted(self.cluster)}"

    def _remember(self, entry: Entry) -> None:
        self._journal.append(entry)
        self.revision = entry.revision

    def account(self, before: Stored | None, after: Stored | None) -> None:
        """Update quotas and groups for a created, changed, or deleted object."""
        old = before.manifest if before is not None else None
        new = after.manifest if after is not None else None
        present = new or old
        if not isinstance(present, PodManifest):
            self.ledger.change(old, new)
            self.groups.change(old, new)
            return
        if self.ledger.accounts:
            self.ledger.change(old, new)
        if present.is_in_group or (isinstance(old, PodManifest) and old.is_in_group):
            self.groups.change(old, new)

    def enter(self, manifest: StoredManifest) -> ObjectName:
        """Pass an object to the engine; return its key, a shared tuple that saves memory."""
        match manifest:
            case PodManifest():
                pod = self.counted(manifest) if self.reservations else manifest.pod
                return self.cluster.put_pod(pod)
            case NodeManifest():
                self.cluster.put_node(manifest.node)
            case NamespaceManifest():
                self.cluster.put_namespace(manifest.namespace_object)
            case ConfigManifest():
                self.cluster.configure(manifest.config)
            case DeclaredManifest():
                self.cluster.put_object(manifest.kept)
            case MoveReservation():
                self.cluster.reserve(
                    _moved(manifest), None if manifest.came_to else manifest.node_name
                )
            case GroupReservation():
                self._reserve(manifest)
            case EvictionState() | NodeState() | SplitGroup():
                pass  # The engine does not need this object to place pods.
            case QuotaManifest() | PodGroupManifest() | WaitingGroup():
                pass  # tracked by the ledger and the groups
        return manifest.namespace, manifest.name

    def counted(self, manifest: PodManifest) -> Pod:
        """Return a pod as rules count it: on its reserved node, if it has one."""
        reservation = self.reservations.get((manifest.namespace, manifest.name))
        pod = manifest.pod
        if reservation is None or pod.uid != reservation.pod_uid or pod.node_name is not None:
            return pod
        return replace(pod, node_name=reservation.node_name, required_node_name=None)

    def end_reservation(self, key: ObjectName) -> None:
        """Delete a deleted pod's reservation, so that no later pod of its name gets it."""
        reservation = self.reservations.get(key)
        if reservation is not None:
            self.delete(reservation.kind, *key)

    def _reserve(self, reservation: GroupReservation) -> None:
        self.reservations[reservation.namespace, reservation.name] = reservation
        self._count_anew(reservation)

    def _unreserve(self, reservation: GroupReservation) -> None:
        del self.reservations[reservation.namespace, reservation.name]
        self._count_anew(reservation)

    def _count_anew(self, reservation: GroupReservation) -> None:
        manifest = self.pod(reservation.namespace, reservation.name)
        if manifest is not None:
            self.cluster.put_pod(self.counted(manifest))

    def _leave(self, manifest: StoredManifest) -> None:
        match manifest:
            case PodManifest():
                self.cluster.delete_pod(manifest.namespace, manifest.name)
            case NodeManifest():
                self.cluster.delete_node(manifest.name)
            case NamespaceManifest():
                self.cluster.delete_namespace(manifest.name)
            case ConfigManifest():
                self.cluster.configure(ClusterConfig())
            case DeclaredManifest():
                self.cluster.delete_object(manifest.kind, manifest.namespace, manifest.name)
            case MoveReservation():
                self.cluster.reserve(_moved(manifest), None)
            case GroupReservation():
                self._unreserve(manifest)
            case EvictionState() | NodeState() | SplitGroup():
                pass
            case QuotaManifest() | PodGroupManifest() | WaitingGroup():
                pass  # tracked by the ledger and the groups


def _moved(reservation: MoveReservation) -> Pod:
    """Return the replacement of a moved pod, as the engine sees it."""
    return replace(reservation.pod.pod, node_name=None, nominated_node_name=None)
