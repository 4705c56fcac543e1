"""The application over each store, started and stopped around a test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

import httpx
import pytest

from service.api.auth.refusal_log import Refusals
from service.api.http.byte_budget import Budget
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.traces import Spans
from service.app import create_app, templates_of
from service.extenders import Extenders
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.scheduler.protocol.expressions import ExpressionEvaluator
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock
from service.scheduler.scheduler import Scheduler
from service.settings import Settings
from service.store.postgres import PostgresStore
from tests.api.harness import Harness
from tests.api.lending import LentLitestars
from tests.support.memory_store.store import MemoryStore
from tests.waiting import WAIT_SECONDS

MakeHarness = Callable[..., Awaitable[Harness]]
LITESTARS = LentLitestars()
PATIENT: dict[str, Any] = {
    "body_timeout_seconds": WAIT_SECONDS,
    "ready_lag_seconds_max": WAIT_SECONDS,
    "watch_bookmark_seconds": WAIT_SECONDS,
}
"""What a machine that stands still for some seconds could reach, unless a test is about it."""


@pytest.fixture
async def make_harness() -> AsyncIterator[MakeHarness]:
    """Builds applications over the store in memory, with settings of the test's own."""
    async with AsyncExitStack() as stack:

        async def make(
            store: Any = None,
            clock: Clock | None = None,
            limits: Limits | None = None,
            refusals: Refusals | None = None,
            spans: Spans | None = None,
            expressions: ExpressionEvaluator | None = None,
            **settings: Any,
        ) -> Harness:
            store = store or MemoryStore(SystemClock().now, RandomIds().commit_id)
            chosen = Settings(**PATIENT | settings)
            return await _started(
                stack, store, chosen, clock, limits, refusals, spans, expressions=expressions
            )

        yield make


@pytest.fixture
async def harness(make_harness: MakeHarness) -> Harness:
    """The application with patient settings, over the store in memory."""
    return await make_harness()


@pytest.fixture(params=["memory", "postgres"])
def each_database_url(request: pytest.FixtureRequest) -> str | None:
    """A fresh database, or None for the store in memory."""
    return request.getfixturevalue("database_url") if request.param == "postgres" else None


@pytest.fixture
async def over_each_store(
    each_database_url: str | None, make_harness: MakeHarness
) -> AsyncIterator[Harness]:
    """The application with patient settings, over each store in turn."""
    if each_database_url is None:
        yield await make_harness()
        return
    async with AsyncExitStack() as stack:
        store = PostgresStore(each_database_url)
        stack.push_async_callback(store.close)
        yield await _started(stack, store, Settings(**PATIENT))


async def _started(
    stack: AsyncExitStack,
    store: Any,
    settings: Settings,
    clock: Clock | None = None,
    limits: Limits | None = None,
    refusals: Refusals | None = None,
    spans: Spans | None = None,
    *,
    expressions: ExpressionEvaluator | None = None,
) -> Harness:
    clock = clock or SystemClock()
    metrics = Metrics()
    limits = limits or Limits(request_seconds_max=WAIT_SECONDS)
    extenders = Extenders(settings, clock.monotonic)
    stack.push_async_callback(extenders.close)
    scheduler = Scheduler(
        *(store, clock, RandomIds(), limits, templates_of(settings)),
        meter=metrics,
        tracer=spans,
        extenders=extenders,
        expressions=expressions,
    )
    await scheduler.start()
    stack.push_async_callback(scheduler.stop)
    budget = Budget(settings.bytes_in_flight_max)
    create = partial(
        create_app,
        settings,
        store=store,
        scheduler=scheduler,
        clock=clock,
        metrics=metrics,
        budget=budget,
        refusals=refusals,
        spans=spans,
    )
    app = LITESTARS.application(stack.enter_context(ExitStack()), create)
    transport = httpx.ASGITransport(app=app)
    client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
    return Harness(app, await stack.enter_async_context(client), store, scheduler, budget)
