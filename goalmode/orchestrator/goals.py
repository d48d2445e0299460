"""What a user may do with a goal between wakeups, and the checks of everything a user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from goalmode.domain.budget import Limits
from goalmode.domain.contract import Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import MAX_OBJECTIVE, Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.workflow import faults
from goalmode.errors import BadInput, NotAllowed
from goalmode.state import goals
from goalmode.state.goals import Edit
from goalmode.state.store import Store
from goalmode.tools.paths import Workspace

MAX_LINE = 10_000
"""Longest requirement or check, in characters."""

LANGUAGES = ("en", "zh")


def create_goal(store: Store, spec: GoalSpec) -> Goal:
    """Check `spec`, store it as a new goal that is due now, and return the goal.

    Raises:
        BadInput: a field is wrong; the store is as it was.
    """
    now = store.clock.now()
    return goals.create(store, checked(spec, now), now=now)


def checked(spec: GoalSpec, now: datetime) -> GoalSpec:
    """`spec` in the form in which it is stored.

    Raises:
        BadInput: a field is wrong.
    """
    workspace = _workspace(spec.workspace)
    return replace(
        spec,
        objective=_objective(spec.objective),
        workspace=str(workspace),
        requirements=_requirements(spec.requirements),
        deliverables=_deliverables(spec.deliverables, workspace),
        limits=_limits(spec.limits, now),
        settings=_settings(spec.settings),
    )


def edit_goal(
    store: Store,
    goal: Goal,
    *,
    objective: str | None = None,
    requirements: Iterable[Requirement] | None = None,
    deliverables: Iterable[str] | None = None,
) -> Goal:
    """Make a new revision of the contract. A goal that was done is open again.

    Raises:
        BadInput: a field is wrong. NotAllowed: the goal is aborted, or somebody else edited it meanwhile.
    """
    _refuse_aborted(goal, "edit")
    change = Edit(
        goal.revision,
        None if objective is None else _objective(objective),
        None if requirements is None else _requirements(requirements),
        None if deliverables is None else _deliverables(deliverables, Path(goal.workspace)),
    )
    if change == Edit(goal.revision):
        raise BadInput("edit", "nothing", "an objective, requirements, checks or deliverables to change")
    return goals.edit(store, goal, change, now=store.clock.now())


def resume_goal(
    store: Store,
    goal: Goal,
    *,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
    answer: str | None = None,
) -> Goal:
    """Make a goal due, with new limits and settings if they are given, and an answer if it waits for one.

    Raises:
        NotAllowed: its status does not allow it; the message says what would.
        BadInput: a limit, a setting or the answer is wrong.
    """
    _refuse_aborted(goal, "resume")
    if goal.status is GoalStatus.DONE:
        raise NotAllowed(f"goal {goal.uid}: is done; `goalmode edit {goal.uid}` reopens it")
    waiting = goal.status is GoalStatus.WAITING_USER
    if waiting and answer is None:
        raise NotAllowed(f"goal {goal.uid}: waits for an answer: goalmode resume {goal.uid} --answer TEXT")
    if not waiting and answer is not None:
        raise NotAllowed(f"goal {goal.uid}: waits for no answer, it is {goal.status}")
    if answer is not None and not answer.strip():
        raise BadInput("answer", answer, "a text that is not blank")
    if answer is not None and len(answer) > MAX_OBJECTIVE:
        raise BadInput("answer", answer, f"at most {MAX_OBJECTIVE:,} characters, it has {len(answer):,}")
    now = store.clock.now()
    changed = None if limits is None or limits == goal.limits else _limits(limits, now)
    pursued = None if settings is None or settings == goal.settings else _settings(settings)
    reason = "answered" if answer else "resumed"
    return goals.make_due(
        store, goal, now=now, reason=reason, answer=answer, limits=changed, settings=pursued
    )


def raised(limits: Limits, changes: Mapping[str, str]) -> Limits:
    """Limits with changes as a user writes them: `N` sets one, `+N` adds to it.

    Raises:
        BadInput: not a number, negative, or an addition to what is unlimited.
    """
    values: dict[str, Any] = {}
    for name, text in changes.items():
        current = getattr(limits, name)
        plain = text.removeprefix("+")
        amount = parse_seconds(plain, name) if name == "active_seconds" else parse_count(plain, name)
        if text.startswith("+"):
            if current is None:
                raise BadInput(
                    name, text, "a plain number: this limit is not set, so nothing can be added to it"
                )
            amount += current
        values[name] = amount
    return replace(limits, **values)


def stop_goal(store: Store, goal: Goal, control: Control) -> tuple[Goal, bool]:
    """Pause or abort. Returns the goal, and whether a running wakeup has still to notice.

    Raises:
        NotAllowed: there is nothing to pause, or the goal is aborted already.
    """
    _refuse_aborted(goal, control.value)
    if control is Control.PAUSE and goal.status in (GoalStatus.DONE, GoalStatus.PAUSED):
        raise NotAllowed(f"goal {goal.uid}: is {goal.status}, there is nothing to pause")
    return goals.stop(store, goal, control, now=store.clock.now())


def delete_goal(store: Store, goal: Goal) -> None:
    """Remove a goal with everything stored for it; its workspace is not touched.

    Raises:
        NotAllowed: a wakeup of it runs.
    """
    with store.reading() as connection:
        running = goals.is_running(store, connection, goal.id)
    if running:
        raise NotAllowed(f"goal {goal.uid}: a wakeup runs; `goalmode abort {goal.uid}` first")
    goals.delete(store, goal)


def parse_count(text: str, field: str) -> int:
    """A whole number from 0 as a user writes it (`1000`, `200k`, `2m`)."""
    plain = text.strip().lower().replace("_", "").replace(",", "")
    scale = {"k": 1_000, "m": 1_000_000}.get(plain[-1:], 1)
    digits = plain[:-1] if scale > 1 else plain
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
        raise BadInput(field, text, "a whole number from 0, such as 500, 200k or 2m")
    return int(digits) * scale


def parse_seconds(text: str, field: str) -> float:
    """A time span as a user writes it: `90`, `90s`, `15m`, `3h`, `1d`, in seconds."""
    plain = text.strip().lower()
    scale = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(plain[-1:], 0)
    digits = plain[:-1] if scale else plain
    try:
        seconds = float(digits) * (scale or 1)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9 or not digits[:1].isdigit():
        raise BadInput(field, text, "a time span such as 90s, 15m, 3h or 1d")
    return seconds


def parse_deadline(text: str, field: str, now: datetime) -> datetime:
    """An ISO time; one without an offset is local time."""
    try:
        deadline = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(field, text, "an ISO time such as 2030-01-31T18:00+01:00") from None
    deadline = deadline.astimezone() if deadline.tzinfo is None else deadline
    if deadline <= now:
        raise BadInput(field, text, "a time in the future")
    return deadline


def _encodable(text: str) -> bool:
    """Whether it can be stored and run exactly as it was given: no NUL, no undecodable byte."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _workspace(text: str) -> Path:
    if not text.strip() or not _encodable(text):
        raise BadInput("workspace", text, "an existing directory")
    path = Path(text).expanduser().absolute()
    if not path.exists():
        raise BadInput("workspace", text, "a directory that exists; there is none at this path")
    if not path.is_dir():
        raise BadInput("workspace", text, "a directory; there is a file at this path")
    return path


