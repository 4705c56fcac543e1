"""One cluster in memory: its objects by kind and key, and the engine's counters over them.

All changes take one path, whether they come from the log or are only tentative. Each is
remembered with what was there before, so the newest can be undone, in reverse order, until the
log has them (`settle`). If anything raises in the middle of a change the replica is worth
nothing any more and has to be dropped: nothing here tries to repair it (P7).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from service.engine import Cluster, digest as counted
from service.model.config import ClusterConfig
from service.model.log import Change, ObjectRow
from service.model.manifest import (
    NamespaceManifest,
    NodeManifest,
    PodGroupManifest,
    PodManifest,
    QuotaManifest,
    TemplateCache,
)
from service.model.objects import ObjectName
from service.scheduler.replica.kinds import (
    ConfigManifest,
    EvictionState,
    StoredManifest,
    WaitingGroup,
    load_manifest,
)
from service.scheduler.replica.pod_groups import Groups
from service.scheduler.replica.quotas import Ledger

"""Namespace and name; the namespace is "" where the kind has none."""


# Structs and not named tuples, which take four times as long to make: each change makes several.


class Stored(msgspec.Struct, frozen=True, gc=False):
    """An object and the revision that last changed it."""

    manifest: StoredManifest
    revision: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One change of the replica: what was there before and what is there after it."""

    revision: int
    kind: str
    key: ObjectName
    before: Stored | None
    after: Stored | None


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A moment in the replica's life to which it can return."""

    position: int
    engine: int
    revision: int


