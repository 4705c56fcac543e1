"""The part of a process's byte budget that watches may hold for pages of the log.

Watches wait if there is no room, and hold nothing while they do.
"""

import asyncio
from collections import Counter, deque
from typing import NamedTuple, Protocol

from service.api.http.streaming import PIECE_BYTES

WATCH_PART = 4
"""The divisor for the watches' share of the budget, and for each caller's part of that share."""


class Total(Protocol):
    """The bytes that all requests of the process hold together."""

    bytes_max: int
    in_flight: int


Holder = object
"""The owner of counted bytes: a caller's name, or a single watch of a caller without a limit."""


class WatchShare:
    """The quarter of the budget that is available to watches, which wait if there is no room.

    Watches whose clients do not read therefore leave room for all other requests. Each holder may
    use its part, a quarter of the share; a holder that would exceed it waits only for its own
    watches. A page contains at least one commit, which may be larger than the part, so a holder
    that holds nothing may hold one such page. When room for others is computed, a holder counts
    only up to its part, so no holder can keep others from theirs.

    The bound: each holder holds at most its part, or one page that exceeds it. All bytes above the
    holders' parts add up to at most one more share, or to one single page. In addition, a watch may
    hold a page of at most one piece whenever its holder is within its part, since a refusal is as
    large.
    """

    def __init__(self, budget: Total) -> None:
        self.bytes_max = budget.bytes_max // WATCH_PART
        self.part = self.bytes_max // WATCH_PART
        """The bytes that one holder can take from others."""
        self.held = 0
        """The bytes that all watches hold together."""
        self._counted = 0
        """The bytes that all watches hold, counting each holder only up to its part."""
        self._budget = budget
        self._held_by: Counter[Holder] = Counter()
        self.line: deque[_WaitingWatch] = deque()
        """The watches that are waiting for room, in order of arrival."""

    @property
    def waiting(self) -> int:
        """The number of watches that are waiting for room."""
        return sum(not watch.turn.done() for watch in self.line)

    def has_room(self, holder: Holder, count: int, own: int) -> bool:
        """Return whether a watch that holds `own` bytes may hold `count` more now.

        Watches that are already waiting go first.
        """
        wish = _Wish(holder, count, own)
        if self._is_above_its_part(wish):
            return False
        ahead = _Ahead()
        if count > PIECE_BYTES:
            for watch in self.line:
                if not watch.turn.done():
                    self._admits(watch.wish, ahead)
        return self._admits(wish, ahead)

    def _admits(self, wish: "_Wish", ahead: "_Ahead") -> bool:
        """Return whether a wish fits; if not, note in `ahead` what it is waiting for."""
        if self._is_above_its_part(wish):
            return False  # It only waits for its own holder's watches.
        if wish.size <= PIECE_BYTES:
            return True
        if self._goes_beyond(wish) and (ahead.beyond or not self._has_room_beyond(wish)):
            ahead.beyond = True
            return False
        ahead.all = ahead.all or self._is_full(wish)
        return not ahead.all

    def _is_above_its_part(self, wish: "_Wish") -> bool:
        held = self._held_by[wish.holder]
        return held > wish.own and held + wish.size > self.part

    def _goes_beyond(self, wish: "_Wish") -> bool:
        return self._held_by[wish.holder] + wish.size > self.part

    def _has_room_beyond(self, wish: "_Wish") -> bool:
        held = self._held_by[wish.holder]
        others = self.held - self._counted - max(0, held - self.part)
        return not others or others + held + wish.size - self.part <= self.bytes_max

    def _is_full(self, wish: "_Wish") -> bool:
        if self.held == wish.own:
            return False
        held, budget = self._held_by[wish.holder], self._budget
        counted = self._counted + self._within(held + wish.size) - self._within(held)
        return counted > self.bytes_max or budget.in_flight + wish.size > budget.bytes_max

    def _within(self, held: int) -> int:
        return min(held, self.part)

    def take(self, holder: Holder, count: int) -> None:
        """Hold `count` more bytes, even without room."""
        self._add(holder, count)

    def release(self, holder: Holder, count: int) -> None:
        """Release `count` bytes, and admit waiting watches."""
        self._add(holder, -count)
        self.let_in()

    def _add(self, holder: Holder, count: int) -> None:
        held = self._held_by.pop(holder, 0)
        if held + count:
            self._held_by[holder] = held + count
        self._counted += self._within(held + count) - self._within(held)
        self.held += count
        self._budget.in_flight += count

    async def wait(self, holder: Holder, count: int, own: int) -> None:
        """Wait in line until there is room, then hold `count` more bytes."""
        if self.has_room(holder, count, own):
            self.take(holder, count)
            return
        turn = asyncio.get_running_loop().create_future()
        self.line.append(_WaitingWatch(_Wish(holder, count, own), turn))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release(holder, count)
            else:
                self.let_in()  # Watches behind it may have been waiting only for it.
            raise

    def let_in(self) -> None:
        """Admit the waiting watches that fit now, in order."""
        ahead = _Ahead()
        for watch in list(self.line):
            if watch.turn.done():
                self.line.remove(watch)
            elif self._admits(watch.wish, ahead):
                self.line.remove(watch)
                self.take(watch.wish.holder, watch.wish.size)
                watch.turn.set_result(None)


class _Wish(NamedTuple):
    holder: Holder
    size: int
    own: int
    """The bytes that the watch already holds."""


class _WaitingWatch(NamedTuple):
    wish: _Wish
    turn: asyncio.Future[None]


class _Ahead:
    """What the watches ahead in the line are waiting for."""

    def __init__(self) -> None:
        self.all = False
        """Whether one of them is waiting for room in the share."""
        self.beyond = False
        """Whether one of them is waiting to exceed its holder's part."""


class WatchRoom:
    """The bytes of the share that one watch holds."""

    def __init__(self, share: WatchShare, caller: str | None) -> None:
        """Start with no bytes; `caller` is None if the caller's watches have no common limit."""
        self._share = share
        self._holder: Holder = self if caller is None else caller
        self._held = 0

    def fits(self, count: int) -> bool:
        """Return whether the watch may now hold `count` bytes in total."""
        more = count - self._held
        return more <= 0 or self._share.has_room(self._holder, more, self._held)

    async def reserve(self, count: int) -> None:
        """Hold `count` bytes in total, waiting until there is room."""
        if count > self._held:
            await self._share.wait(self._holder, count - self._held, self._held)
            self._held = count

    def settle(self, count: int) -> None:
        """Hold exactly `count` bytes, even without room."""
        more, self._held = count - self._held, count
        if more > 0:
            self._share.take(self._holder, more)
        elif more < 0:
            self._share.release(self._holder, -more)
