"""Lets other requests proceed while one request has much to do."""

import asyncio

SLICE_SECONDS = 0.002
"""About how long one request occupies the event loop before it pauses, unless it says otherwise."""


class Pause:
    """Pauses between the items of one request, each time a slice of time is over.

    Without seconds, a pause lets others have one turn each.
    """

    def __init__(self, slice_seconds: float = SLICE_SECONDS, pause_seconds: float = 0) -> None:
        self._time = asyncio.get_running_loop().time
        self._slice_seconds = slice_seconds
        self._pause_seconds = pause_seconds
        self._end = self._time() + slice_seconds

    async def after_some(self) -> None:
        """Pause if enough time has passed; it is called between many items."""
        if self._time() >= self._end:
            await asyncio.sleep(self._pause_seconds)
            self._end = self._time() + self._slice_seconds
