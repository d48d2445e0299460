"""What a run shows while it runs: lines in a pipe, a live line below them on a terminal, JSON, or nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

from goalmode.cli.output import is_terminal, say, say_json
from goalmode.domain.redact import Redactor
from goalmode.domain.text import counted, one_line, safe
from goalmode.loop.ports import Event


class Display(Protocol):
    """Shows events. Nothing it does or fails at may change a run."""

    def show(self, event: Event) -> None: ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Progress:
    """The sink of a run: strikes out secrets, and goes quiet once nobody reads any more."""

    def __init__(self, display: Display, redact: Redactor) -> None:
        self._display, self._redact, self._closed = display, redact, False

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        try:
            self._display.show(Event(event.kind, self._struck(event.data)))
        except (OSError, ValueError):  # A closed pipe. The work goes on.
            self._closed = True

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._display.close()

    def _struck(self, value: Any) -> Any:
        match value:
            case str():
                return self._redact(value)
            case Mapping():
                return {key: self._struck(item) for key, item in value.items()}
            case list() | tuple():
                return [self._struck(item) for item in value]
            case _:
                return value


def display(*, json: bool, quiet: bool, now: Callable[[], datetime]) -> Display:
    """The display for this standard output."""
    if json:
        return JsonLines(now)
    if quiet:
        return Silence()
    return Live() if is_terminal(sys.stdout) else Lines()


class Silence:
    def show(self, event: Event) -> None:
        pass

    def close(self) -> None:
        pass


class JsonLines:
    """One event a line: its kind, the time, and its data."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def show(self, event: Event) -> None:
        say_json({"kind": event.kind, "at": self._now().isoformat(), **event.data}, indent=None)

    def close(self) -> None:
        pass


class Lines:
    """Plain lines, one for what is worth one."""

    def show(self, event: Event) -> None:
        line = told(event)
        if line:
            say(line)

    def close(self) -> None:
        pass


class Live:
    """The same lines, and below them one that says what happens just now."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._now, self._started = _Now(), time.monotonic()
        self._console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._live = RichLive(
            get_renderable=self._line, console=self._console, transient=True, refresh_per_second=4,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start()

    def show(self, event: Event) -> None:
        from rich.text import Text

        self._now.note(event)
        line = told(event)
        if line:
            self._console.print(Text(safe(line)))

    def close(self) -> None:
        self._live.stop()

    def _line(self) -> Any:
        from rich.text import Text

        seconds = int(time.monotonic() - self._started)
        text = f"{seconds // 60}:{seconds % 60:02}  {self._now.text()}"
        return Text(one_line(text), style="bold", no_wrap=True, overflow="ellipsis")


class _Now:
    """Where a run is, out of its events."""

    def __init__(self) -> None:
        self._wakeup, self._turn, self._quota, self._tokens = 0, 0, 0, 0
        self._doing = "starting"

    def note(self, event: Event) -> None:
        data = event.data
        self._wakeup = data.get("wakeup", self._wakeup)
        self._turn = data.get("turn", self._turn)
        self._quota = data.get("max_turns", self._quota)
        match event.kind:
            case "wakeup_started":
                self._turn, self._doing = 0, "starting"
            case "asking":
                self._doing = "the model thinks"
            case "reply":
                self._tokens = data["spent_tokens"] + data["tokens"]
                self._doing = "reading the reply"
            case "tool_started":
                self._doing = data["tool"]
            case "retry" | "waiting":
                self._doing = told(event)
            case _:
                pass

    def text(self) -> str:
        """What a narrow terminal must not lose comes first."""
        where = f"  turn {self._turn}/{self._quota}  {counted(self._tokens, 'token')}  wakeup {self._wakeup}"
        return self._doing + (where if self._wakeup else "")


def told(event: Event) -> str:
    """An event as a line; empty for one that is not worth a line."""
    data = event.data
    match event.kind:
        case "wakeup_started":
            size, most = counted(data["context_tokens"], "token"), counted(data["max_turns"], "turn")
            return f"wakeup {data['wakeup']}: context of {size}, up to {most}"
        case "reply" if not data["calls"]:
            return f"turn {data['turn']}  {data['purpose']}: {data['stop_reason']}, no tool call"
        case "tool":
            code = "" if data["exit_code"] is None else f", exit {data['exit_code']}"
            brief = f" {one_line(data['brief'], 200)}" if data["brief"] else ""
            return f"turn {data['turn']}  {data['tool']}{brief}: {data['outcome']}{code}, {data['milliseconds']} ms"
        case "server":
            return str(data["told"])
        case "context_rerendered":
            before, after = f"{data['tokens_before']:,}", f"{data['context_tokens']:,}"
            return f"turn {data['turn']}  the work window is full: {before} tokens became {after}"
        case "settling":
            return f"its ending stands; after {counted(data['turns'], 'turn')} the model is asked what to remember"
        case "settled":
            why = f" ({one_line(data['detail'], 200)})" if data["detail"] else ""
            return f"settlement {data['settlement']}{why}"
        case "retry":
            return (
                f"asking again in {data['seconds']:.0f} s, after attempt {data['attempt']}: {data['error']}"
            )
        case "waiting":
            return f"waiting {data['seconds']:.0f} s for the next wakeup ({data['why']})"
        case "wakeup_closed":
            turns = counted(data["turns"], "turn")
            return f"wakeup {data['wakeup']} ended after {turns}: {data['exit_reason']}"
        case _:
            return ""


def show_cursor() -> None:
    """Undo what a live line did to the terminal, from wherever the process is about to end."""
    if is_terminal(sys.stdout):
        os.write(sys.stdout.fileno(), b"\x1b[?25h\r\n")
