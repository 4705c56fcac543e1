"""A replica's pods and nodes without tentative changes, for filtered lists.

The view is built for the first filtered list, so clusters without such lists have no overhead.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from service.model.core.primitives import ObjectName
from service.model.registry.manifests import NodeManifest, PodManifest
from service.model.selection.object_filters import ObjectFilter
from service.model.selection.selectable_fields import NODE_NAME, PHASE, phase_of
from service.scheduler.replica.replica import Entry, Replica, Stored

INDEXED_KINDS = frozenset({PodManifest.kind, NodeManifest.kind})
"""The kinds with potentially very many objects."""

Group = tuple[str, ...]
"""The kind of a group's objects, followed by the shared namespace, node, phase, or label."""

_NAMESPACE, _LABEL = "namespace", "label"
_GROUPED_AT_ONCE = 30
"""How many objects take about a quarter of a millisecond to group."""


class CommittedObjects:
    """The committed pods and nodes of a replica, grouped for filtered lists."""

    def __init__(self) -> None:
        self.wants_new_pods = False
        self.are_grouped = False
        self._groups: dict[Group, dict[ObjectName, Stored]] = {}
        self._grouping = asyncio.Lock()
        self._meanwhile: list[Entry] | None = None
        """The changes made while the groups are being built, or None."""

    def drop(self) -> None:
        """Drop everything, because the replica is dropped."""
        self.wants_new_pods, self.are_grouped, self._groups, self._meanwhile = (
            False,
            False,
            {},
            None,
        )

    def on_loaded(self, replica: Replica) -> None:  # noqa: ARG002 - it is passed when groups are asked for
        """Start over with a newly loaded replica, without tentative changes."""
        self.drop()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process changes that are in the log."""
        if self.are_grouped:
            self._follow(entries)
        elif self._meanwhile is not None:
            self._meanwhile.extend(entries)

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind in INDEXED_KINDS:
                self._change(entry.key, entry.before, entry.after)

    async def group(self, replica: Replica) -> None:
        """Build the last loaded replica's groups, unless they exist, a few objects at a time.

        Other tasks may run in between, and the replica may change. If it was dropped in the
        meantime, no groups exist afterwards.
        """
        async with self._grouping:
            if self.are_grouped:
                return
            meanwhile = self._meanwhile = list[Entry]()
            self.wants_new_pods = True
            tentative = replica.tentative()
            present = [stored for kind in INDEXED_KINDS for stored in replica.objects(kind)]
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

    def candidates(
        self, kind: str, object_filter: ObjectFilter, namespace: str | None
    ) -> list[Stored]:
        """Return all committed objects of a kind that may pass a filter, in no order.

        The result is the smallest group that contains them all; the groups have to exist.
        """
        assert self.are_grouped
        nothing: Mapping[ObjectName, Stored] = {}
        groups = [
            self._groups.get(group, nothing)
            for group in _groups_for(kind, object_filter, namespace)
        ]
        return list(min(groups, key=len).values())

    def _change(self, key: ObjectName, before: Stored | None, after: Stored | None) -> None:
        if before is not None:
            for group_key in _groups_of(before):
                group = self._groups[group_key]
                del group[key]
                if not group:  # groups come and go, so empty ones would accumulate
                    del self._groups[group_key]
        if after is not None:
            for group_key in _groups_of(after):
                self._groups.setdefault(group_key, {})[key] = after


def _groups_of(stored: Stored) -> Iterator[Group]:
    """Yield the groups that contain an object."""
    manifest = stored.manifest
    kind = manifest.kind
    yield (kind,)
    if isinstance(manifest, PodManifest):
        yield kind, _NAMESPACE, manifest.namespace
        yield kind, NODE_NAME, manifest.pod.node_name or ""
        yield kind, PHASE, phase_of(manifest)
    for key, value in manifest.labels.items():
        yield kind, _LABEL, key, value


def _groups_for(kind: str, object_filter: ObjectFilter, namespace: str | None) -> Iterator[Group]:
    """Yield groups that each contain all objects matching a filter."""
    yield (kind,)
    if namespace is not None:
        yield kind, _NAMESPACE, namespace
    for field in (NODE_NAME, PHASE):
        if kind == PodManifest.kind and (value := object_filter.required(field)) is not None:
            yield kind, field, value
    for requirement in (object_filter.labels and object_filter.labels.match_expressions) or ():
        if requirement.operator == "In" and requirement.values and len(requirement.values) == 1:
            yield kind, _LABEL, requirement.key, requirement.values[0]
