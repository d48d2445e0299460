"""The state file of GenericAgent's Goal Mode (`temp/goal_state.json`) as a goal of ours, and back.

There a goal is improved until its budget of wall time or of wakeups is spent; nothing else ends it. Here that is a goal
until its limits, with the workflow `polish`. `turns_used` and `max_turns` there count wakeups.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from goalmode.context.render import package_prompts
from goalmode.domain.budget import Limits
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.text import sendable
from goalmode.domain.work import MAX_FOUND
from goalmode.errors import BadInput, NotAllowed
from goalmode.reflect import state_in
from goalmode.state.imported import Earlier
from goalmode.workflows.load import shipped

RUNNING = "running"
OVER = "done_budget"
BUDGET_SECONDS = 1800
MAX_WAKEUPS = 50
"""What Goal Mode takes where its file says nothing."""

UNLIMITED = 1_000_000
"""Wakeups in a file, of a goal that has no limit of them."""

MAX_BYTES = 1_000_000
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Imported:
    """A goal to be created, and what was done for it already."""

    spec: GoalSpec
    earlier: Earlier


def read(path: Path, *, now: datetime, lang: str, workspace: str | None) -> Imported:
    """The goal that a state file describes.

    Args:
        workspace: the directory that it works in, whose files are listed in its first context; None: the file's own.

    Raises:
        BadInput: it cannot be read, is not such a file, or its goal is over.
    """
    state = _object(path)
    objective = _text(state, "objective")
    if not objective.strip():
        raise BadInput("objective", state.get("objective", "missing"), "a text that is not blank")
    status = state.get("status", RUNNING)
    if status != RUNNING:
        raise BadInput("status", status, f"{RUNNING}; {_over(status)}")
    deadline = _deadline(state, now)
    used, most = _count(state, "turns_used", 0), _count(state, "max_turns", MAX_WAKEUPS)
    if used >= most:
        raise BadInput("turns_used", used, f"less than max_turns, which is {most}")
    done_prompt = _text(state, "done_prompt")
    if done_prompt.strip():
        values = {"objective": objective, "done_prompt": done_prompt}
        objective = package_prompts().frame("imported", lang, **values)
    spec = GoalSpec(
        objective,
        workspace or str(path.resolve().parent),
        limits=Limits(wakeups=most, deadline=deadline),
        settings=GoalSettings(lang=lang, until_budget=True, workflow=shipped("polish")),
    )
    found = () if workspace is None else tuple(_files(Path(workspace)))
    return Imported(spec, Earlier(used, replace(state_in.of_file(state), found=found)))


def state_of(goal: Goal) -> dict[str, Any]:
    """A goal as Goal Mode goes on with it.

    Raises:
        NotAllowed: it has no deadline, and there nothing else would end it.
    """
    if goal.limits.deadline is None:
        raise NotAllowed(
            f"goal {goal.uid}: has no deadline, and Goal Mode knows no other budget; "
            f"goalmode resume {goal.uid} --deadline ISO --no-run sets one"
        )
    over = goal.status in (GoalStatus.DONE, GoalStatus.ABORTED, GoalStatus.EXHAUSTED)
    limit = goal.limits.wakeups
    return {
        "objective": goal.objective,
        "budget_seconds": round((goal.limits.deadline - goal.created_at).total_seconds(), 3),
        "start_time": goal.created_at.timestamp(),
        "turns_used": goal.spent.wakeups,
        "max_turns": UNLIMITED if limit is None else limit,
        "status": OVER if over else RUNNING,
        "done_prompt": "",
        **({"end_time": goal.updated_at.timestamp()} if over else {}),
    }


def write(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state file as a whole: whoever reads it meanwhile sees the old one, or the new one.

    Raises:
        BadInput: it cannot be written; what was there is as it was.
    """
    text = json.dumps(state, ensure_ascii=False, indent=2) + "\n"
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=".goalmode-", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        os.replace(temporary, path)  # noqa: PTH105 - a path that is a link is replaced, not followed
    except OSError as error:
        with suppress(OSError):
            Path(temporary).unlink()
        raise BadInput("file", str(path), f"a file that can be written ({error.strerror})") from None


def _object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput("file", str(path), f"a state file that can be read ({error.strerror})") from None
    if len(data) > MAX_BYTES:
        raise BadInput("file", str(path), f"at most {MAX_BYTES:,} bytes")
    try:
        state = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        expected = "JSON; Goal Mode may be writing it at this moment: stop its process, and try again"
        raise BadInput("file", str(path), expected) from None
    if not isinstance(state, dict):
        raise BadInput("file", str(path), "a JSON object with an objective")
    return state


def _over(status: object) -> str:
    if status == OVER:
        return "this goal has used up its budget"
    if status == "wrapping_up":
        return "this goal was in its last turn, which Goal Mode cannot take up again either"
    return "Goal Mode goes on with no other"


def _deadline(state: Mapping[str, Any], now: datetime) -> datetime:
    """Budget and start are wall time there."""
    budget = _number(state, "budget_seconds", BUDGET_SECONDS, low=0, high=10 * 365 * 86_400)
    started = _number(state, "start_time", now.timestamp(), low=_EARLIEST, high=_LATEST)
    deadline = datetime.fromtimestamp(started, UTC) + timedelta(seconds=budget)
    if deadline <= now:
        told = f"more: start_time and budget_seconds end at {deadline.isoformat(timespec='seconds')}, which is past"
        raise BadInput("budget_seconds", state.get("budget_seconds", BUDGET_SECONDS), told)
    return deadline


def _number(state: Mapping[str, Any], name: str, default: float, *, low: float, high: float) -> float:
    value = state.get(name, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise BadInput(name, value, f"a number of seconds from {low:g} to {high:g}")
    return float(value)


def _count(state: Mapping[str, Any], name: str, default: int) -> int:
    value = state.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1_000_000_000:
        raise BadInput(name, value, "a whole number of wakeups from 0")
    return value


def _text(state: Mapping[str, Any], name: str) -> str:
    value = state.get(name, "")
    if not isinstance(value, str):
        raise BadInput(name, value, "a text")
    return sendable(value)


def _files(root: Path) -> Iterator[str]:
    """What is there already, hidden files left out; the first ones by name."""
    found = 0
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = (Path(directory) / name).relative_to(root).as_posix()
            if name.startswith(".") or sendable(path) != path:
                continue
            yield path
            found += 1
            if found >= MAX_FOUND:
                return
