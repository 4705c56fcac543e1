"""Let other requests proceed during long work for one request."""

import asyncio

SLICE_SECONDS = 0.002
"""The default number of seconds that a request occupies the event loop before it pauses."""


class Pause:
    """Pauses between the items of one request after each slice of time.

    With `pause_seconds` 0, a pause lets every other task run once.
    """

    def __init__(self, slice_seconds: float = SLICE_SECONDS, pause_seconds: float = 0) -> None:
        self._time = asyncio.get_running_loop().time
        self._slice_seconds = slice_seconds
        self._pause_seconds = pause_seconds
        self._end = self._time() + slice_seconds

    async def after_some(self) -> None:
        """Pause if the current time slice is over; call this between items."""
        if self._time() >= self._end:
            await asyncio.sleep(self._pause_seconds)
            self._end = self._time() + self._slice_seconds
