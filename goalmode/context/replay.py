"""The messages of earlier wakeups, sent again: the policy `replay`, which exists to be compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from goalmode.domain.messages import Assistant, Message, System, ToolResult, User


def replayable(messages: Iterable[Message]) -> tuple[Message, ...]:
    """`messages` as one conversation may hold them: no system prompts, no empty replies, no call id twice.

    Ids are unique within a wakeup only, so all are named anew: `earlier_1`, `earlier_2`, … A result follows its call.
    """
    shown: list[Message] = []
    names: dict[str, str] = {}
    used = 0
    for message in messages:
        match message:
            case System() | Assistant(text="", calls=()):
                continue
            case Assistant(calls=calls):
                names = {call.id: f"earlier_{used + n}" for n, call in enumerate(calls, 1)}
                used += len(calls)
                shown.append(replace(message, calls=tuple(replace(c, id=names[c.id]) for c in calls)))
            case ToolResult(call_id=call_id):
                if call_id in names:
                    shown.append(replace(message, call_id=names[call_id]))
            case User():
                shown.append(message)
    return tuple(shown)


def newest_turns(
    messages: Sequence[Message], budget: int, cost: Callable[[Message], int], opening: User
) -> tuple[Message, ...]:
    """The newest whole turns that cost at most `budget`: a reply is never parted from its calls' results.

    A conversation must begin with a user's message: where the cut leaves none, `opening` comes first.
    """
    turns: list[list[Message]] = []
    for message in messages:
        if isinstance(message, ToolResult) and turns:
            turns[-1].append(message)
        else:
            turns.append([message])

    costs = [sum(map(cost, turn)) for turn in turns]
    if sum(costs) <= budget:
        return tuple(messages)
    left = budget - cost(opening)
    start = len(turns)
    while start > 0 and costs[start - 1] <= left:
        start -= 1
        left -= costs[start]
    kept = tuple(message for turn in turns[start:] for message in turn)
    return kept if not kept or isinstance(kept[0], User) else (opening, *kept)
