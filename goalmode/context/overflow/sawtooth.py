"""The saw-tooth: a conversation grows up to its work window, then begins anew with a fresh context and its last turns.

Between two such teeth it only grows at its end, so that a provider's prefix cache holds. What is kept of it are whole
turns, newest first: calls with their results, so that the work in hand goes on. The prose beside the calls and signed
reasoning are not: the state says what was reached, and prose of the kind is what talks a model into stopping.
No model call is needed for any of this. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from goalmode.context.cut import to_tokens
from goalmode.domain.goal import ContextPolicy, GoalSettings
from goalmode.domain.messages import Assistant, Message, ToolResult, User
from goalmode.domain.profile import ModelProfile

MAX_WINDOW = 64_000
"""Tokens of a work window that nobody has set, however large the model's window is."""

WINDOW_RESERVE = 1_024
"""Tokens of the model's window that neither a context nor a work window takes: they are for a reply."""

_CUTS = 4
_NOTE = re.compile(r"^\[… .{1,200} …\]$", re.MULTILINE)
"""What an earlier cut of a result says of the whole's size."""


@dataclass(frozen=True, slots=True)
class Outgrown:
    """A conversation that begins anew.

    Attributes:
        messages: what was said so far, the context at its beginning included; empty where no turn is to be kept.
        limit: tokens that the new conversation may have at most.
    """

    messages: tuple[Message, ...]
    limit: int


def work_window(settings: GoalSettings, profile: ModelProfile) -> int | None:
    """Tokens that a request may have: what the goal says, else 70 % of the model's window and at most `MAX_WINDOW`.

    None for the policy `replay`, whose conversations have the model's window.
    """
    if settings.policy is ContextPolicy.REPLAY:
        return None
    wanted = settings.work_window
    if wanted is None:
        wanted = min(profile.window * 7 // 10, MAX_WINDOW)
    return min(wanted, max(1, profile.window - WINDOW_RESERVE))


def context_share(window: int) -> int:
    """Tokens of a work window that a context may fill at most, so that work fits in behind it: three quarters."""
    return window * 3 // 4


def kept_share(window: int, context: int) -> int:
    """Tokens for turns behind a context of that size: a quarter of the window, and at most half of what is free."""
    return max(0, min(window // 4, (window - context) // 2))


def last_turns(
    conversation: Sequence[Message],
    room: int,
    cost: Callable[[Message], int],
    count: Callable[[str], int],
) -> tuple[Message, ...]:
    """The last complete turns within `room` tokens, and the host's prompts that no reply has followed yet.

    Where not even the last turn fits, its results are cut to head and tail. A turn whose calls alone are larger is
    left out; the context tells of it among the recent actions.

    Args:
        cost: tokens of a message. count: tokens of a text.
    """
    prompts = _unanswered(conversation)
    left = room - sum(map(cost, prompts))
    if left < 0:
        prompts, left = (), room
    kept: list[tuple[Message, ...]] = []
    for reply, results in reversed(list(complete_turns(conversation))):
        turn: tuple[Message, ...] = (reply, *results)
        price = sum(map(cost, turn))
        if price > left:
            if not kept:
                kept.append(_cut(reply, results, left, cost, count))
            break
        kept.append(turn)
        left -= price
    return (*(message for turn in reversed(kept) for message in turn), *prompts)


def complete_turns(conversation: Sequence[Message]) -> Iterator[tuple[Assistant, tuple[ToolResult, ...]]]:
    """The turns whose every call has its one result, in order, without the words beside the calls."""
    reply: Assistant | None = None
    results: list[ToolResult] = []
    for message in (*conversation, User("")):
        if isinstance(message, ToolResult):
            results.append(message)
            continue
        if reply is not None and _complete(reply, results):
            yield Assistant("", reply.calls), tuple(results)
        reply, results = (message if isinstance(message, Assistant) else None), []


def _complete(reply: Assistant, results: Sequence[ToolResult]) -> bool:
    asked = sorted(call.id for call in reply.calls)
    return bool(asked) and asked == sorted(result.call_id for result in results)


def _unanswered(conversation: Sequence[Message]) -> tuple[User, ...]:
    """The prompts behind the last reply. Before any reply there are none: what stands there is the context."""
    prompts: list[User] = []
    for message in reversed(conversation):
        match message:
            case User():
                prompts.append(message)
            case Assistant() | ToolResult():
                return tuple(reversed(prompts))
            case _:
                break
    return ()


def _cut(
    reply: Assistant,
    results: Sequence[ToolResult],
    room: int,
    cost: Callable[[Message], int],
    count: Callable[[str], int],
) -> tuple[Message, ...]:
    """The turn within `room` tokens, its longest results cut to what the others leave; empty if that is too little."""
    sizes = [count(result.text) for result in results]
    left = room - cost(reply) - sum(cost(replace(result, text="")) for result in results)
    for _ in range(_CUTS):
        if left <= 0:
            break
        shares = zip(results, _shares(sizes, left), strict=True)
        cut = [replace(r, text=to_tokens(r.text, share, count, shortened)) for r, share in shares]
        turn: tuple[Message, ...] = (reply, *cut)
        # Parts that are counted alone add up to about the whole, not to exactly the whole.
        above = sum(map(cost, turn)) - room
        if above <= 0:
            return turn
        left -= above
    return ()


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """What each of several texts may have of `room`: an equal share of what the smaller ones leave, or all it needs."""
    shares = [0] * len(sizes)
    waiting = sorted(range(len(sizes)), key=lambda n: sizes[n])
    for place, n in enumerate(waiting):
        shares[n] = min(sizes[n], room // (len(waiting) - place))
        room -= shares[n]
    return shares


def shortened(text: str, limit: int) -> str:
    """`text` cut to about `limit` characters, head and tail; what earlier cuts say of the whole's size stays."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = len(text) - (limit - head)
    notes = [note.group() for note in _NOTE.finditer(text) if note.end() > head and note.start() < tail]
    told = f"[… {tail - head} characters left out of {len(text)} to fit the work window …]"
    return "\n".join([text[:head], told, *notes[:2], text[tail:]])
