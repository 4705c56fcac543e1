"""Which changes are events for a watcher, and of which type: decided from the change alone."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.core.primitives import LabelSelector
from service.model.errors import Compacted
from service.model.log.commit_log import Change
from service.model.manifests.manifest import PodManifest
from service.model.objects.selectors import matches
from service.model.selecting_objects.object_filters import FieldRequirement
from service.model.selecting_objects.selectable_fields import NODE_NAME, OBJECT_FIELDS, Listed

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_listed = msgspec.json.Decoder(Listed)
_texts = msgspec.json.Decoder(dict[str, str])
_PODS = frozenset({PodManifest.kind})


class WatchSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a watcher asks for; None asks for all."""

    kinds: frozenset[str] | None = None
    namespace: str | None = None
    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def node(self) -> str | None:
        """The node whose pods alone are asked for, "" for those without a node; None: there is none."""
        if self.kinds != _PODS:
            return None
        return next(
            (each.value for each in self.fields if each.wanted and each.field == NODE_NAME), None
        )

    def event(self, change: Change) -> EventType | None:
        """Return what a change is to a watcher who sees only the selected objects; None: nothing.

        An object that starts to match is added, one that ceases to is deleted.

        Raises:
            Compacted: the log does not say whether the object matched before.
        """
        if self.kinds is not None and change.kind not in self.kinds:
            return None
        if self.namespace is not None and change.namespace != self.namespace:
            return None
        if self.labels is None and not self.fields:
            return _plain_event(change)
        return self._selected_event(change)

    def _selected_event(self, change: Change) -> EventType | None:
        listed = _listed.decode(change.body)
        matches_now = self._passes(listed.metadata.labels or {}, self._values(listed))
        if change.verb == "Delete":
            return "DELETED" if matches_now else None
        matched = not change.created and self._matched_before(change, listed)
        if matches_now:
            return "MODIFIED" if matched else "ADDED"
        return "DELETED" if matched else None

    def _matched_before(self, change: Change, now: Listed) -> bool:
        labels = now.metadata.labels or {}
        if change.labels_before is not None:
            labels = _texts.decode(change.labels_before)
        return self._passes(labels, {**self._values(now), **self._fields_before(change)})

    def _fields_before(self, change: Change) -> Mapping[str, str]:
        if not any(OBJECT_FIELDS[each.field].may_change for each in self.fields):
            return {}
        return altered_fields(change)

    def _values(self, listed: Listed) -> dict[str, str]:
        return {each.field: OBJECT_FIELDS[each.field].of_json(listed) for each in self.fields}

    def _passes(self, labels: Mapping[str, str], values: Mapping[str, str]) -> bool:
        if self.labels is not None and not matches(self.labels, labels):
            return False
        return all((values[each.field] == each.value) is each.wanted for each in self.fields)


def _plain_event(change: Change) -> EventType:
    if change.verb == "Delete":
        return "DELETED"
    return "ADDED" if change.created else "MODIFIED"


def altered_fields(change: Change) -> Mapping[str, str]:
    """Return what those fields of an object were before that a Put of it altered.

    Raises:
        Compacted: the log does not say.
    """
    if change.fields_before is None:
        raise Compacted(
            f"A server of an earlier version made the change {change.revision}, and did not note "
            "what its fields were before. List again, then watch from there."
        )
    return _texts.decode(change.fields_before) if change.fields_before else {}


def nodes_of(change: Change) -> frozenset[str] | None:
    """Return the nodes whose pods a change concerns, "" for pods without a node; None: any may be.

    A pod that moves concerns the node that it leaves and the one that it is on now.
    """
    if change.kind != PodManifest.kind:
        return frozenset()
    now = change.node_name or ""
    if change.verb == "Delete" or change.created or change.fields_before == b"":
        return frozenset({now})
    if change.fields_before is None:
        return None
    return frozenset({now, _texts.decode(change.fields_before).get(NODE_NAME, now)})
