"""Objects that rules read, of kinds other than node, namespace, and pod."""

from collections.abc import Iterator, Mapping
from typing import TypeVar, cast

from service.model.core.kind import DeclaredObject
from service.model.core.primitives import ObjectName, Partial

B = TypeVar("B", bound=Partial)


class AuxiliaryObjects:
    """The auxiliary objects of one cluster, by kind, namespace, and name."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[ObjectName, DeclaredObject[Partial]]] = {}
        self._by_body: dict[type[Partial], dict[ObjectName, DeclaredObject[Partial]]] = {}
        self._by_namespace: dict[tuple[str, str], dict[str, DeclaredObject[Partial]]] = {}
        """The objects by kind and namespace, and then by name."""
        self.kinds: set[str] = set()
        """The kinds with at least one object."""

    def __iter__(self) -> Iterator[DeclaredObject[Partial]]:
        """Iterate over all objects of all kinds."""
        return (manifest for objects in self._by_kind.values() for manifest in objects.values())

    def get(self, kind: str, namespace: str, name: str) -> DeclaredObject[Partial] | None:
        """Return the object of a kind, namespace, and name, or None."""
        return self._by_kind.get(kind, {}).get((namespace, name))

    def having(self, body: type[B]) -> Mapping[ObjectName, DeclaredObject[B]]:
        """Return all objects of the kind with this body type, by namespace and name."""
        return cast("Mapping[ObjectName, DeclaredObject[B]]", self._by_body.get(body, {}))

    def within(self, kind: str, namespace: str) -> Mapping[str, DeclaredObject[Partial]]:
        """Return all objects of a kind in a namespace, by name."""
        return self._by_namespace.get((kind, namespace), {})

    def put(self, kept: DeclaredObject[Partial]) -> None:
        """Add or replace an object."""
        objects = self._by_kind.setdefault(kept.kind, {})
        objects[kept.namespace, kept.name] = kept
        if kept.namespace:
            self._by_namespace.setdefault((kept.kind, kept.namespace), {})[kept.name] = kept
        self._by_body[type(kept.body)] = objects
        self.kinds.add(kept.kind)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object.

        Raises:
            KeyError: there is no such object.
        """
        del self._by_kind[kind][namespace, name]
        if not self._by_kind[kind]:
            self.kinds.discard(kind)
        if namespace:
            del self._by_namespace[kind, namespace][name]
