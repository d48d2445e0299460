"""Whether OpenTelemetry is to be told of wakeups. Nothing of it is loaded unless somebody asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from goalmode.cli import secrets
from goalmode.cli.output import complain
from goalmode.loop.ports import Sink

Traced = Callable[[Sink], AbstractContextManager[Sink]]
"""What a wakeup's sink goes through."""

EXPORTER = "OTEL_TRACES_EXPORTER"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

NEEDS_EXTRA = "it needs the extra otel: pip install 'goalmode[otel]'"


@contextmanager
def tracing(environ: Mapping[str, str]) -> Iterator[Traced]:
    """For the time of a command: spans go where OpenTelemetry was set up to send them, else where its variables say.

    A run is worth more than its traces: where there can be none, one line says why, and it goes on.
    """
    exporters, because = asked(environ)
    if not exporters and "opentelemetry.trace" not in sys.modules:
        yield nullcontext
        return
    with ExitStack() as stack:
        yield _traced(stack, exporters, because, environ)


def asked(environ: Mapping[str, str]) -> tuple[str, str]:
    """The exporters that the variables ask for, and the variable that does; empty where none does."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "", ""
    if named := environ.get(EXPORTER, "").strip():
        return ("", "") if named.lower() == "none" else (named, EXPORTER)
    return next((("otlp", name) for name in ENDPOINTS if environ.get(name, "").strip()), ("", ""))


def _traced(stack: ExitStack, exporters: str, because: str, environ: Mapping[str, str]) -> Traced:
    try:
        from goalmode.telemetry import traced
        from goalmode.telemetry.exporting import already_set, as_asked

        provider = already_set()
        if provider is None and not exporters:
            return nullcontext
        provider = provider or stack.enter_context(as_asked(exporters, environ))
    except Exception as error:  # noqa: BLE001 - whatever an exporter does not like
        asked_by = f", though {because} is set" if because else ""
        complain(f"not traced{asked_by}: {NEEDS_EXTRA if _is_missing(error) else error}")
        return nullcontext
    return partial(traced, provider=provider, redact=secrets.known())


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("opentelemetry")
