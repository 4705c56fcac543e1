"""Records all that a simulated database was asked, in which order and at what time, and what it answered."""

import copy
import inspect
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from service.model.log.commit import CommitRequest, LogPage
from tests.support.memory_store.store import PARTS, MemoryStore


class RecordedCall(msgspec.Struct, kw_only=True):
    """One call of a store, which happens in one instant."""

    name: str
    """The part of the store and its method: `log.commit`."""
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    at: datetime
    """The time that the database's clock showed."""
    ids: list[UUID]
    """The ids that the database made."""
    outcome: object
    """What it answered, as `told`."""
    page: object = None
    """What `commit_locked` had the caller decide on, as `told`."""
    decision: CommitRequest | None = None
    """What the caller decided then."""


def told(value: object) -> object:
    """Whatever a store answers, in a form that is equal where two stores tell the same."""
    return [type(value).__name__, msgspec.to_builtins(value, builtin_types=(bytes, datetime, UUID))]


def told_error(error: Exception) -> object:
    """Tell an error without its message, which stores may word differently."""
    return [type(error).__name__]


class RecordingStore(MemoryStore):
    """A store in memory whose calls are kept in `calls`."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        calls: list[RecordedCall],
        *,
        audit: bool,
    ) -> None:
        self._calls = calls
        self._made: list[UUID] = []
        self._is_asked = False

        def remembered_id() -> UUID:
            self._made.append(new_id())
            return self._made[-1]

        self._time = clock
        super().__init__(clock, remembered_id, audit=audit)
        (default,) = self.states.values()
        calls.append(self._begun("clusters.create", ("default", default.row().config), {}))
        calls[-1].outcome = told(default.row())
        self._record()

    def _begun(
        self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> RecordedCall:
        kept = [each for each in arguments if not callable(each)]
        return RecordedCall(
            name=name,
            arguments=tuple(copy.deepcopy(kept)),
            options=dict(options),
            at=self._time(),
            ids=self._made,
            outcome=None,
        )

    def _record(self) -> None:
        """Have all calls of the parts recorded."""
        for part, thing in list(vars(self).items()):
            for name, method in inspect.getmembers(type(thing), inspect.iscoroutinefunction):
                if part in PARTS and not name.startswith("_"):
                    setattr(thing, name, partial(self.recorded, f"{part}.{name}", method, thing))

    async def recorded(
        self, name: str, method: Callable[..., Any], thing: object, *arguments: Any, **options: Any
    ) -> Any:
        """Answer a call of a part, and keep it; calls that it makes itself belong to it."""
        if self._is_asked:
            return await method(thing, *arguments, **options)
        self._is_asked, self._made = True, []
        call = self._begun(name, arguments, options)
        if name == "log.commit_locked":
            arguments = (*arguments[:-1], self._overheard(arguments[-1], call))
        self._calls.append(call)
        try:
            answer = await method(thing, *arguments, **options)
            call.outcome = told(answer)
        except Exception as error:
            call.outcome = told_error(error)
            raise
        finally:
            self._is_asked = False
        return answer

    def _overheard(
        self, decide: Callable[[LogPage], CommitRequest | None], call: RecordedCall
    ) -> Callable[[LogPage], CommitRequest | None]:
        def decided(page: LogPage) -> CommitRequest | None:
            call.page = told(page)
            request = decide(page)
            # Deciding takes time, and only what comes after it looks at the clock.
            call.decision, call.at = copy.deepcopy(request), self._time()
            return request

        return decided
