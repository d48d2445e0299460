"""The program's log on standard error, for those who ask for it: `--log-level` and `--log-json`."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from goalmode.cli.output import remark, remark_json
from goalmode.domain.text import one_line
from goalmode.loop.logs import WithIds
from goalmode.loop.ports import Event, Sink

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = ("debug", "info", "warning", "error")
DEFAULT = "info"

MAX_VALUE = 200
"""Characters of a value in a line; JSON has it whole."""

_OURS = "goalmode"


def log_options(command: F) -> F:
    """Add `--log-level` and `--log-json`; without either nothing is logged."""

    @click.option(
        "--log-level", metavar="LEVEL", type=click.Choice(LEVELS),
        help=f"Log on standard error: {', '.join(LEVELS)}. [default with --log-json: {DEFAULT}]",
    )  # fmt: skip
    @click.option("--log-json", is_flag=True, help="Log on standard error, one JSON object a line.")
    @functools.wraps(command)
    def with_logs(*args: Any, log_level: str | None, log_json: bool, **rest: Any) -> Any:
        if log_level is None and not log_json:
            return command(*args, **rest)
        with to_stderr(log_level or DEFAULT, json=log_json):
            return command(*args, **rest)

    return with_logs  # type: ignore[return-value]


@contextmanager
def to_stderr(level: str, *, json: bool) -> Iterator[None]:
    """Log on standard error within this block: ours from `level` on, other libraries' warnings and errors."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    handler, before = _ToStderr(json), ours.level
    ours.setLevel(level.upper())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        ours.setLevel(before)


def also_logged(sink: Sink, name: str) -> Sink:
    """`sink`, and a record of each event in the log `name`."""
    log = logging.getLogger(name)

    def both(event: Event) -> None:
        log.info(event.kind, extra={"data": dict(event.data)})
        sink(event)

    return both


class _ToStderr(logging.Handler):
    """Writes records without secrets, safe for a terminal; a pipe that is closed changes no run."""

    def __init__(self, json: bool) -> None:
        super().__init__()
        self._json = json
        self.addFilter(WithIds())
        self.addFilter(_wanted)

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            if self._json:
                remark_json(_fields(record))
            else:
                remark(_line(record))


def _wanted(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.split(".")[0] == _OURS


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "at": _time(record),
        "level": record.levelname.lower(),
        "logger": record.name,
        "goal": getattr(record, "goal", None),
        "wakeup": getattr(record, "wakeup", None),
        "message": record.getMessage(),
    }
    data, trace = getattr(record, "data", None), _traceback(record)
    return {**fields, **({"data": data} if data else {}), **({"exception": trace} if trace else {})}


def _line(record: logging.LogRecord) -> str:
    goal, wakeup = getattr(record, "goal", None), getattr(record, "wakeup", None)
    whose = "" if goal is None else f" {goal}" + ("" if wakeup is None else f".{wakeup}")
    data = getattr(record, "data", None) or {}
    shown = {name: value for name, value in data.items() if name not in ("goal", "wakeup")}
    told = " ".join(f"{name}={one_line(str(value), MAX_VALUE)}" for name, value in shown.items())
    line = (
        f"{_time(record)} {record.levelname:<7} {record.name}{whose}: {one_line(record.getMessage())} {told}"
    )
    return "\n".join([line.rstrip(), *([_traceback(record)] if record.exc_info else [])])


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _traceback(record: logging.LogRecord) -> str:
    """Without the values of variables."""
    return logging.Formatter().formatException(record.exc_info).rstrip() if record.exc_info else ""
