"""What OpenTelemetry is told of wakeups. Needs the extra `otel`; nothing else of the package loads it."""

try:
    from goalmode.telemetry.spans import traced
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "opentelemetry":
        raise
    hint = "goalmode.telemetry needs the extra otel: pip install 'goalmode[otel]'"
    raise ModuleNotFoundError(hint, name=missing.name) from None

__all__ = ["traced"]
