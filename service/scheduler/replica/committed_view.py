"""The pods and nodes of a replica without its tentative changes, for lists with filters.

Nothing is kept before the first list asks, so a cluster that nobody lists in this way pays nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from service.model.core.primitives import ObjectName
from service.model.manifests.manifest import NodeManifest, PodManifest
from service.model.selecting_objects.object_filters import ObjectFilter
from service.model.selecting_objects.selectable_fields import NODE_NAME, PHASE, phase_of
from service.scheduler.replica.replica import Entry, Replica, Stored

INDEXED_KINDS = frozenset({PodManifest.kind, NodeManifest.kind})
"""The kinds of which a cluster may have very many objects."""

Group = tuple[str, ...]
"""The kind of some objects and, after it, what they have in common: a namespace, a node, a phase or a label."""

_NAMESPACE, _LABEL = "namespace", "label"
_GROUPED_AT_ONCE = 30
"""So many objects take about a quarter of a millisecond."""


class CommittedObjects:
    """Pods and nodes as the log has them, in groups that filters ask for."""

    def __init__(self) -> None:
        self.heeds_arrivals = False
        self.are_grouped = False
        self._groups: dict[Group, dict[ObjectName, Stored]] = {}
        self._grouping = asyncio.Lock()
        self._meanwhile: list[Entry] | None = None
        """The changes that came while the groups are made; None if they are not being made."""

    def drop(self) -> None:
        """Forget everything, as the replica is given up."""
        self.heeds_arrivals, self.are_grouped, self._groups, self._meanwhile = (
            False,
            False,
            {},
            None,
        )

    def loaded(self, replica: Replica) -> None:  # noqa: ARG002 - it is passed when groups are asked for
        """Begin anew with a replica of which nothing is tentative."""
        self.drop()

    def settled(self, entries: Sequence[Entry]) -> None:
        """Take in changes that are in the log."""
        if self.are_grouped:
            self._follow(entries)
        elif self._meanwhile is not None:
            self._meanwhile.extend(entries)

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind in INDEXED_KINDS:
                self._change(entry.key, entry.before, entry.after)

    async def group(self, replica: Replica) -> None:
        """Make the groups of the replica that was loaded last, a few objects at a time, if they are not there.

        Others may use the event loop in between, and the replica goes on. They are not there after
        this if it was given up meanwhile.
        """
        async with self._grouping:
            if self.are_grouped:
                return
            meanwhile = self._meanwhile = list[Entry]()
            self.heeds_arrivals = True
            tentative = replica.tentative()
            present = [each for kind in INDEXED_KINDS for each in replica.objects(kind)]
            for number, stored in enumerate(present, start=1):
                self._change((stored.manifest.namespace, stored.manifest.name), None, stored)
                if number % _GROUPED_AT_ONCE == 0:
                    await asyncio.sleep(0)
                    if self._meanwhile is not meanwhile:
                        return
            for entry in reversed(tentative):
                if entry.kind in INDEXED_KINDS:
                    self._change(entry.key, entry.after, entry.before)
            self._follow(meanwhile)
            self.are_grouped, self._meanwhile = True, None

    def candidates(self, kind: str, wanted: ObjectFilter, namespace: str | None) -> list[Stored]:
        """Return all objects of a kind that may pass a filter, in no order, as they are in the log.

        They are the smallest group that has all of these; the groups have to be there.
        """
        assert self.are_grouped
        nothing: Mapping[ObjectName, Stored] = {}
        groups = [self._groups.get(each, nothing) for each in _asked(kind, wanted, namespace)]
        return list(min(groups, key=len).values())

    def _change(self, key: ObjectName, before: Stored | None, after: Stored | None) -> None:
        if before is not None:
            for each in _groups_of(before):
                group = self._groups[each]
                del group[key]
                if not group:  # groups come and go without end
                    del self._groups[each]
        if after is not None:
            for each in _groups_of(after):
                self._groups.setdefault(each, {})[key] = after


def _groups_of(stored: Stored) -> Iterator[Group]:
    """Return the groups that an object is in."""
    manifest = stored.manifest
    kind = manifest.kind
    yield (kind,)
    if isinstance(manifest, PodManifest):
        yield kind, _NAMESPACE, manifest.namespace
        yield kind, NODE_NAME, manifest.pod.node_name or ""
        yield kind, PHASE, phase_of(manifest)
    for key, value in manifest.labels.items():
        yield kind, _LABEL, key, value


def _asked(kind: str, wanted: ObjectFilter, namespace: str | None) -> Iterator[Group]:
    """Return groups of which each has all objects that pass a filter."""
    yield (kind,)
    if namespace is not None:
        yield kind, _NAMESPACE, namespace
    for field in (NODE_NAME, PHASE):
        if kind == PodManifest.kind and (value := wanted.required(field)) is not None:
            yield kind, field, value
    for each in (wanted.labels and wanted.labels.match_expressions) or ():
        if each.operator == "In" and each.values and len(each.values) == 1:
            yield kind, _LABEL, each.key, each.values[0]
