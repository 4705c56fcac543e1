"""Let other requests proceed while one request has much to do."""

import asyncio

SLICE_SECONDS = 0.002
"""How long a request occupies the event loop before it pauses, by default."""


class Pause:
    """Pauses between the items of one request, whenever a slice of time is over.

    If `seconds` is 0, a pause lets every other task run once.
    """

    def __init__(self, slice_seconds: float = SLICE_SECONDS, pause_seconds: float = 0) -> None:
        self._time = asyncio.get_running_loop().time
        self._slice_seconds = slice_seconds
        self._pause_seconds = pause_seconds
        self._end = self._time() + slice_seconds

    async def after_some(self) -> None:
        """Pause if enough time has passed; call this between items."""
        if self._time() >= self._end:
            await asyncio.sleep(self._pause_seconds)
            self._end = self._time() + self._slice_seconds
