"""Uses the installed wheel as a stranger would: what is in it, does it start, does a goal run to its checked end?

Run by `make smoke` with the interpreter of an environment that holds the wheel and its dependencies, nothing else.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("goalmode")
OBJECTIVE = "Write the word hello to greeting.txt."


def main() -> None:
    only_goalmode_is_installed()
    with tempfile.TemporaryDirectory() as room:
        here = Path(room)
        it_says_what_it_is(here)
        a_goal_runs_to_its_checked_end(here)
    print("smoke: the installed wheel works")


def only_goalmode_is_installed() -> None:
    """Every module of the wheel is inside `goalmode`, and nothing of the checkout was imported."""
    import goalmode

    assert "site-packages" in str(goalmode.__file__), f"goalmode comes from {goalmode.__file__}"
    files = [str(file) for file in metadata.files("goalmode") or []]
    inside = ("goalmode/", "goalmode-", "../../../bin/goalmode")
    assert [file for file in files if not file.startswith(inside)] == []
    for part in (
        "py.typed",
        "state/",
        "templates/en/",
        "templates/zh/",
        "migrations/versions/",
        "context/o200k",
    ):
        assert any(file.startswith(f"goalmode/{part}") for file in files), f"the wheel has no goalmode/{part}"


def it_says_what_it_is(here: Path) -> None:
    assert "Usage" in goalmode_says(here, "--help")
    assert metadata.version("goalmode") in goalmode_says(here, "--version")


def a_goal_runs_to_its_checked_end(here: Path) -> None:
    """A new store is made and migrated, and a claim stands only with the file there."""
    from goalmode.testing import Stub, steps

    workspace, store = here / "work space", here / "goals.sqlite"
    workspace.mkdir()
    claim = steps.tool("complete", {"status": "success", "summary": "Done.", "evidence": ["greeting.txt"]})
    write = steps.tool("write_file", {"path": "greeting.txt", "content": "hello\n"})
    with Stub([claim, write, claim]) as stub:
        contract = ["--deliverable", "greeting.txt", "--check", "grep -qx hello greeting.txt"]
        model = ["--model", "openai:stub", "--base-url", stub.base_url]
        made = goalmode_says(
            here, "new", OBJECTIVE, "--workspace", str(workspace), *contract, *model, "--json", store=store
        )
        goal = json.loads(made)["id"]
        events = goalmode_says(here, "run", goal, "--json", store=store).splitlines()
        shown: dict[str, Any] = json.loads(goalmode_says(here, "show", goal, "--json", store=store))
        assert stub.rejected == []

    assert all(json.loads(event) for event in events)
    assert "wakeup_closed" in events[-1], events[-1]
    assert shown["status"] == "DONE", shown
    assert [wakeup["exit_reason"] for wakeup in shown["wakeups"]] == ["CURRENT_TASK_DONE"]
    assert [wakeup["turns"] for wakeup in shown["wakeups"]] == [3], "the claim without a file was believed"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


def goalmode_says(here: Path, *arguments: str, store: Path | None = None) -> str:
    """What the installed command prints; anything but exit code 0 ends the smoke test with its words."""
    own = ("GOALMODE_", "OPENAI_", "PYTHON", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"HOME": str(here), "XDG_CONFIG_HOME": str(here / "config")}
    if store is not None:
        environment["GOALMODE_STORE"] = f"sqlite:///{store}"
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode != 0:
        sys.exit(f"goalmode {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
