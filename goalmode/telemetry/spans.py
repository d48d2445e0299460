"""A wakeup's events as spans: the wakeup, and in it the model calls and the tool calls.

They hold names, sizes and outcomes; of what users, models and tools said, nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_tracer,
    set_span_in_context,
)

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import EXIT_FACTS, ExitReason
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line
from goalmode.loop.ports import Event, Sink
from goalmode.telemetry import names

AGENT = "goalmode"

LONGEST = 200
"""Characters of a text in a span: a name, an id, a provider's word."""

PROVIDERS = {"openai-responses": "openai"}
"""What the conventions call a provider, where a wire format has another name."""

FAILED = frozenset(
    {
        *(reason for reason, facts in EXIT_FACTS.items() if facts.counts),
        ExitReason.MODEL_REFUSED,
        ExitReason.BACKEND_ERROR,
        ExitReason.ENGINE_ERROR,
        ExitReason.INTERRUPTED,
    }
)
"""Endings that are errors: the bad ones that count against a goal, and those that something else is to blame for."""

_log = logging.getLogger(__name__)


@contextmanager
def traced(
    sink: Sink | None = None, *, provider: TracerProvider | None = None, redact: Redactor | None = None
) -> Iterator[Sink]:
    """A sink that makes spans of a wakeup's events, then tells them to `sink`.

    The wakeup's span is a child of the one that is current as it begins. What is open as the block is left is ended
    with it, as an error: a wakeup that another process took over, or whose store failed, tells no ending. What goes
    wrong in tracing is logged once and changes no wakeup.

    Args:
        provider: of the tracer; None for the one that the program has set.
        redact: strikes out secrets; None for what looks like one.
    """
    spans = _Spans(provider, redact or Redactor())

    def both(event: Event) -> None:
        spans.note(event)
        if sink is not None:
            sink(event)

    try:
        yield both
    except BaseException as error:
        spans.leave(type(error).__name__)
        raise
    spans.leave(names.OTHER)


class _Spans:
    """Of all wakeups that are told of. Nothing here fails."""

    def __init__(self, provider: TracerProvider | None, redact: Redactor) -> None:
        self._provider, self._redact = provider, redact
        self._tracer: Tracer | None = None
        self._open: dict[tuple[str, int], _Wakeup] = {}
        self._broken = False

    def note(self, event: Event) -> None:
        if self._broken or "wakeup" not in event.data:
            return
        try:
            self._note(event.kind, event.data)
        except Exception:  # noqa: BLE001 - a tracer is not ours
            self._broken = True
            _log.exception("tracing failed at %s; it goes on without", event.kind)
            self.leave(names.OTHER)

    def leave(self, error: str) -> None:
        """End what is still open."""
        while self._open:
            _, wakeup = self._open.popitem()
            wakeup.left(error)

    def _note(self, kind: str, data: Mapping[str, Any]) -> None:
        key = data["goal"], data["wakeup"]
        if kind == "wakeup_started":
            if self._tracer is None:
                self._tracer = get_tracer(AGENT, metadata.version("goalmode"), self._provider)
            self._open[key] = _Wakeup(self._tracer, self._redact, data)
        elif key in self._open:
            self._open[key].note(kind, data)
            if kind == "wakeup_closed":
                del self._open[key]


