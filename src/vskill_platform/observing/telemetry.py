"""Traces: one span for each request, each attempt at a submission and each run of a job, sent over OTLP.

It is an extra. Without `VSKILL_OTLP_ENDPOINT` nothing of OpenTelemetry is imported, and a span is an object that does
nothing. `bootstrap` opens it; each unit of work asks the environment for a span.
"""

import asyncio
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from vskill_core.errors import InvalidSettings
from vskill_platform import __version__
from vskill_platform.settings import Settings, variable

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

#: Where a collector takes traces, below the endpoint.
TRACES_PATH = "/v1/traces"
SERVICE = "vskill-platform"

_NOTHING: AbstractContextManager[None] = nullcontext()


class Tracing(Protocol):
    """Where spans come from."""

    def span(self, name: str, /, **attributes: str | int) -> AbstractContextManager[Any]:
        """A span around the body; an exception that leaves it is recorded."""


class NoTracing:
    """No traces: the default."""

    def span(self, name: str, /, **attributes: str | int) -> AbstractContextManager[Any]:
        return _NOTHING


class OtlpTracing:
    """Spans that a separate thread sends to a collector in batches."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._tracer = provider.get_tracer("vskill_platform", __version__)

    def span(self, name: str, /, **attributes: str | int) -> AbstractContextManager[Any]:
        return self._tracer.start_as_current_span(name, attributes=attributes)


async def open_tracing(settings: Settings, instance: str, stack: AsyncExitStack) -> Tracing:
    """What the settings ask for; the stack sends what is left and closes it."""
    if not settings.otlp_endpoint:
        return NoTracing()
    provider = await asyncio.to_thread(_provider, settings, instance)
    stack.push_async_callback(asyncio.to_thread, provider.shutdown)
    return OtlpTracing(provider)


def _provider(settings: Settings, instance: str) -> "TracerProvider":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        name = variable("otlp_endpoint")
        raise InvalidSettings(
            f"{name} is set, and the extra `telemetry` is not installed: install it, or unset {name}.",
            setting=name,
        ) from error
    resource = Resource.create(
        {"service.name": SERVICE, "service.version": __version__, "service.instance.id": instance}
    )
    provider = TracerProvider(resource=resource)
    exporter = OTLPSpanExporter(endpoint=settings.otlp_endpoint.rstrip("/") + TRACES_PATH, timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
