"""The machine's clocks, which a server uses for decisions and waits."""

import asyncio
import time
from datetime import UTC, datetime
from functools import partial


class SystemClock:
    """The machine's own clocks, called directly, since requests read them often."""

    now = staticmethod(partial(datetime.now, UTC))  # noqa: TID251 - the source of time
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)