class _Wakeup:
    """The spans of one wakeup. One model call runs at a time, and any number of tool calls, known by their ids."""

    def __init__(self, tracer: Tracer, redact: Redactor, data: Mapping[str, Any]) -> None:
        self._tracer, self._redact = tracer, redact
        self._model = self._shown(data["model"])
        self._whose = {names.PROVIDER: PROVIDERS.get(data["wire"], data["wire"])}
        self._chat: Span | None = None
        self._tools: dict[str, Span] = {}
        self._span = tracer.start_span(
            f"{names.INVOKE_AGENT} {AGENT}",
            attributes={
                names.OPERATION: names.INVOKE_AGENT,
                names.AGENT: AGENT,
                names.CONVERSATION: data["goal"],
                names.REQUEST_MODEL: self._model,
                names.WAKEUP: f"{data['goal']}.{data['wakeup']}",
                names.FENCE: data["fence"],
                **self._whose,
            },
        )
        self._inside = set_span_in_context(self._span)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "asking":
                self._asking(data)
            case "reply":
                self._replied(data)
            case "context_rerendered":  # Also what follows a request that was refused as too long.
                self._unanswered(names.OTHER)
            case "tool_started":
                self._tools[data["call_id"]] = self._tool(data)
            case "tool":
                self._told(data)
            case "wakeup_closed":
                self._closed(data)

    def left(self, error: str) -> None:
        """End what is open, whichever of it can be."""
        for span in (self._chat, *self._tools.values(), self._span):
            if span is not None and span.is_recording():
                with suppress(Exception):
                    _failed(span, error)
                with suppress(Exception):
                    span.end()

    def _asking(self, data: Mapping[str, Any]) -> None:
        self._unanswered(names.OTHER)
        self._chat = self._tracer.start_span(
            f"{names.CHAT} {self._model}",
            self._inside,
            SpanKind.CLIENT,
            {
                names.OPERATION: names.CHAT,
                names.REQUEST_MODEL: self._model,
                names.TURN: data["turn"],
                names.PURPOSE: data["purpose"],
                **self._whose,
            },
        )

    def _replied(self, data: Mapping[str, Any]) -> None:
        if self._chat is None:
            return
        self._chat.set_attributes(
            {
                names.RESPONSE_MODEL: self._shown(data["model"]),
                names.FINISH_REASONS: [self._shown(data["stop_raw"] or data["stop_reason"])],
                names.INPUT_TOKENS: data["input_tokens"],
                names.CACHE_READ_TOKENS: data["cached_input_tokens"],
                names.CACHE_WRITE_TOKENS: data["cache_write_tokens"],
                names.OUTPUT_TOKENS: data["output_tokens"],
            }
        )
        self._chat.end()
        self._chat = None

    def _unanswered(self, error: str) -> None:
        if self._chat is not None:
            _failed(self._chat, error)
            self._chat.end()
            self._chat = None

    def _tool(self, data: Mapping[str, Any]) -> Span:
        name = self._shown(data["tool"])
        return self._tracer.start_span(
            f"{names.EXECUTE_TOOL} {name}",
            self._inside,
            attributes={
                names.OPERATION: names.EXECUTE_TOOL,
                names.TOOL: name,
                names.TOOL_TYPE: "function",
                names.TOOL_CALL: self._shown(data["call_id"]),
                names.TURN: data["turn"],
            },
        )

    def _told(self, data: Mapping[str, Any]) -> None:
        call = data["call_id"]
        span = self._tools.get(call) or self._tool(data)  # One that was refused never started.
        if data["outcome"] != CallOutcome.SUCCESS:
            _failed(span, data["outcome"])
        span.end()
        self._tools.pop(call, None)

    def _closed(self, data: Mapping[str, Any]) -> None:
        reason, facts = ExitReason(data["exit_reason"]), data["facts"]
        self._unanswered(self._shown(str(facts.get("kind") or reason.value)))
        for span in self._tools.values():
            _failed(span, reason.value)
            span.end()
        self._span.set_attribute(names.EXIT_REASON, reason.value)
        shut_down = facts.get("requested")  # A server that is stopped interrupts what it runs.
        if reason in FAILED and not shut_down:
            _failed(self._span, reason.value)
        self._span.end()

    def _shown(self, text: str) -> str:
        return one_line(self._redact(text), LONGEST)


def _failed(span: Span, error: str) -> None:
    span.set_attribute(names.ERROR_TYPE, error)
    span.set_status(Status(StatusCode.ERROR, error))
