"""The contents of a cache, updated by lists and events, without I/O."""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from moorage.events import Change, Event

T = TypeVar("T")

Key = tuple[str | None, str]
"""A namespace (None for objects without one) and a name."""


class CachedObjects(Generic[T]):
    """The objects of one kind by name, at some revision."""

    def __init__(self) -> None:
        self.revision: int | None = None
        """The revision up to which the contents are complete, or None before the first list."""
        self._objects: dict[Key, T] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, name: str, namespace: str | None = None) -> T | None:
        """Return an object, or None."""
        return self._objects.get((namespace, name))

    def replace(self, items: Iterable[T], revision: int) -> list[Change[T]]:
        """Replace the contents by a complete list, and return the differences."""
        before, self._objects = self._objects, {key_of(item): item for item in items}
        self.revision = revision
        changes = [
            change
            for key, item in self._objects.items()
            if (change := _put(item, before.get(key))) is not None
        ]
        gone = (item for key, item in before.items() if key not in self._objects)
        return changes + [Change(type="Deleted", object=item, before=item) for item in gone]

    def take(self, event: Event[T]) -> Change[T] | None:
        """Apply an event; return the change, or None if the event is older than the contents."""
        self.revision = max(self.revision or 0, event.revision)
        if event.type == "BOOKMARK":
            return None
        key = key_of(event.object)
        before = self._objects.get(key)
        if before is not None and event.revision <= revision_of(before):
            return None
        if event.type != "DELETED":
            self._objects[key] = event.object
            return _put(event.object, before)
        if before is None:
            return None
        del self._objects[key]
        return Change(type="Deleted", object=event.object, before=before)


def key_of(item: Any) -> Key:
    """Return the namespace and name of an object."""
    metadata = item["metadata"]
    return metadata.get("namespace"), metadata["name"]


def revision_of(item: Any) -> int:
    """Return the revision that last changed an object."""
    return int(item["metadata"]["resourceVersion"])


def _put(item: T, before: T | None) -> Change[T] | None:
    if before is None:
        return Change(type="Added", object=item, before=None)
    if revision_of(item) == revision_of(before):
        return None
    return Change(type="Changed", object=item, before=before)
