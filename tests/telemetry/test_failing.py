"""A tracer that fails changes no wakeup, and a display that fails no trace."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor

from goalmode.domain.exits import ExitReason
from goalmode.loop.ports import Event
from goalmode.telemetry import traced
from tests.loop.conftest import Make
from tests.telemetry.conftest import Run, Traces
from tests.telemetry.test_spans import AGENT, DONE, WRITE


class Broken(SpanProcessor):
    """Raises once: as the nth span begins, or as the nth ends."""

    def __init__(self, what: str, number: int) -> None:
        self.what, self.left = what, number

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._count("begins")

    def on_end(self, span: Any) -> None:
        self._count("ends")

    def _count(self, what: str) -> None:
        self.left -= what == self.what
        if self.left == 0:
            self.left = -1
            raise RuntimeError("no more spans")


class NoTracer:
    def get_tracer(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no tracer")


@pytest.mark.parametrize("number", [1, 2, 3, 5], ids=["wakeup", "call", "tool", "last"])
@pytest.mark.parametrize("what", ["begins", "ends"])
def test_a_tracer_that_raises_ends_no_wakeup(
    make: Make, run: Run, traces: Traces, what: str, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The wakeup and what it shows are as without it; the trouble is logged once, and what was open is ended."""
    world = make(deliverables=("a.txt",))
    traces.provider.add_span_processor(Broken(what, number))

    assert run(world, [WRITE, DONE]).reason is ExitReason.CURRENT_TASK_DONE

    assert world.kinds()[0] == "wakeup_started"
    assert world.kinds()[-1] == "wakeup_closed"
    assert len([r for r in caplog.records if "tracing failed" in r.message]) == 1
    never_ours = what == "begins"  # A span whose beginning raised was given to nobody.
    assert len(traces.exporter.get_finished_spans()) == traces.counting.begun - never_ours


def test_no_tracer_at_all(make: Make, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """A provider that gives none is the same."""
    ending = run(make(deliverables=("a.txt",)), [WRITE, DONE], provider=NoTracer())

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "no tracer" in caplog.text


def test_a_display_that_raises_does_not_change_a_trace(make: Make, run: Run, traces: Traces) -> None:
    """Events reach the spans first. Of the rest nothing is known: no ending is made up."""

    def fails(event: Event) -> None:
        raise ValueError("the window was closed")

    run(make(deliverables=("a.txt",)), [WRITE, DONE], sink=fails)

    assert traces.tree() == [f"{AGENT} ! _OTHER"]


def test_events_that_are_of_no_wakeup_are_passed_on(traces: Traces) -> None:
    """What comes from elsewhere, or before a wakeup began, makes no span."""
    heard: list[str] = []

    with traced(lambda event: heard.append(event.kind), provider=traces.provider) as sink:
        sink(Event("store", {"detail": "busy"}))
        sink(Event("reply", {"goal": "g", "wakeup": 1}))

    assert heard == ["store", "reply"]
    assert traces.spans == []
