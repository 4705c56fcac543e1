"""OpenTelemetry's spans of requests, their decisions and their commits."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, format_span_id, format_trace_id

from service.api.forwarding.middleware import decide_forwarded
from service.api.forwarding.transport import ForwardedRequest
from service.api.telemetry.traces import Spans, exported_spans
from service.model.core.access import EVERYBODY
from service.runtime.clock import SystemClock
from service.settings import InvalidSettings
from tests.api.harness import CLUSTER, Harness, pod
from tests.paths import ROOT

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Kept:
    """The spans of an application, in memory."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False, **options)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider, SystemClock())

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.all() if each.name == name]


def parent_of(span: ReadableSpan) -> str:
    assert span.parent is not None
    return format_span_id(span.parent.span_id)


async def test_a_placement_is_a_span_with_its_decision_and_its_commit(make_harness) -> None:
    kept = Kept()
    harness: Harness = await make_harness(spans=kept.spans)
    await harness.put_node("n1")
    answer = await harness.client.post(
        f"{CLUSTER}/placements", json={"pods": [pod("a")]}, headers={"traceparent": TRACEPARENT}
    )
    assert answer.headers["x-request-id"] == TRACE
    [request] = kept.named("placePods")
    assert request.kind is SpanKind.SERVER
    assert parent_of(request) == PARENT
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["moorage.request_id"] == TRACE
    own = [each for each in kept.all() if each.parent == request.get_span_context()]
    assert [each.name for each in own] == ["decide", "commit"]
    assert {format_trace_id(each.get_span_context().trace_id) for each in own} == {TRACE}
    decide, commit = own
    assert request.start_time < decide.start_time < decide.end_time <= commit.start_time
    assert commit.start_time < commit.end_time <= request.end_time
    assert [each.attributes["moorage.outcome"] for each in own] == ["PlacementAnswer", "Committed"]


async def test_requests_of_one_batch_each_have_their_own_parts(make_harness) -> None:
    kept = Kept()
    harness: Harness = await make_harness(spans=kept.spans)
    await harness.put_node("n1")
    await asyncio.gather(*(harness.place(pod(f"p{i}")) for i in range(8)))
    assert [each.parent for each in kept.named("placePods")] == [None] * 8
    requests = {each.get_span_context().span_id for each in kept.named("placePods")}
    for name in ("decide", "commit"):
        parents = Counter(each.parent.span_id for each in kept.named(name) if each.parent)
        assert {each: parents[each] for each in requests} == dict.fromkeys(requests, 1)


async def test_nothing_is_kept_of_a_request_that_is_not_sampled(make_harness) -> None:
    kept = Kept(sampler=ALWAYS_OFF)
    harness: Harness = await make_harness(spans=kept.spans)
    await harness.put_node("n1")
    assert kept.all() == []


async def test_a_request_that_is_forwarded_goes_on_below_the_span_of_the_first_worker(
    make_harness,
) -> None:
    kept = Kept()
    harness: Harness = await make_harness(spans=kept.spans)
    await harness.put_node("n1")
    before = len(kept.all())
    body = json.dumps({"pods": [pod("a")]}).encode()
    path = f"{CLUSTER}/placements"
    headers = [(b"content-type", b"application/json"), (b"traceparent", TRACEPARENT.encode())]
    request = ForwardedRequest(
        method="POST",
        path=path,
        raw_path=path.encode(),
        query=b"",
        headers=headers,
        body=body,
        principal=EVERYBODY,
        address="",
        request_id="mine",
    )
    answer = await decide_forwarded(harness.app.app, request, spans=kept.spans)
    assert answer.status == 200
    added = kept.all()[before:]
    assert [(each.name, parent_of(each)) for each in added] == [
        ("decide", PARENT),
        ("commit", PARENT),
    ]


def test_without_its_packages_a_server_that_is_to_trace_says_what_it_lacks(monkeypatch) -> None:
    assert exported_spans("off", "1", SystemClock()) is None
    monkeypatch.setattr("service.api.telemetry.traces.find_spec", lambda _: None)
    with pytest.raises(InvalidSettings, match=r"moorage-server\[otel\]"):
        exported_spans("otlp", "1", SystemClock())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "moorage"),
        ({"OTEL_SERVICE_NAME": "moorage-eu"}, "moorage-eu"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=berth,zone=a"}, "berth"),
    ],
)
def test_the_variables_may_name_the_service(monkeypatch, variables, expected) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spans = exported_spans("otlp", "1.2.3", SystemClock())
    assert spans is not None
    told = spans.resource.attributes
    spans.close()
    assert (told["service.name"], told["service.version"]) == (expected, "1.2.3")


def test_a_server_that_does_not_trace_imports_nothing_of_it() -> None:
    program = "import sys, service.app; print([m for m in sys.modules if 'opentelemetry' in m])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
