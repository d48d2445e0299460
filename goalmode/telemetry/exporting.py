"""Where spans go: to what was set up before, or to where the `OTEL_` variables say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

from opentelemetry import trace

from goalmode.errors import ConfigError

SERVICE = "goalmode"
"""What the program is called in traces, unless a variable calls it otherwise."""

GROUP = "opentelemetry_traces_exporter"
"""Entry points under which exporters are installed."""


def already_set() -> trace.TracerProvider | None:
    """What the program was started with, as by `opentelemetry-instrument`."""
    found = trace.get_tracer_provider()
    return None if isinstance(found, trace.ProxyTracerProvider) else found


@contextmanager
def as_asked(exporters: str, environ: Mapping[str, str]) -> Iterator[trace.TracerProvider]:
    """A provider with these exporters, named as in `OTEL_TRACES_EXPORTER`; what they hold is sent as the block ends.

    Everything else the SDK takes from the variables itself: endpoint, headers, sampler, resource.

    Raises:
        ConfigError: there is no such exporter.
        ModuleNotFoundError: the SDK is not installed.
        Whatever an exporter raises at what its variables say.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    made = [_exporter(name.strip(), environ) for name in exporters.split(",") if name.strip()]
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": SERVICE}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in made:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield provider
    finally:
        with suppress(Exception, KeyboardInterrupt):  # Ctrl-C: what a server does not take is not waited for.
            provider.shutdown()


def _exporter(name: str, environ: Mapping[str, str]) -> Any:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)  # Standard output is what the command itself says.
    if name == "otlp":
        name = f"otlp_proto_{_protocol(environ)}"
    found = tuple(metadata.entry_points(group=GROUP, name=name))
    if not found:
        raise ConfigError(f"no exporter {name!r} for OpenTelemetry is installed")
    return found[0].load()()


def _protocol(environ: Mapping[str, str]) -> str:
    """OpenTelemetry's own default is http/protobuf."""
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    asked = next((environ[name] for name in variables if environ.get(name)), "")
    return "grpc" if asked.strip() == "grpc" else "http"
