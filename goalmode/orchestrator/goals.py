"""What a user may do with a goal between wakeups, and the checks of everything a user gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from goalmode.domain.budget import Limits
from goalmode.domain.contract import ProtectedFile, Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import MAX_OBJECTIVE, Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.sandbox import CHOICES
from goalmode.domain.wake import Planned
from goalmode.domain.workflow import faults
from goalmode.errors import BadInput, NotAllowed
from goalmode.orchestrator.contract import (
    MAX_CHECK_SECONDS,
    checked_deliverables,
    checked_protection,
    checked_requirements,
    encodable,
    protection_after,
)
from goalmode.orchestrator.costs import parse_dollars
from goalmode.orchestrator.questions import checked_answer, newest_question
from goalmode.state import answers, goals
from goalmode.state.goals import Edit
from goalmode.state.imported import Earlier
from goalmode.state.store import Store

LANGUAGES = ("en", "zh")

LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Every deadline is before this: it is stored in UTC and shown in any zone, where one in the year 9999 may be none."""


def create_goal(
    store: Store, spec: GoalSpec, *, waits_for: Sequence[Planned] = (), earlier: Earlier | None = None
) -> Goal:
    """Check `spec`, store it as a new goal that is due now, and return the goal.

    Args:
        waits_for: with these it is due when the first of them comes (`goalmode.orchestrator.schedule`).
        earlier: what was done for it elsewhere.

    Raises:
        BadInput: a field is wrong; the store is as it was.
    """
    now = store.clock.now()
    spec, protected = _checked(spec, now)
    return goals.create(store, spec, protected=protected, waits_for=waits_for, earlier=earlier, now=now)


def checked(spec: GoalSpec, now: datetime) -> GoalSpec:
    """`spec` in the form in which it is stored.

    Raises:
        BadInput: a field is wrong.
    """
    return _checked(spec, now)[0]


def _checked(spec: GoalSpec, now: datetime) -> tuple[GoalSpec, tuple[ProtectedFile, ...]]:
    """With the files that it protects, which are read whole."""
    workspace = _workspace(spec.workspace)
    spec = replace(
        spec,
        objective=_objective(spec.objective),
        workspace=str(workspace),
        requirements=checked_requirements(spec.requirements, workspace),
        deliverables=checked_deliverables(spec.deliverables, workspace),
        limits=_limits(spec.limits, now),
        settings=_settings(spec.settings),
    )
    return spec, checked_protection(spec.requirements, spec.protect, spec.deliverables, workspace)


def edit_goal(
    store: Store,
    goal: Goal,
    *,
    objective: str | None = None,
    requirements: Iterable[Requirement] | None = None,
    deliverables: Iterable[str] | None = None,
    protect: Iterable[str] = (),
    unprotect: Collection[str] = (),
    settings: GoalSettings | None = None,
) -> Goal:
    """Make a new revision of the contract. A goal that was done is open again.

    Args:
        protect: further globs. unprotect: paths and globs that are protected no longer.

    Raises:
        BadInput: a field is wrong. NotAllowed: the goal is aborted, or somebody else edited it meanwhile.
    """
    _refuse_aborted(goal, "edit")
    workspace = Path(goal.workspace)
    wanted = goal.requirements if requirements is None else checked_requirements(requirements, workspace)
    had = tuple(d.path for d in goal.deliverables)
    paths = had if deliverables is None else checked_deliverables(deliverables, workspace)
    protected = protection_after(goal, wanted, paths, globs=protect, dropped=unprotect)
    change = Edit(
        goal.revision,
        None if objective is None else _objective(objective),
        None if requirements is None else wanted,
        None if deliverables is None else paths,
        None if protected == goal.protected else protected,
        None if settings is None or settings == goal.settings else _settings(settings),
    )
    if change == Edit(goal.revision):
        raise BadInput(
            "edit", "nothing", "an objective, requirements, checks, files or a time limit to change"
        )
    return goals.edit(store, goal, change, now=store.clock.now())


