"""A cache of the objects of one kind: listed once, then kept current by a watch."""

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Generic, TypeVar

from moorage.asynchronous.objects import AsyncObjects
from moorage.cache_contents import CachedObjects
from moorage.errors import ExpiredError, UnavailableError
from moorage.events import Change

T = TypeVar("T")

NOT_REACHED = "RevisionNotReached"
"""The problem code of a server whose log ends before the cache's revision, as after a restore."""


class AsyncCache(Generic[T]):
    """Objects of one kind by name, with their changes.

    The cache is updated only while `changes` is being read; no background task exists. A yielded
    change is already in the cache.
    """

    def __init__(
        self,
        objects: AsyncObjects[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
    ) -> None:
        self._objects = objects
        self._namespace = namespace
        self._label_selector = label_selector
        self._cached: CachedObjects[T] = CachedObjects()
        self._untold: deque[Change[T]] = deque()
        """Changes that `changes` has not yielded yet."""

    def __len__(self) -> int:
        return len(self._cached)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the current objects."""
        return iter(self._cached)

    def get(self, name: str, *, namespace: str | None = None) -> T | None:
        """Return an object, or None; `namespace` defaults to `default` for namespaced kinds."""
        if self._objects.kind.namespaced:
            return self._cached.get(name, namespace or "default")
        return self._cached.get(name)

    @property
    def revision(self) -> int | None:
        """The revision up to which the cache is complete, or None before the first list."""
        return self._cached.revision

    async def refresh(self) -> None:
        """List all objects; `changes` then yields the differences from the earlier contents.

        Raises:
            ProblemError: the server refused, or was in trouble for too long.
            NoAnswerError: there was no answer.
        """
        items: list[T] = []
        revision = None
        pages = self._objects.pages(namespace=self._namespace, label_selector=self._label_selector)
        async for page in pages:
            items += page.items
            revision = page.revision
        assert revision is not None, "a list has a page"
        self._untold += self._cached.replace(items, revision)

    async def changes(self) -> AsyncGenerator[Change[T]]:
        """Yield each existing object as added, then each change, endlessly.

        Iteration resumes at the cache's revision after lost connections, server restarts, and
        abandoned iterations. If the log no longer reaches back that far, all objects are listed
        again, and the differences are yielded. So every lasting state is seen, but short-lived ones
        may be missed.

        Raises:
            ProblemError: the server refused, or was in trouble for too long.
            NoAnswerError: the server was unreachable for too long.
        """
        if self._cached.revision is None:
            await self.refresh()
        while True:
            while self._untold:
                yield self._untold.popleft()
            try:
                async with aclosing(self._followed()) as changes:
                    async for change in changes:
                        yield change
            except (ExpiredError, UnavailableError) as error:
                if isinstance(error, UnavailableError) and error.code != NOT_REACHED:
                    raise
                await self.refresh()

    async def _followed(self) -> AsyncGenerator[Change[T]]:
        events = self._objects.watch(
            since=self._cached.revision,
            namespace=self._namespace,
            label_selector=self._label_selector,
        )
        async with aclosing(events) as stream:
            async for event in stream:
                change = self._cached.take(event)
                self._untold += [] if change is None else [change]
                while self._untold:
                    yield self._untold.popleft()