def _objective(text: str) -> str:
    if not text.strip():
        raise BadInput("objective", text, "a text that is not blank")
    if len(text) > MAX_OBJECTIVE:
        raise BadInput("objective", text, f"at most {MAX_OBJECTIVE:,} characters; it has {len(text):,}")
    return text


def _requirements(given: Iterable[Requirement]) -> tuple[Requirement, ...]:
    checked = []
    for number, requirement in enumerate(given, 1):
        field = "check" if requirement.check is not None else "require"
        text = requirement.text if requirement.check is None else requirement.check
        if not text.strip() or not _encodable(text):
            raise BadInput(field, text, "a text that is not blank, is valid UTF-8 and holds no NUL")
        if len(text) > MAX_LINE:
            raise BadInput(field, text, f"at most {MAX_LINE:,} characters; it has {len(text):,}")
        checked.append(replace(requirement, id=f"R{number}"))
    return tuple(checked)


def _deliverables(paths: Iterable[str], workspace: Path) -> tuple[str, ...]:
    jail = Workspace(workspace)
    clean = []
    for path in paths:
        try:
            normal = jail.normalise(path)
        except BadInput as error:
            raise BadInput("deliverable", path, error.expected) from None
        if normal == ".":
            raise BadInput("deliverable", path, "a file inside the workspace; this is the workspace itself")
        clean.append(normal)
    return tuple(dict.fromkeys(clean))


def _limits(limits: Limits, now: datetime) -> Limits:
    for name, kind, expected in (
        ("turns", int, "a whole number"),
        ("wakeups", int, "a whole number"),
        ("tokens", int, "a whole number"),
        ("active_seconds", int | float, "a number of seconds"),
    ):
        value = getattr(limits, name)
        if value is not None and (
            not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value < 1e18
        ):
            raise BadInput(name, value, f"{expected} from 0; leave it out for no limit")
    deadline = limits.deadline
    if deadline is not None and deadline.tzinfo is None:
        raise BadInput("deadline", deadline.isoformat(), "a time with its offset from UTC")
    if deadline is not None and deadline <= now - timedelta(seconds=1):
        raise BadInput("deadline", deadline.isoformat(), "a time in the future")
    return limits


def _settings(settings: GoalSettings) -> GoalSettings:
    if settings.max_turns < 1:
        raise BadInput("max-turns", settings.max_turns, "1 or more")
    for name in ("early_turns", "max_recoveries"):
        if getattr(settings, name) < 0:
            raise BadInput(name.replace("_", "-"), getattr(settings, name), "0 or more")
    for name in ("model", "base_url", "api_key_env"):
        if not _encodable(getattr(settings, name)):
            raise BadInput(name.replace("_", "-"), getattr(settings, name), "valid UTF-8 without NUL")
    if settings.lang not in LANGUAGES:
        raise BadInput("lang", settings.lang, " or ".join(LANGUAGES))
    fault = next(faults(settings.workflow), None)
    if fault is not None:
        raise BadInput(f"workflow {settings.workflow.name}, {fault.field}", fault.value, fault.expected)
    for name in ("context_tokens", "work_window"):
        bound = getattr(settings, name)
        if bound is not None and bound < 1_000:
            raise BadInput(name.replace("_", "-"), bound, "1000 or more")
    return settings


def _refuse_aborted(goal: Goal, command: str) -> None:
    if goal.status is GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `{command}` is refused")