def resume_goal(
    store: Store,
    goal: Goal,
    *,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
    answer: str | None = None,
) -> Goal:
    """Make a goal due, with new limits and settings if they are given, and an answer to its newest open question.

    Raises:
        NotAllowed: its status does not allow it; the message says what would.
        BadInput: a limit, a setting or the answer is wrong.
    """
    _refuse_aborted(goal, "resume")
    if goal.status is GoalStatus.DONE:
        raise NotAllowed(f"goal {goal.uid}: is done; `goalmode edit {goal.uid}` reopens it")
    waiting = goal.status is GoalStatus.WAITING_USER
    if waiting and answer is None:
        raise NotAllowed(f"goal {goal.uid}: waits for an answer: goalmode answer {goal.uid} TEXT")
    now = store.clock.now()
    changed = None if limits is None or limits == goal.limits else _limits(limits, now)
    pursued = None if settings is None or settings == goal.settings else _settings(settings)
    if answer is None:
        return goals.make_due(store, goal, now=now, reason="resumed", limits=changed, settings=pursued)
    question = newest_question(store, goal)
    said = checked_answer(question, answer)
    answers.answer(
        store, goal, question.number, said, now=now, resumes=True, limits=changed, settings=pursued
    )
    return goals.get(store, goal.id)


_OPTIONS = {
    "turns": "turn-budget",
    "wakeups": "wakeup-budget",
    "tokens": "token-budget",
    "cost_micro": "cost-budget",
    "active_seconds": "time-budget",
}
"""By what name users know a limit."""


def raised(limits: Limits, changes: Mapping[str, str]) -> Limits:
    """Limits with changes as a user writes them: `N` sets one, `+N` adds to it.

    Raises:
        BadInput: not a number, negative, or an addition to what is unlimited.
    """
    values: dict[str, Any] = {}
    parsers = {"active_seconds": parse_seconds, "cost_micro": parse_dollars}
    for name, text in changes.items():
        current = getattr(limits, name)
        field = _OPTIONS[name]
        amount: float = parsers.get(name, parse_count)(text.removeprefix("+"), field)
        if text.startswith("+"):
            if current is None:
                raise BadInput(
                    field, text, "one without +: this limit is not set, so nothing can be added to it"
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
        deadline = deadline.astimezone() if deadline.tzinfo is None else deadline
    except (ValueError, OverflowError):  # Of the year 1 or 9999, where it may be none in UTC.
        raise BadInput(field, text, "an ISO time such as 2030-01-31T18:00+01:00") from None
    if deadline <= now:
        raise BadInput(field, text, "a time in the future")
    return deadline


def named_place(text: str) -> Path:
    """The absolute path of a workspace, without `..`: a memory is found again by the name of its directory."""
    path = Path(text).expanduser().absolute()
    return path.resolve() if ".." in path.parts else path


def _workspace(text: str) -> Path:
    if not text.strip() or not encodable(text):
        raise BadInput("workspace", text, "an existing directory")
    path = named_place(text)
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


def _limits(limits: Limits, now: datetime) -> Limits:
    for name, kind, expected in (
        ("turns", int, "a whole number"),
        ("wakeups", int, "a whole number"),
        ("tokens", int, "a whole number"),
        ("cost_micro", int, "a whole number of micro-dollars"),
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
    if deadline is not None and not now - timedelta(seconds=1) < deadline < LATEST:
        expected = f"a time in the future, before the year {LATEST.year}"
        raise BadInput("deadline", deadline.isoformat(), expected)
    return limits


def _settings(settings: GoalSettings) -> GoalSettings:
    if settings.max_turns < 1:
        raise BadInput("max-turns", settings.max_turns, "1 or more")
    for name in ("early_turns", "max_recoveries"):
        if getattr(settings, name) < 0:
            raise BadInput(name.replace("_", "-"), getattr(settings, name), "0 or more")
    for name in ("model", "base_url", "api_key_env"):
        if not encodable(getattr(settings, name)):
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
    if settings.sandbox not in ("", *CHOICES):
        raise BadInput("sandbox", settings.sandbox, " or ".join(CHOICES))
    if not 0 < settings.check_seconds <= MAX_CHECK_SECONDS:
        raise BadInput("check-timeout", settings.check_seconds, "a time above 0 and of at most a day")
    return settings


def _refuse_aborted(goal: Goal, command: str) -> None:
    if goal.status is GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `{command}` is refused")