class Replica:
    """The objects of one cluster at `revision`, which runs ahead of the log while tentative."""

    def __init__(self, templates: TemplateCache) -> None:
        self.cluster = Cluster(ClusterConfig())
        self.ledger = Ledger(self.cluster)
        self.groups = Groups()
        self.revision = 0
        self._templates = templates
        self._objects: dict[str, dict[ObjectName, Stored]] = {}
        self._journal: list[Entry] = []
        self._digested: tuple[int, str] | None = None
        """The last digest and its revision."""
        self._settled = 0
        """Entries ever dropped from the journal's start."""
        self.on_settled: Callable[[Sequence[Entry]], None] | None = None
        """Told of every change once the log has it; the replica may be ahead by then."""

    @property
    def committed_revision(self) -> int:
        """The newest revision that the log has for certain: nothing beyond it was settled."""
        return self.revision - len(self._journal)

    @property
    def object_count(self) -> int:
        """How many objects of all kinds there are."""
        return sum(map(len, self._objects.values()))

    @property
    def config(self) -> ClusterConfig:
        """The cluster's configuration."""
        return self.cluster.config

    def get(self, kind: str, namespace: str, name: str) -> Stored | None:
        """The object of this key, if there is one."""
        return self._objects.get(kind, {}).get((namespace, name))

    def pod(self, namespace: str, name: str) -> PodManifest | None:
        """The pod of this name, if there is one."""
        stored = self.get("Pod", namespace, name)
        if stored is None:
            return None
        assert isinstance(stored.manifest, PodManifest)
        return stored.manifest

    def keys(self, kind: str) -> Sequence[ObjectName]:
        """Namespace and name of all objects of a kind, in no order."""
        return tuple(self._objects.get(kind, ()))

    def pending_pods(self) -> Iterator[PodManifest]:
        """All pods without a node, in no order."""
        for stored in self._objects.get("Pod", {}).values():
            if isinstance(stored.manifest, PodManifest) and stored.manifest.pod.node_name is None:
                yield stored.manifest

    def in_namespace(self, namespace: str) -> list[tuple[str, ObjectName]]:
        """Kind and key of all objects in a namespace, in their order."""
        if not namespace:
            return []
        return [
            (kind, key)
            for kind in sorted(self._objects)
            for key in sorted(key for key in self._objects[kind] if key[0] == namespace)
        ]

    # Changes.

    def put(self, manifest: StoredManifest) -> Entry:
        """Add or replace an object, at the next revision."""
        after = Stored(manifest, self.revision + 1)
        key = self.enter(manifest)
        objects = self._objects.setdefault(manifest.kind, {})
        entry = Entry(after.revision, manifest.kind, key, objects.get(key), after)
        objects[key] = after
        self.account(entry.before, after)
        return self._remember(entry)

    def delete(self, kind: str, namespace: str, name: str) -> Entry:
        """Remove an object that is there, at the next revision."""
        key = (namespace, name)
        before = self._objects[kind][key]
        self._leave(before.manifest)
        del self._objects[kind][key]
        self.account(before, None)
        return self._remember(Entry(self.revision + 1, kind, key, before, None))

    def apply(self, change: Change) -> None:
        """Make a change that the log has.

        Raises:
            ValueError: it is not the next one.
        """
        self._check_next(change)
        if change.verb == "Put":
            self.put(load_manifest(change.kind, change.body, self._templates))
        else:
            self.delete(change.kind, change.namespace, change.name)

    def pass_over(self, change: Change) -> None:
        """Leave out a change that the log has, of an object that will be loaded later (P13).

        Raises:
            ValueError: it is not the next one.
        """
        self._check_next(change)
        self.revision = change.revision

    def _check_next(self, change: Change) -> None:
        if change.revision != self.revision + 1:
            raise ValueError(f"The log goes on at {change.revision} after {self.revision}.")

    def arrive(self, revision: int) -> None:
        """What was loaded is as the log has it at this revision, and will never be undone."""
        self.revision = revision
        self.settle_all()

    def load(self, rows: Sequence[ObjectRow]) -> None:
        """Take over objects as they are stored, in the order of their keys.

        The configuration, which decides how all else is compiled, comes before namespaces, these
        before nodes, and nodes before the pods that are counted on them: so do their kinds' names.
        Each step for all of them before the next one: code and data then stay in the processor's
        caches, which saves a sixth of the time.
        """
        manifests = [load_manifest(row.kind, row.body, self._templates) for row in rows]
        keys = [self.enter(manifest) for manifest in manifests]
        for row, key, manifest in zip(rows, keys, manifests, strict=True):
            objects = self._objects.setdefault(row.kind, {})
            stored = objects[key] = Stored(manifest, row.revision)
            self.account(None, stored)
        self.settle_all()

    def mark(self) -> Mark:
        """The present moment, for `undo` and `settle`."""
        return Mark(self._settled + len(self._journal), self.cluster.mark(), self.revision)

    def since(self, mark: Mark) -> list[Entry]:
        """The changes made after a moment."""
        return self._journal[mark.position - self._settled :]

    def until(self, mark: Mark) -> list[Entry]:
        """The changes made up to a moment that are not settled yet."""
        return self._journal[: mark.position - self._settled]

    def undo(self, mark: Mark) -> None:
        """Go back to a moment."""
        self._digested = None
        while self._settled + len(self._journal) > mark.position:
            self.put_back(self._journal.pop())
        self.cluster.undo(mark.engine)
        self.revision = mark.revision

    def put_back(self, entry: Entry) -> None:
        """Have an object, and what is accounted for it, as before a change."""
        objects = self._objects[entry.kind]
        if entry.before is None:
            del objects[entry.key]
        else:
            objects[entry.key] = entry.before
        self.account(entry.after, entry.before)

    def settle(self, mark: Mark) -> None:
        """What was before that moment is in the log and will never be undone."""
        entries = self.until(mark)
        del self._journal[: len(entries)]
        self._settled = mark.position
        self.cluster.settle(mark.engine)
        if entries and self.on_settled is not None:
            self.on_settled(entries)

    def settle_all(self) -> None:
        """Everything up to now is in the log."""
        self.settle(self.mark())

    def digest(self) -> str:
        """Equal replicas, equal digests: of keys and revisions, and after a dash of what is counted."""
        if self._digested is None or self._digested[0] != self.revision:
            self._digested = (self.revision, self._digest())
        return self._digested[1]

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for kind, objects in sorted(self._objects.items()):
            for key, stored in sorted(objects.items()):
                digest.update(msgspec.json.encode((kind, *key, stored.revision)))
        return f"{digest.hexdigest()}-{counted(self.cluster)}"

    def _remember(self, entry: Entry) -> Entry:
        self._journal.append(entry)
        self.revision = entry.revision
        return entry

    def account(self, before: Stored | None, after: Stored | None) -> None:
        """Have quotas charged, and groups told, for an object that came, changed or went."""
        old = before.manifest if before is not None else None
        new = after.manifest if after is not None else None
        self.ledger.change(old, new)
        self.groups.change(old, new)

    def enter(self, manifest: StoredManifest) -> ObjectName:
        """Let the engine know of an object; the object's key, one for all who keep pods by it."""
        match manifest:
            case PodManifest():
                return self.cluster.put_pod(manifest.pod)
            case NodeManifest():
                self.cluster.put_node(manifest.node)
            case NamespaceManifest():
                self.cluster.put_namespace(manifest.namespace_object)
            case ConfigManifest():
                self.cluster.configure(manifest.config)
            case EvictionState():
                pass  # nothing that places pods
            case QuotaManifest():
                pass  # the ledger's
            case PodGroupManifest() | WaitingGroup():
                pass  # the groups'
        return manifest.namespace, manifest.name

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
            case EvictionState():
                pass
            case QuotaManifest():
                pass  # the ledger's
            case PodGroupManifest() | WaitingGroup():
                pass  # the groups'
