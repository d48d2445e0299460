"""Wakeups with a scripted model, and the spans that became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from goalmode.domain.exits import Exit
from goalmode.loop.ports import Event, Sink
from goalmode.telemetry import traced
from goalmode.testing import ScriptedModel
from goalmode.wiring import run_wakeup
from tests.loop.conftest import World, make

__all__ = ["make"]


class _Counting(SpanProcessor):
    begun = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.begun += 1


@dataclass
class Traces:
    """A tracer provider that keeps what was ended."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    counting: _Counting = field(default_factory=_Counting)
    provider: TracerProvider = field(default_factory=lambda: TracerProvider(shutdown_on_exit=False))

    def __post_init__(self) -> None:
        self.provider.add_span_processor(self.counting)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """In the order in which they began; every span that began has ended, and not before it began."""
        ended = self.exporter.get_finished_spans()
        assert len(ended) == self.counting.begun
        assert all(span.start_time <= span.end_time for span in ended)  # type: ignore[operator]
        return sorted(ended, key=lambda span: span.start_time or 0)

    def tree(self) -> list[str]:
        """Names, children further to the right, with what failed."""
        return [line for root in self.spans if root.parent is None for line in self._below(root, "")]

    def of(self, name: str) -> list[dict[str, Any]]:
        """The attributes of the spans whose operation this is."""
        return [dict(span.attributes or {}) for span in self.spans if span.name.split()[0] == name]

    def _below(self, span: ReadableSpan, indent: str) -> list[str]:
        error = (span.attributes or {}).get("error.type")
        assert (error is not None) == (not span.status.is_ok and span.status.is_unset is False)
        children = [s for s in self.spans if s.parent and s.parent.span_id == span.context.span_id]
        return [
            indent + span.name + (f" ! {error}" if error else ""),
            *(line for child in children for line in self._below(child, indent + "  ")),
        ]


Run = Callable[..., Exit]


@pytest.fixture
def traces() -> Traces:
    return Traces()


@pytest.fixture
def run(traces: Traces) -> Run:
    """Runs one wakeup of a world, traced: `run(world, steps, …)`."""

    def one(
        world: World,
        steps: Iterable[Any],
        *,
        sink: Sink | None = None,
        stop: Callable[[], Exit | None] | None = None,
        provider: Any = None,
        wake: Any = None,
    ) -> Exit:
        def noted(event: Event) -> None:
            world.events.append(event)
            if sink is not None:
                sink(event)

        async def wakeup() -> Exit:
            with traced(noted, provider=provider or traces.provider) as told:
                return await run_wakeup(wake or world.begin(), ScriptedModel(steps), sink=told, stop=stop)

        return anyio.run(wakeup)

    return one
