"""Who may speak when: system prompts first, then the user, and the user or a result last. Nobody says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from goalmode.domain.messages import Assistant, FixKind, Message, System, ToolResult, User
from goalmode.model.repair.notes import Notes, Placed
from goalmode.model.rules import Rules
from goalmode.model.wire.openai_dialects import SILENCE


def system_first(placed: list[Placed], notes: Notes) -> list[Placed]:
    opening = _prelude(placed)
    late = [(at, m) for at, m in placed[opening:] if isinstance(m, System)]
    if not late:
        return placed
    for at, _ in late:
        notes.add(FixKind.MOVED, at, "a system prompt stands before the conversation")
    rest = [(at, m) for at, m in placed[opening:] if not isinstance(m, System)]
    return [*placed[:opening], *late, *rest]


def _prelude(placed: Sequence[Placed]) -> int:
    """How many system prompts the conversation begins with."""
    return next((n for n, (_, m) in enumerate(placed) if not isinstance(m, System)), len(placed))


def without_blanks(placed: list[Placed], rules: Rules, notes: Notes) -> list[Placed]:
    blank = {at for at, message in placed if is_blank(message, rules)}
    if not blank:
        return placed
    for at in blank:
        notes.add(FixKind.DROPPED, at, "it said nothing")
    return [(at, message) for at, message in placed if at not in blank]


def is_blank(message: Message, rules: Rules) -> bool:
    match message:
        case ToolResult():
            return False
        case Assistant(text, calls, extra):
            return not calls and _says_nothing(text) and not (rules.blocks and extra.get(rules.blocks))
        case _:
            return _says_nothing(message.text)


def _says_nothing(text: str) -> bool:
    return not text or text.isspace()


def opened(placed: list[Placed], notes: Notes) -> list[Placed]:
    opening = _prelude(placed)
    if opening < len(placed) and isinstance(placed[opening][1], User):
        return placed
    at = placed[opening][0] if opening < len(placed) else opening
    notes.add(FixKind.FILLED, at, "the user speaks first")
    return [*placed[:opening], (at, User(SILENCE)), *placed[opening:]]


def spaced(placed: list[Placed], rules: Rules, notes: Notes) -> list[Placed]:
    """One message of the user at a time, and none directly behind a result, where that is demanded."""
    if not rules.one_user and rules.user_after_result:
        return placed
    apart: list[Placed] = []
    for at, message in placed:
        before = apart[-1][1] if apart else None
        if isinstance(message, User) and isinstance(before, User) and rules.one_user:
            notes.add(FixKind.MERGED, at, "the user speaks once at a time")
            apart[-1] = apart[-1][0], User(f"{before.text}\n\n{message.text}")
            continue
        if isinstance(message, User) and isinstance(before, ToolResult) and not rules.user_after_result:
            notes.add(FixKind.FILLED, at, "the model speaks between a result and the user")
            apart.append((at, Assistant(SILENCE)))
        apart.append((at, message))
    return apart


def ended(placed: list[Placed], rules: Rules, notes: Notes, *, paused: int | None) -> list[Placed]:
    """With the user or a result last, or with the reply that was paused."""
    at, last = placed[-1]
    if not isinstance(last, Assistant) or may_end((at, last), rules, paused):
        return placed
    notes.add(FixKind.FILLED, at, "the conversation ends with the user, or with a result")
    return [*placed, (at, User(SILENCE))]


def may_end(last: Placed, rules: Rules, paused: int | None) -> bool:
    """Whether a conversation may end with this reply, which was paused and is sent back."""
    at, reply = last
    return at == paused and isinstance(reply, Assistant) and rules.resumable(reply)
