"""Traces for OpenTelemetry, if an operator asks for them (`--otlp`). Otherwise nothing of this is even imported.

Each call becomes a span below the caller's, named by its method. Needs the extra `otel`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from serving.calls import current
from serving.calls.answer_streams import ClosingStream
from serving.calls.methods import Answer, Call, Duplex, Method, Streaming, UnaryMethod, maybe_await
from serving.errors import ServiceError

_CONTEXT: Final = TraceContextTextMapPropagator()


class Tracing:
    """Makes spans of the calls of one process."""

    def __init__(self, processor: SpanProcessor, service: str, instance: str) -> None:
        """`service` and `instance` say who we are: service.name and service.instance.id."""
        resource = Resource.create({"service.name": service, "service.instance.id": instance})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)

    @classmethod
    def to(cls, endpoint: str, service: str, instance: str) -> Tracing:
        """Send them to an OTLP collector over HTTP, e.g. http://127.0.0.1:4318."""
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        return cls(BatchSpanProcessor(exporter), service, instance)

    def traced_methods(self, methods: Sequence[Method]) -> list[Method]:
        """The same methods, with a span for each call."""
        tracer = self._provider.get_tracer("hq")
        return [_traced_method(method, tracer) for method in methods]

    def close(self) -> None:
        """Send what is left; takes as long as the collector, some seconds at most."""
        self._provider.shutdown()


def _traced_method(method: Method, tracer: Tracer) -> Method:
    if isinstance(method, UnaryMethod):
        return _unary(method, tracer)
    return method if isinstance(method, Duplex) else _streaming(method, tracer)


def _unary(method: UnaryMethod, tracer: Tracer) -> UnaryMethod:
    async def run(request: Any, call: Call) -> Answer:
        with _span(tracer, method.path, call):
            return await maybe_await(method.run(request, call))

    return replace(method, run=run)


def _streaming(method: Streaming, tracer: Tracer) -> Streaming:
    async def run(request: Any, call: Call) -> AsyncIterator[Answer]:
        with _span(tracer, method.path, call):
            async with ClosingStream(method.run(request, call)) as answers:
                async for answer in answers:
                    yield answer

    return replace(method, run=run)


@contextmanager
def _span(tracer: Tracer, path: str, call: Call) -> Iterator[None]:
    parent = _CONTEXT.extract({name: call.header(name) for name in ("traceparent", "tracestate")})
    service, _, name = path.partition("/")
    about = {"rpc.service": service, "rpc.method": name, "hq.request_id": call.request_id}
    span = tracer.start_span(path, parent, SpanKind.SERVER, about)
    carrier: dict[str, str] = {}
    _CONTEXT.inject(carrier, set_span_in_context(span))
    current.OWN_TRACE.set(carrier.get("traceparent", ""))
    try:
        yield
    except BaseException as error:
        _record_error(span, error)
        raise
    finally:
        span.end()


def _record_error(span: Span, error: BaseException) -> None:
    if isinstance(error, ServiceError):
        span.set_attribute("hq.reason", error.reason)
        span.set_status(StatusCode.ERROR, error.code)
    elif isinstance(error, Exception):
        span.record_exception(error)
        span.set_status(StatusCode.ERROR, type(error).__name__)
