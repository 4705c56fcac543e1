"""Which changes are events for a watcher, and of which type: decided from the change alone."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from service.model.log import Change
from service.model.objects import LabelSelector
from service.model.selectors import matches

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_labelled = msgspec.json.Decoder(_Labelled)
_labels = msgspec.json.Decoder(dict[str, str])


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a watcher asks for; None asks for all."""

    kinds: frozenset[str] | None = None
    namespace: str | None = None
    labels: LabelSelector | None = None

    def event(self, change: Change) -> EventType | None:
        """Return what a change is to a watcher who sees only the selected objects; None: nothing.

        An object that starts to match is added, one that ceases to is deleted.
        """
        if self.kinds is not None and change.kind not in self.kinds:
            return None
        if self.namespace is not None and change.namespace != self.namespace:
            return None
        if self.labels is None:
            return _plain_event(change)
        return _selected_event(change, self.labels)


def _plain_event(change: Change) -> EventType:
    if change.verb == "Delete":
        return "DELETED"
    return "ADDED" if change.created else "MODIFIED"


def _selected_event(change: Change, selector: LabelSelector) -> EventType | None:
    matches_now = matches(selector, _labels_of(change))
    if change.verb == "Delete":
        return "DELETED" if matches_now else None
    matched = not change.created and _matched_before(change, selector, matches_now=matches_now)
    if matches_now:
        return "MODIFIED" if matched else "ADDED"
    return "DELETED" if matched else None


def _matched_before(change: Change, selector: LabelSelector, *, matches_now: bool) -> bool:
    if change.labels_before is None:
        return matches_now
    return matches(selector, _labels.decode(change.labels_before))


def _labels_of(change: Change) -> Mapping[str, str]:
    return _labelled.decode(change.body).metadata.labels or {}
