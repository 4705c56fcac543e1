"""The machine's clocks, by which a server decides and waits."""

import asyncio
import time
from datetime import UTC, datetime
from functools import partial


class SystemClock:
    """The machine's own clocks, without a function in between, since requests read them often."""

    now = staticmethod(partial(datetime.now, UTC))  # noqa: TID251 - this is where time comes in
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)
