"""A tool that hands over to a person: its result says `waiting_human`, and either all of it is right or it is an error.

Only tools that declare `may_hand_over` are listened to: what a file or a command prints can end nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.domain.redact import Redactor
from goalmode.domain.text import head_tail, is_blank, one_line, sendable
from goalmode.tools.execute import Executed
from goalmode.tools.plan import Planned

STATUS = "waiting_human"

MAX_RESULT = 1_000_000
"""Characters of a result that is looked at; a larger one is a result like any other."""

MAX_TEXT = 4_000
"""Characters of action and wait reason that are stored, head and tail."""

MAX_SESSION_ID = 1_000
"""Characters. It is refused rather than cut: a part of it names no session."""

_ACTION, _WAIT_REASON = ("action",), ("waitReason", "wait_reason")
SESSION_ID = ("sessionId", "session_id")
_SHOWN = (120, 200, 100)


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a person is to do, why the goal waits for it, and the session in which it is done; all exactly as given."""

    action: str
    wait_reason: str
    session_id: str


def handed_over(planned: Planned, executed: Executed, redact: Redactor) -> Executed:
    """`executed` with the ending its result asks for, or as a failure if it asks wrongly. All others are untouched."""
    tool, output = planned.tool, executed.output
    if tool is None or not tool.may_hand_over or executed.outcome is not CallOutcome.SUCCESS:
        return executed
    match parse_hand_over(output.text):
        case None:
            return executed
        case HandOver() as given:
            return replace(executed, output=replace(output, exit=ending_of(given, redact)))
        case problem:
            told = (
                f"{tool.name}: the result says {STATUS}, but {problem}; nobody is waited for. The result was:"
            )
            failed = replace(output, text=f"{told}\n{output.text}", ok=False, size=None)
            return replace(executed, outcome=CallOutcome.FAILED, output=failed)


def parse_hand_over(text: str) -> HandOver | str | None:
    """The hand-over that a result is, or what is wrong with it; None for a result that does not say `waiting_human`."""
    result = _json_object(text)
    if result is None or result.get("status") != STATUS:
        return None
    problems = [
        problem for names in (_ACTION, _WAIT_REASON, SESSION_ID) if (problem := _wrong(result, names))
    ]
    if problems:
        return "; ".join(problems)
    return HandOver(_value(result, _ACTION), _value(result, _WAIT_REASON), _value(result, SESSION_ID))


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its names were given twice."""

    repeated: frozenset[str] = frozenset()


def _json_object(text: str) -> _Object | None:
    if len(text) > MAX_RESULT or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, _Object) else None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) != len(pairs):
        made.repeated = frozenset(
            name for name, count in Counter(name for name, _ in pairs).items() if count > 1
        )
    return made


def _wrong(result: _Object, names: tuple[str, ...]) -> str:
    """What is wrong with the field that goes by these names; empty if nothing is."""
    given = [name for name in names if name in result]
    if not given:
        return f"{names[0]} is missing"
    values = [result[name] for name in given]
    if not all(isinstance(value, str) for value in values):
        return f"{names[0]} is not a text"
    if result.repeated.intersection(names) or len(set(values)) > 1:
        return f"{names[0]} is given twice"
    if is_blank(values[0]):
        return f"{names[0]} is blank"
    if names is SESSION_ID and len(values[0]) > MAX_SESSION_ID:
        return f"{names[0]} is longer than {MAX_SESSION_ID} characters"
    return ""


def _value(result: _Object, names: tuple[str, ...]) -> str:
    return next(str(result[name]) for name in names if name in result)


def ending_of(given: HandOver, redact: Redactor) -> Exit:
    """The ending that a hand-over asks for, its texts within bounds and without secrets."""
    action, reason = (redact(sendable(text)).strip() for text in (given.action, given.wait_reason))
    session = redact(sendable(given.session_id))
    shown = map(one_line, (action, reason, session), _SHOWN)
    action, reason = (head_tail(text, MAX_TEXT) for text in (action, reason))
    return Exit(
        ExitReason.WAITING_HUMAN,
        "{}: {} (session {})".format(*shown),
        {"action": action, "wait_reason": reason, "session_id": session},
        question=Asking(QuestionKind.HUMAN, action, reason, session_id=session),
    )
