"""The one adapter between the rows and the real commands: in this process for what is quick, else in one of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from goalmode.cli.main import call
from tests.acceptance.processes import Child, Children


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of a `--json` run: one event a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def line(self) -> str:
        """The one line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


class Command:
    """`goalmode`, with its store at `url`; `store` is its file, if it is in one."""

    def __init__(self, store: Path, url: str, children: Children) -> None:
        self.store, self.url, self._children = store, url, children

    def __call__(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
    ) -> Done:
        """Run one command line in this process."""
        runner = CliRunner()
        with runner.isolation(input=stdin, env=env) as streams:
            code = call(self._whole(arguments))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            out, err = (streams[n].getvalue().decode("utf-8", "surrogateescape") for n in (0, 1))
        return Done(code, out, err)

    def start(self, *arguments: str | bytes, **environment: str) -> Child:
        """Run one command line in a process of its own."""
        return self._children.start(
            [sys.executable, "-m", "goalmode", *self._whole(arguments)], **environment
        )

    def process(self, *arguments: str | bytes, **environment: str) -> Done:
        """The same, to its end."""
        child = self.start(*arguments, **environment)
        return Done(child.ended(), child.out, child.err)

    def new(self, objective: str, workspace: Path, url: str, *options: str) -> str:
        """Make a goal and return its id."""
        model = ["--model", "openai:stub", "--base-url", url]
        made = self("new", objective, "--workspace", str(workspace), *model, *options, "--json")
        assert made.code == 0, made.err
        return str(made.json["id"])

    def show(self, goal: str) -> dict[str, Any]:
        return dict(self("show", goal, "--json").json)

    def turns(self, goal: str) -> list[dict[str, Any]]:
        return list(self("turns", goal, "--json").json)

    def _whole(self, arguments: Any) -> list[Any]:
        if "--help" in arguments:
            return list(arguments)
        named = 2 if arguments[0] == "memory" else 1  # Its own commands have the options.
        return [*arguments[:named], "--store", self.url, *arguments[named:]]
