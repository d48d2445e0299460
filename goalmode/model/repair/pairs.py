"""Calls and their results: each call has one, directly behind its reply, and no result is without its call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from goalmode.domain.messages import Assistant, FixKind, ToolCall, ToolResult
from goalmode.domain.text import one_line
from goalmode.model import strict_json
from goalmode.model.repair.notes import Notes, Placed
from goalmode.model.rules import Rules

SYNTHETIC = "[synthetic] "
"""How a result begins that no tool gave."""

NO_RESULT = f"{SYNTHETIC}not executed, as far as is known: no result of this call was recorded"


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a reply, the id it goes by from now on, and its result."""

    turn: _Turn
    call: ToolCall
    id: str
    result: tuple[int, ToolResult] | None = None

    def takes(self, result: ToolResult) -> bool:
        """Whether it has no result yet, or only one that stood in for this."""
        return self.result is None or (_is_synthetic(self.result[1]) and not _is_synthetic(result))


@dataclass(slots=True, eq=False)
class _Turn:
    """One reply with calls."""

    at: int
    reply: Assistant
    calls: list[_Call] = field(default_factory=list)


def paired(placed: list[Placed], rules: Rules, notes: Notes) -> list[Placed]:
    """Every call with one result, directly behind its reply; no other results; no id twice.

    Models use ids again: a result belongs to the newest reply before it that has a call of its id, and there to the
    first such call without one.
    """
    if _are_paired(placed, rules):
        return placed
    parts: list[Placed | _Turn] = []
    newest: dict[str, list[_Call]] = {}
    taken: set[str] = set()
    for at, message in placed:
        match message:
            case Assistant(calls=calls) if calls:
                turn = _Turn(at, message)
                turn.calls = [_Call(turn, call, _named(call, taken, rules)) for call in calls]
                newest |= {call.id: [] for call in calls}
                for one in turn.calls:
                    newest[one.call.id].append(one)
                parts.append(turn)
            case ToolResult():
                _answer(newest.get(message.call_id, ()), at, message, parts, notes)
            case _:
                parts.append((at, message))
    return [
        p for part in parts for p in (_together(part, rules, notes) if isinstance(part, _Turn) else (part,))
    ]


def _are_paired(placed: list[Placed], rules: Rules) -> bool:
    """Whether there is nothing to do: as a rule, so it is found out quickly."""
    taken: set[str] = set()
    waiting: list[str] = []
    for _, message in placed:
        if isinstance(message, ToolResult):
            if message.call_id not in waiting or (rules.call_order and message.call_id != waiting[0]):
                return False
            waiting.remove(message.call_id)
        elif waiting:
            return False
        elif isinstance(message, Assistant) and message.calls:
            waiting = [call.id for call in message.calls]
            taken.update(waiting)
            if not all(rules.ids.fullmatch(c.id) and _is_object(c.arguments) for c in message.calls):
                return False
    asked = sum(len(message.calls) for _, message in placed if isinstance(message, Assistant))
    return not waiting and len(taken) == asked


def _named(call: ToolCall, taken: set[str], rules: Rules) -> str:
    """The id of a call, or a new one. What comes later in a conversation never changes it."""
    id_, number = call.id, len(taken) + 1
    while id_ in taken or (id_ == call.id and not rules.ids.fullmatch(id_)):
        id_, number = rules.new_id.format(number), number + 1
    taken.add(id_)
    return id_


def _answer(
    calls: Collection[_Call], at: int, result: ToolResult, parts: Sequence[Placed | _Turn], notes: Notes
) -> None:
    """Give the result to the one of `calls` that takes it."""
    one = next((call for call in calls if call.takes(result)), None)
    if one is None:
        why = "has its result already" if calls else "is nowhere before it"
        notes.add(FixKind.DROPPED, at, f"a result of a call that {why}: {_quoted(result.call_id)}")
        return
    if one.result is not None:
        notes.add(FixKind.DROPPED, one.result[0], f"the result itself came later: {_quoted(result.call_id)}")
    elif parts[-1] is not one.turn:
        notes.add(FixKind.MOVED, at, f"a result stands directly behind its call: {_quoted(result.call_id)}")
    one.result = at, result


def _together(turn: _Turn, rules: Rules, notes: Notes) -> Iterator[Placed]:
    """The reply and its results: in the order in which they came, or in that of the calls if one has to be made up."""
    sent = tuple(_sendable(one, notes) for one in turn.calls)
    same = all(new is one.call for new, one in zip(sent, turn.calls, strict=True))
    yield turn.at, turn.reply if same else replace(turn.reply, calls=sent)
    came = sorted(turn.calls, key=lambda one: one.result[0] if one.result else 0)
    complete = all(one.result is not None for one in turn.calls)
    if complete and rules.call_order and came != turn.calls:
        notes.add(FixKind.MOVED, turn.at, "its results stand in the order of its calls")
    order = came if complete and not rules.call_order else turn.calls
    for one in order:
        if one.result is None:
            why = f"{one_line(one.call.name, 40)} ({_quoted(one.call.id)}) had no result"
            notes.add(FixKind.CLOSED, turn.at, why)
            yield turn.at, ToolResult(one.id, one.call.name, NO_RESULT)
        else:
            at, result = one.result
            yield at, result if result.call_id == one.id else replace(result, call_id=one.id)


def _sendable(one: _Call, notes: Notes) -> ToolCall:
    """The call under its id, with arguments that are an object."""
    call = one.call
    if not _is_object(call.arguments):
        why = f"the arguments of {_quoted(call.id)} are no JSON object: {one_line(call.arguments, 40)}"
        notes.add(FixKind.EMPTIED, one.turn.at, why)
        call = replace(call, arguments="{}")
    if one.id != call.id:
        notes.add(FixKind.RENAMED, one.turn.at, f"the id {_quoted(call.id)} cannot go back: now {one.id}")
        call = replace(call, id=one.id)
    return call


@lru_cache(maxsize=1024)
def _is_object(arguments: str) -> bool:
    # Remembered, because a conversation is sent again with every turn.
    return strict_json.json_object(arguments) is not None


def _is_synthetic(result: ToolResult) -> bool:
    return result.text.startswith(SYNTHETIC)


def _quoted(id_: str) -> str:
    return one_line(id_, 40) or "(no id)"
