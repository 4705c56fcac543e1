"""Which changes are events for a watcher, and of which type, derived from the changes alone."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.core.errors import Compacted
from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches
from service.model.log.commit import Change
from service.model.registry.manifests import PodManifest
from service.model.selection.object_filters import FieldRequirement
from service.model.selection.selectable_fields import NODE_NAME, OBJECT_FIELDS, Listed

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_listed = msgspec.json.Decoder(Listed)
_texts = msgspec.json.Decoder(dict[str, str])
_PODS = frozenset({PodManifest.kind})


class WatchSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a watcher selects; None selects all."""

    kinds: frozenset[str] | None = None
    namespace: str | None = None
    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def node(self) -> str | None:
        """The only node whose pods are selected ("" for pods without one), or None."""
        if self.kinds != _PODS:
            return None
        return next(
            (
                requirement.value
                for requirement in self.fields
                if requirement.wanted and requirement.field == NODE_NAME
            ),
            None,
        )

    def event(self, change: Change) -> EventType | None:
        """Return the event type of a change for a watcher of the selected objects, or None.

        An object that starts to match is added, one that ceases to match is deleted.

        Raises:
            Compacted: the log lacks the earlier state needed to tell whether the object matched.
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
        if not any(OBJECT_FIELDS[requirement.field].may_change for requirement in self.fields):
            return {}
        return altered_fields(change)

    def _values(self, listed: Listed) -> dict[str, str]:
        return {
            requirement.field: OBJECT_FIELDS[requirement.field].of_json(listed)
            for requirement in self.fields
        }

    def _passes(self, labels: Mapping[str, str], values: Mapping[str, str]) -> bool:
        if self.labels is not None and not matches(self.labels, labels):
            return False
        return all(
            (values[requirement.field] == requirement.value) is requirement.wanted
            for requirement in self.fields
        )


def _plain_event(change: Change) -> EventType:
    if change.verb == "Delete":
        return "DELETED"
    return "ADDED" if change.created else "MODIFIED"


def altered_fields(change: Change) -> Mapping[str, str]:
    """Return the earlier values of the fields that a Put altered.

    Raises:
        Compacted: the log lacks the earlier values.
    """
    if change.fields_before is None:
        raise Compacted(
            f"A server of an earlier version made the change {change.revision}, and did not note "
            "what its fields were before. List again, then watch from there."
        )
    return _texts.decode(change.fields_before) if change.fields_before else {}


def nodes_of(change: Change) -> frozenset[str] | None:
    """Return the nodes whose pods a change concerns ("" for none), or None if any may be.

    A moving pod concerns both its old and its new node.
    """
    if change.kind != PodManifest.kind:
        return frozenset()
    now = change.node_name or ""
    if change.verb == "Delete" or change.created or change.fields_before == b"":
        return frozenset({now})
    if change.fields_before is None:
        return None
    return frozenset({now, _texts.decode(change.fields_before).get(NODE_NAME, now)})
