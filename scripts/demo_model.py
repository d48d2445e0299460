"""Twenty small goals on a real model of 135 million parameters, on this machine, without a key.

The model nearly always claims success and is right about half of the time. What is shown is that claims are checked: no
goal may end as done with a wrong or missing file. How many files are right is the model's own affair.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
READY_SECONDS = 60

WORDS = (
    *("apple", "river", "stone", "cloud", "green", "seven", "maple", "tiger", "ocean", "piano"),
    *("lemon", "queen", "robot", "silver", "table", "umbrella", "violet", "window", "yellow", "zebra"),
)
NAMES = ("note.txt", "out.txt", "word.txt", "result.md", "todo.txt")
OBJECTIVES = ('write the text "{word}" into the file {name}', "write the word {word} into {name}")
"""A clear wording that the model mostly gets right, and a loose one that it mostly gets wrong."""

CONFIG = """\
[models.smol]
wire = "openai"
name = "smollm2"
base_url = "{base_url}"
protocol = "json"
window = 8192
max_output = 128
context_tokens = 4000
encoding = ""
token_factor = 1.3
"""

TEMPLATES = {
    "system": "You work on a goal by calling tools. First write the file. Then claim success.",
    "section": '{% if section.name == "objective" %}{{ section.items | join(" ") }}{% endif %}',
    "goal": 'Goal: {{ sections | join("") | trim }}',
}
"""In place of the package's own: a model this small loses its way in more than a few lines."""

BROKEN = {"BACKEND_ERROR", "ENGINE_ERROR", "INTERRUPTED", "USER_ABORTED"}
"""Endings that a model cannot bring about, however bad it is."""


@dataclass(frozen=True)
class Outcome:
    """One goal, as goalmode tells it and as the file itself tells it."""

    reason: str
    turns: int
    claims: int
    rejected: int
    right: bool

    @property
    def wrong(self) -> str:
        """What may never be, in a few words; empty if all is well."""
        if self.reason == "CURRENT_TASK_DONE" and not self.right:
            return "done with a wrong or missing file"
        return f"ended {self.reason}" if self.reason in BROKEN else ""


def main() -> int:
    arguments = _arguments()
    room = Path(tempfile.mkdtemp(prefix="goalmode-model-"))
    started = time.monotonic()
    with served(arguments.model_python, room / "server.log") as base_url:
        print(
            f"SmolLM2-135M-Instruct answers at {base_url}; it is ready after {time.monotonic() - started:.1f} s."
        )
        configure(room, base_url)
        outcomes = [pursue(room, number) for number in range(arguments.goals)]
    return report(outcomes, room, time.monotonic() - started)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model-python", type=Path, required=True, help="interpreter with demo_model.txt installed"
    )
    parser.add_argument("--goals", type=int, default=len(WORDS), help="how many of the twenty")
    return parser.parse_args()


@contextmanager
def served(python: Path, log: Path, port: int = 0) -> Iterator[str]:
    """The model's server, running inside the `with` block. It ends when its standard input does, so with us.

    Port 0 is any that is free.
    """
    with log.open("wb") as errors:
        server = subprocess.Popen(
            [python, HERE / "serve_model.py", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield _ready(server, log)
    finally:
        server.kill()
        server.communicate()


def _ready(server: subprocess.Popen[bytes], log: Path) -> str:
    assert server.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(server.stdout, selectors.EVENT_READ)
        line = server.stdout.readline() if waiting.select(READY_SECONDS) else b""
    if not line:
        sys.exit(f"the model's server does not start: see {log}")
    base_url = line.decode().strip()
    with urllib.request.urlopen(f"{base_url}/models", timeout=READY_SECONDS) as answer:
        assert json.load(answer)["data"], "the server has no model"
    return base_url


def configure(room: Path, base_url: str) -> None:
    (room / "goalmode.toml").write_text(CONFIG.format(base_url=base_url))
    templates = room / "templates" / "en"
    templates.mkdir(parents=True)
    for name, text in TEMPLATES.items():
        (templates / f"{name}.j2").write_text(text)


def pursue(room: Path, number: int) -> Outcome:
    """One goal in its own workspace, for one wakeup."""
    word, name = WORDS[number % len(WORDS)], NAMES[number % len(NAMES)]
    workspace = room / f"goal-{number + 1}"
    workspace.mkdir()
    contract = ["--deliverable", name, "--check", f'test "$(cat {name})" = "{word}"']
    bounds = ["--max-turns", "3", "--tools", "write_file"]
    objective = OBJECTIVES[number % len(OBJECTIVES)].format(word=word, name=name)
    goal = goalmode(
        room, "new", objective, "--workspace", str(workspace), "--model", "smol", *contract, *bounds
    )["id"]
    goalmode(room, "wake", goal, lines=True)
    shown = goalmode(room, "show", goal)
    claims = [
        call["outcome"]
        for turn in goalmode(room, "turns", goal)
        for call in turn["calls"]
        if call["tool"] == "complete"
    ]
    wakeup = shown["wakeups"][-1]
    file = workspace / name
    outcome = Outcome(
        reason=wakeup["exit_reason"],
        turns=wakeup["turns"],
        claims=len(claims),
        rejected=sum(claim != "success" for claim in claims),
        right=file.is_file() and file.read_bytes().rstrip(b"\n") == word.encode(),
    )
    print(
        f"{number + 1:3}  {name:10} {word:9} file {'right' if outcome.right else 'WRONG':6}"
        f"claims {outcome.claims}, rejected {outcome.rejected}  {outcome.reason}",
        flush=True,
    )
    return outcome


def goalmode(room: Path, *arguments: str, lines: bool = False) -> Any:
    """What a command of goalmode prints as JSON; with `lines` its last line. Endings have exit codes of their own."""
    common = ["--store", str(room / "goals.sqlite"), "--config", str(room / "goalmode.toml"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "goalmode", *arguments, *common],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("GOALMODE_")},
    )
    if done.returncode in (1, 2) or not done.stdout:
        sys.exit(f"goalmode {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1] if lines else done.stdout)


def report(outcomes: list[Outcome], room: Path, seconds: float) -> int:
    wrong = [f"goal {number}: {o.wrong}" for number, o in enumerate(outcomes, 1) if o.wrong]
    reasons = Counter(outcome.reason for outcome in outcomes)
    print(f"\n{len(outcomes)} goals in {seconds:.0f} s, each for one wakeup:")
    for reason, count in reasons.most_common():
        print(f"{count:4} ended {reason}")
    print(f"{sum(o.claims for o in outcomes):4} claims were made")
    print(f"{sum(o.rejected for o in outcomes):4} of them the host rejected")
    print(
        f"{sum(o.wrong != '' for o in outcomes):4} goals ended as done with a wrong or missing file, or broke"
    )
    print(f"\nLook at them: goalmode list --store {room / 'goals.sqlite'}")
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
