"""Spans of requests, their decisions, and their commits, for OpenTelemetry.

OpenTelemetry's packages are an extra (`moorage-server[otel]`), imported only if tracing is enabled.
The edge begins a span for each request, as a child of the caller's span (`traceparent`). The
scheduler decides requests in batches and in other tasks, so it reports their parts after they end.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from litestar.types import HTTPScope
from typing_extensions import override

from service.scheduler.commit.tracer import Part, RequestSpan, Tracer
from service.scheduler.protocol.ports import Clock
from service.settings import InvalidSettings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer as Exporting

_PACKAGES = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")
"""Packages with parents first, since a module can only be looked up in an existing package."""
_TRACEPARENT = "traceparent"
_TRACESTATE = "tracestate"
_OWN_HEADERS = frozenset({_TRACEPARENT.encode(), _TRACESTATE.encode()})
_NANOSECONDS = 1_000_000_000
_ERRORS_FROM = 500


def require_packages(tracing: Literal["off", "otlp"]) -> None:
    """Check that spans can be exported, before starting a process that would export them.

    Raises:
        InvalidSettings: the packages of OpenTelemetry are not installed.
    """
    if tracing == "off":
        return
    for name in _PACKAGES:
        if find_spec(name) is None:
            raise InvalidSettings(
                "MOORAGE_TRACING=otlp needs OpenTelemetry's packages: install `moorage-server[otel]`."
            )


def exported_spans(tracing: Literal["off", "otlp"], version: str, clock: Clock) -> "Spans | None":
    """Return spans exported as OpenTelemetry's own variables specify, or None if tracing is off.

    Raises:
        InvalidSettings: the packages of OpenTelemetry are not installed.
    """
    require_packages(tracing)
    if tracing == "off":
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    named = Resource.create({"service.name": "moorage", "service.version": version})
    # `create` prefers its arguments to variables such as OTEL_SERVICE_NAME.
    by_variables = OTELResourceDetector().detect()
    provider = TracerProvider(resource=named.merge(by_variables), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider, clock)


class Spans(Tracer):
    """Begins the spans of requests, and finds the span of the running task."""

    def __init__(self, provider: "TracerProvider", clock: Clock) -> None:
        from opentelemetry import context, propagate, trace  # noqa: PLC0415 - see the module

        self._provider = provider
        self._tracer = provider.get_tracer("moorage")
        self._context, self._propagate, self._trace = context, propagate, trace
        # Parts are timed by the monotonic clock, but spans have wall-clock times.
        self._zero = clock.now().timestamp() - clock.monotonic()

    def begin(self, scope: HTTPScope) -> "EdgeSpan":
        """Begin the span of a request, in the running task's context.

        The request's headers are changed to name the span, so that a worker to which the request is
        forwarded adds children to it.
        """
        parent = self._caller(scope)
        span = self._tracer.start_span(
            scope["method"],
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes={"http.request.method": scope["method"], "url.path": scope["path"]},
        )
        own = self._trace.set_span_in_context(span, parent)
        self._context.attach(own)
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier, own)
        kept = [header for header in scope["headers"] if header[0] not in _OWN_HEADERS]
        added = [(name.encode(), value.encode()) for name, value in carrier.items()]
        cast("dict[str, object]", scope)["headers"] = [*kept, *added]
        return EdgeSpan(span, self._trace.format_trace_id(span.get_span_context().trace_id))

    def go_on(self, scope: HTTPScope) -> None:
        """Continue the trace of a request under the span that another worker began."""
        self._context.attach(self._caller(scope))

    def _caller(self, scope: HTTPScope) -> "Context":
        """Return the trace context in a request's headers, ignoring the task's own context."""
        headers = _trace_headers(scope["headers"])
        return self._propagate.extract(headers, self._context.Context())

    @override
    def current(self) -> RequestSpan | None:
        """Return the span of the running task's request, or None if it is not recorded."""
        span = self._trace.get_current_span()
        if not span.get_span_context().trace_flags.sampled:
            return None
        return _Parts(self._tracer, self._trace.set_span_in_context(span), self._zero)

    @property
    def resource(self) -> "Resource":
        """The OpenTelemetry resource that all spans share."""
        return self._provider.resource

    def close(self) -> None:
        """Send the remaining spans, which may take a while; call this in a thread of its own."""
        self._provider.shutdown()


class EdgeSpan(NamedTuple):
    """The span of one request."""

    span: "Span"
    trace_id: str

    def end(self, operation: str, status: int, request_id: str) -> None:
        """End the span when the request is answered."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - see the module

        self.span.update_name(operation)
        self.span.set_attribute("http.response.status_code", status)
        self.span.set_attribute("moorage.request_id", request_id)
        if status >= _ERRORS_FROM:
            self.span.set_status(StatusCode.ERROR)
        self.span.end()


class _Parts(NamedTuple):
    """Reports the parts of one request."""

    tracer: "Exporting"
    parent: object
    zero: float

    def part(self, name: Part, begun: float, ended: float, outcome: str) -> None:
        span = self.tracer.start_span(
            name,
            context=self.parent,  # type: ignore[arg-type]
            start_time=self._nanoseconds(begun),
            attributes={"moorage.outcome": outcome},
        )
        span.end(self._nanoseconds(ended))

    def _nanoseconds(self, monotonic: float) -> int:
        return round((self.zero + monotonic) * _NANOSECONDS)


def _trace_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name in _OWN_HEADERS
    }
