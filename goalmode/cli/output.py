"""Everything that is printed: without secrets, safe for terminals, never failing on an encoding, plain in pipes."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any, TextIO

import click

from goalmode.cli import secrets
from goalmode.cli.columns import aligned
from goalmode.domain.text import one_line, safe, sendable

_UNSHOWN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def soften(*streams: TextIO) -> None:
    """What a stream's encoding does not have is shown as an escape; nothing fails on it."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether control sequences may be written: to a terminal that takes them, of a user who does not refuse them."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and (stream or sys.stdout).isatty()


def _write(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    # The stream is given: click would put UTF-8 in the place of an encoding that it finds too poor.
    click.echo(text + end, file=stream or sys.stdout, nl=False)


def shown(text: str) -> str:
    """`text` as it may be seen: no secret in it, and nothing that moves a cursor, colours a line or reorders text."""
    return safe(secrets.known()(text))


def say(text: str = "", *, strong: bool = False) -> None:
    """Print on standard output."""
    line = shown(text)
    _write(click.style(line, bold=True) if strong and is_terminal() else line)


def complain(text: str) -> None:
    """Print one line on standard error."""
    _write(f"goalmode: {one_line(shown(text))}", sys.stderr)


def remark(text: str) -> None:
    """Print a line on standard error that is no complaint."""
    _write(shown(text), sys.stderr)


def exactly(text: str) -> None:
    """Print a stored text: byte for byte where it goes on to a program, made safe where somebody looks at it."""
    if sys.stdout.isatty():
        click.echo(shown(text), nl=False)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(secrets.known()(text).encode("utf-8", "replace"))
        sys.stdout.buffer.flush()


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a JSON value: valid in every encoding, and harmless on a terminal."""
    _write(json_text(value, ascii=not _is_utf8(sys.stdout), indent=indent))


def say_json_list(values: Iterable[Any]) -> None:
    """Print a JSON list as its values come: the same text as `say_json` of all of them, without holding them all."""
    ascii, between = not _is_utf8(sys.stdout), "["
    for value in values:
        _write(f"{between}\n{indent(json_text(value, ascii=ascii), '  ')}", end="")
        between = ","
    _write("[]" if between == "[" else "\n]")


def json_text(value: Any, *, ascii: bool = False, indent: int | None = 2) -> str:
    """A JSON value as text that a terminal shows as it is: what it would obey is an escape."""
    text = sendable(json.dumps(secrets.struck(value), ensure_ascii=ascii, indent=indent))
    return _UNSHOWN.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def has_blocks(stream: TextIO | None = None) -> bool:
    """Whether the stream's encoding has block characters."""
    try:
        "▁█".encode((stream or sys.stdout).encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def remark_json(value: Any) -> None:
    """Print a JSON value on standard error, on one line."""
    _write(json_text(value, ascii=not _is_utf8(sys.stderr), indent=None), sys.stderr)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; on a terminal the last column is cut to what is left of the line."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    cells = [[one_line(shown(cell)) for cell in row] for row in rows]
    first, *rest = aligned([head, *cells], width)
    say(first, strong=True)
    for line in rest:
        say(line)


def pairs(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair a line; a value's further lines are indented as far."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        head, *more = shown(value).split("\n")
        say(f"{name:<{width}}  {head}".rstrip())
        for line in more:
            say(f"{'':<{width}}  {line}".rstrip())
