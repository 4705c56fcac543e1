"""Objects of one kind: reads, writes, lists, and watches."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast

import msgspec

from moorage.events import Event
from moorage.kinds import NAMESPACE_DEFAULT, Kind, path_parts
from moorage.options import PATCH_TYPES, Filters, PatchType, camel_cased
from moorage.pages import Page
from moorage.requests import (
    APPLY_PATCH,
    Manifest,
    Request,
    deleting,
    deleting_once,
    dry,
    listed,
    patching,
    path_of,
    posting_once,
    putting,
    reading,
)
from moorage.synchronous.connection import Connection
from moorage.synchronous.watching import watched

if TYPE_CHECKING:
    from moorage.types import Deletions

T = TypeVar("T")

PAGE_SIZE = 500


class Objects(Generic[T]):
    """All objects of one kind in one cluster.

    Raises (from every call):
        ProblemError: the server refused, or was in trouble for too long.
        NoAnswerError: there was no answer.
    """

    def __init__(self, connection: Connection, cluster: str, kind: Kind) -> None:
        self.kind = kind
        self._connection = connection
        self._cluster = cluster

    def get(
        self,
        name: str,
        *,
        namespace: str | None = None,
        revision: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> T:
        """Return one object at the current or an earlier revision (ExpiredError: too old).

        With `fields`, such as `["spec.nodeName"]`, the object has only those fields, `apiVersion`,
        `kind`, name, and namespace.
        """
        params = {"revision": revision, "fields": listed(fields)}
        return cast("T", self._asked(reading(self._path(namespace, name), params)))

    def put(
        self,
        manifest: Manifest,
        *,
        if_match: str | None = None,
        create_only: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Create or replace the object named by the manifest, and return it as stored.

        Args:
            manifest: The object. A `resourceVersion` in it has to be the stored object's, so what
                was read, changed and put back overwrites nobody else's change (ConflictError).
            if_match: The entity tag that the object has to have (PreconditionError).
            create_only: Whether an object that is there already stays (PreconditionError).
            dry_run: Whether to answer as usual, but change nothing.
        """
        metadata = manifest["metadata"]
        path = self._path(metadata.get("namespace"), metadata["name"])
        headers = {"If-Match": if_match, "If-None-Match": "*" if create_only else None}
        return cast("T", self._asked(putting(path, manifest, headers, dry(dry_run=dry_run))))

    def create(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> T:
        """Create a new object, and return it as stored (ConflictError: it already exists).

        Args:
            manifest: The object. With only a `generateName`, the server generates the name.
            dry_run: Whether to answer as usual, but change nothing.
            idempotency_key: The key of an earlier call repeats that call's answer.
        """
        path = self._path(manifest["metadata"].get("namespace") or NAMESPACE_DEFAULT)
        request = posting_once(path, manifest, dry(dry_run=dry_run), idempotency_key)
        return cast("T", self._asked(request))

    def patch(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        if_match: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change some fields of an object, and return it; the type `json` takes a list of steps."""
        path = self._path(namespace, name)
        params, headers = dry(dry_run=dry_run), {"If-Match": if_match}
        request = patching(path, patch, PATCH_TYPES[patch_type], headers, params)
        return cast("T", self._asked(request))

    def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Merge a manager's fields into an object, or create it (server-side apply).

        Args:
            manifest: All that the manager wants of the object. What it applied before, and now leaves
                out, is removed unless others want it, too.
            field_manager: The name of the manager, the same in each of its calls.
            force: Whether to take over fields that others manage; else ConflictError names them.
            dry_run: Whether to answer as usual, but change nothing.
        """
        metadata = manifest["metadata"]
        path = self._path(metadata.get("namespace"), metadata["name"])
        params = {"fieldManager": field_manager, "force": force or None, **dry(dry_run=dry_run)}
        return cast("T", self._asked(patching(path, manifest, APPLY_PATCH, params=params)))

    def delete(
        self,
        name: str,
        *,
        namespace: str | None = None,
        if_match: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Delete one object, and return its last state."""
        params, headers = dry(dry_run=dry_run), {"If-Match": if_match}
        return cast("T", self._asked(deleting(self._path(namespace, name), params, headers)))

    def delete_matching(
        self,
        *,
        namespace: str | None = None,
        everything: bool = False,
        limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **filters: Unpack[Filters],
    ) -> Deletions:
        """Delete all objects that match the filters, in commits of at most 1,000 objects.

        Args:
            namespace: The namespace, by default all namespaces.
            everything: Must be true if there is no filter.
            limit: The maximum number of deletions; `remaining` counts the objects left.
            dry_run: Whether to only report what would be deleted.
            idempotency_key: The key of an earlier call repeats that call's answer.
            filters: Which objects to delete.
        """
        chosen = {**camel_cased(filters), "all": everything or None, "limit": limit}
        chosen |= dry(dry_run=dry_run)
        request = deleting_once(self._path(namespace), chosen, idempotency_key)
        return cast("Deletions", self._asked(request))

    def list(
        self,
        *,
        namespace: str | None = None,
        page_size: int = PAGE_SIZE,
        revision: int | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        **filters: Unpack[Filters],
    ) -> Generator[T]:
        """Yield objects, fetching pages as needed; see `pages`."""
        pages = self.pages(
            namespace=namespace,
            page_size=page_size,
            revision=revision,
            sort=sort,
            fields=fields,
            **filters,
        )
        for page in pages:
            for item in page.items:
                yield item

    def pages(
        self,
        *,
        namespace: str | None = None,
        page_size: int = PAGE_SIZE,
        revision: int | None = None,
        sort: str | None = None,
        fields: Sequence[str] | None = None,
        **filters: Unpack[Filters],
    ) -> Generator[Page[T]]:
        """Yield the pages of a list. A watch from the first page's revision misses no change.

        Objects are ordered by namespace and name, or by `sort`, such as `-spec.priority`. With a
        `revision`, all pages show that revision (ExpiredError if the log no longer has it). With
        `fields`, such as `["spec.nodeName"]`, each object has only those fields and its identity.
        """
        chosen = {**camel_cased(filters), "limit": page_size, "revision": revision, "sort": sort}
        chosen["fields"] = listed(fields)
        token: str | None = None
        while True:
            answer = self._asked(reading(self._path(namespace), {**chosen, "continue": token}))
            metadata = answer["metadata"]
            yield Page(items=answer["items"], revision=int(metadata["resourceVersion"]))
            token = metadata.get("continue")
            if not token:
                return

    def watch(
        self,
        *,
        since: int | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
    ) -> Generator[Event[T]]:
        """Yield changes as they are committed, endlessly; see the client's `watch`."""
        params = {
            "kind": self.kind.name,
            "namespace": namespace,
            "labelSelector": label_selector,
        }
        return watched(self._connection, path_of(self._cluster, "watch"), params, since)

    def _path(self, namespace: str | None, name: str | None = None) -> str:
        return path_of(self._cluster, *path_parts(self.kind, namespace, name))

    def _asked(self, request: Request) -> Any:
        answer = self._connection.send(request)
        return msgspec.json.decode(answer.content)
