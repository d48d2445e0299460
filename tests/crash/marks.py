"""What tools leave outside of the store: a line when they begin and a line when they end, for each real execution."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FILE = "marks"

SHELL = (
    'echo "begin $GOALMODE_IDEMPOTENCY_KEY {word}" >> marks; {work}; '
    'echo "end $GOALMODE_IDEMPOTENCY_KEY {word}" >> marks'
)
"""A command that leaves the marks of `word`, and does `work` between them. Each line is one write at the file's end."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One line: an execution, known by its key, has begun or ended."""

    what: str
    key: str
    word: str


def leave(workspace: Path, what: str, key: str, word: str) -> None:
    """Append one line, in one write."""
    line = f"{what} {key} {word}\n".encode()
    fd = os.open(workspace / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Marks:
    """All lines of one workspace, in the order in which they were written."""

    lines: tuple[Mark, ...]

    @classmethod
    def of(cls, workspace: Path) -> Marks:
        path = workspace / FILE
        text = path.read_text("utf-8") if path.exists() else ""
        found = (line.split() for line in text.splitlines())
        return cls(tuple(Mark(*line) for line in found))

    @property
    def begun(self) -> list[str]:
        """The keys of the executions that began."""
        return [line.key for line in self.lines if line.what == "begin"]

    @property
    def done(self) -> set[str]:
        """The words whose work was done to its end."""
        return {line.word for line in self.lines if line.what == "end"}

    def overlaps(self) -> list[str]:
        """Executions that were still at work when another one had begun; an end that never came is none.

        Whoever began last is the only one who may still write.
        """
        found, running = [], ""
        for line in self.lines:
            if line.what == "begin":
                running = line.key
            elif line.key != running:
                found.append(f"{line.key} ended when {running} had begun")
        return found
