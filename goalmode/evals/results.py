"""The file of answers: one JSON object a line, only ever appended to, so that an evaluation goes on where it stopped.

The first line says what was measured and how; a file of another measurement is refused, and what differs is named. A
line that was cut by a crash is dropped, and its cell asked again. One evaluation at a time writes a file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from io import BufferedRandom
from pathlib import Path
from typing import Any, Self

from goalmode.domain.messages import Usage
from goalmode.domain.text import one_line
from goalmode.errors import BadInput, GoalmodeError
from goalmode.evals.design import Cell
from goalmode.evals.measure import Answer, Method, Way
from goalmode.evals.prompts import Prompt

FILE = "results.jsonl"
KIND = "goalmode eval pollution"
VERSION = 1

_BEGINNING = json.dumps({"kind": KIND})[:-1].encode()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured. Two evaluations that differ in any of it cannot share a file.

    Attributes:
        base_url: without user name, password and query.
        method: as it was asked for: a method, or `auto`.
    """

    model: str
    wire: str
    base_url: str
    temperature: float | None
    method: str
    samples: int
    answer_tokens: int


@dataclass
class Results:
    """The file, open and locked inside the `with` block.

    Attributes:
        way: how the model is asked; None before that is known.
        answers: by the cell's key. too_long: cells that the server found too long, with its words.
    """

    path: Path
    subject: Subject
    way: Way | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    too_long: dict[str, str] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _file: BufferedRandom | None = None

    def __enter__(self) -> Self:
        """Read the file if there is one. Nothing is made before there is something to write.

        Raises:
            BadInput: the directory or the file cannot be used, is no file of ours, or is one of another subject.
        """
        _must_be_usable(self.path.parent)
        if self.path.exists():
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def start(self, way: Way) -> None:
        """Say how the model is asked; the first line."""
        if self._file is None:
            self._open()
        if self._digests or self.way is not None:
            raise _busy(self.path)  # Another evaluation has made the file since.
        self.way = way
        self._append({"kind": KIND, "version": VERSION, "subject": asdict(self.subject), "way": asdict(way)})

    def is_done(self, cell: Cell, prompt: Prompt) -> bool:
        """Whether the cell was asked, in these very words.

        Raises:
            BadInput: it was asked in other words: the templates or the goals have changed.
        """
        if cell.key not in self._digests:
            return False
        if self._digests[cell.key] != prompt.digest:
            raise BadInput(
                "out",
                str(self.path),
                f"another directory: {cell.key} was asked there in other words (prompt "
                f"{self._digests[cell.key]}, now {prompt.digest}); templates, window or release differ",
            )
        return True

    def add(self, cell: Cell, prompt: Prompt, answer: Answer) -> None:
        self._append({"cell": cell.key, "prompt": prompt.digest, **_line(answer)})
        self.answers[cell.key] = answer
        self._digests[cell.key] = prompt.digest

    def add_too_long(self, cell: Cell, prompt: Prompt, why: str) -> None:
        self._append({"cell": cell.key, "prompt": prompt.digest, "too_long": why})
        self.too_long[cell.key] = why
        self._digests[cell.key] = prompt.digest

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = file = self.path.open("a+b")
        except OSError as error:
            raise BadInput("out", str(self.path), f"a file to write to ({error.strerror})") from None
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise _busy(self.path) from None
            self._read(file)
        except BaseException:
            file.close()
            self._file = None
            raise

    def _read(self, file: BufferedRandom) -> None:
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].splitlines()
        entries = [self._entry(number, line) for number, line in enumerate(lines, 1)]
        if entries:
            self._head(entries[0])
        elif not data.startswith(_BEGINNING[: len(data)]):
            raise self._not_ours(1)
        for number, entry in enumerate(entries[1:], 2):
            self._take(number, entry)
        if whole < len(data):
            file.truncate(whole)

    def _entry(self, number: int, line: bytes) -> Mapping[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            raise self._not_ours(number) from None
        if not isinstance(entry, dict):
            raise self._not_ours(number)
        return entry

    def _head(self, head: Mapping[str, Any]) -> None:
        if head.get("kind") != KIND:
            raise self._not_ours(1)
        if head.get("version") != VERSION:
            expected = f"a file of version {VERSION}; this one has {head.get('version')!r}"
            raise BadInput("out", str(self.path), expected)
        try:
            way = dict(head["way"])
            self.way = Way(**{**way, "method": Method(way["method"])})
            was = dict(head["subject"])
        except (KeyError, TypeError, ValueError):
            raise self._not_ours(1) from None
        differing = list(_differences(was, asdict(self.subject)))
        if differing:
            expected = f"another directory: this one is of another evaluation, with {', '.join(differing)}"
            raise BadInput("out", str(self.path), expected)

    def _take(self, number: int, entry: Mapping[str, Any]) -> None:
        try:
            key, digest = str(entry["cell"]), str(entry["prompt"])
            if "too_long" in entry:
                self.too_long[key] = str(entry["too_long"])
            else:
                self.answers[key] = _answer(entry)
        except (KeyError, TypeError, ValueError):
            raise self._not_ours(number) from None
        self._digests[key] = digest

    def _not_ours(self, number: int) -> BadInput:
        expected = (
            f"a directory without a {FILE}, or with one of this command; line {number} is none of its lines"
        )
        return BadInput("out", str(self.path), expected)

    def _append(self, entry: Mapping[str, Any]) -> None:
        assert self._file is not None, "inside the `with` block"
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            # One write: a reader, or a crash, finds whole lines but for the last.
            if os.write(self._file.fileno(), line) != len(line):
                raise OSError("no space left")
        except OSError as error:
            raise GoalmodeError(f"{self.path}: cannot be written: {error.strerror or error}") from None


def _must_be_usable(directory: Path) -> None:
    """Raises BadInput where the directory, or the nearest one above it that exists, cannot be written to."""
    nearest = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise BadInput("out", str(directory), f"a directory; {nearest} is none")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise BadInput("out", str(directory), f"a directory to write to; {nearest} is none")


def _busy(path: Path) -> BadInput:
    return BadInput("out", str(path), "a directory that no other evaluation writes to now")


def _line(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {
        "tool": answer.tool,
        "final": answer.final,
        **({"bound": answer.bound} if answer.bound else {}),
        **({"other": answer.other} if answer.other else {}),
        "input": used.input,
        "cached": used.cached,
        "output": used.output,
    }


def _answer(entry: Mapping[str, Any]) -> Answer:
    tool, final = entry["tool"], entry["final"]
    if not all(value is None or type(value) in (int, float) for value in (tool, final)):
        raise TypeError(tool, final)
    usage = Usage(input=int(entry["input"]), cached=int(entry["cached"]), output=int(entry["output"]))
    return Answer(tool, final, str(entry.get("bound", "")), int(entry.get("other", 0)), usage)


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, value in now.items():
        if was.get(name) != value:
            yield f"{name} {one_line(repr(was.get(name)), 80)} (now {one_line(repr(value), 80)})"
