"""What a provider wants back of a reply goes back as it came or not at all.

Reasoning is signed over all that stood before it, and a call of the provider's own tools needs its result: where that
has changed or is missing, the reply goes back as text and calls, and so does every one after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goalmode.domain.messages import Assistant, FixKind, Message
from goalmode.model.repair.notes import Notes, Placed
from goalmode.model.repair.order import is_blank, may_end
from goalmode.model.rules import Rules


def with_sound_reasoning(
    placed: list[Placed], given: Sequence[Message], rules: Rules, notes: Notes, *, paused: int | None
) -> list[Placed]:
    """Without reasoning behind the first change, where it is signed; without any, if none may go back.

    Args:
        paused: the position of a reply that is sent back as the end.
    """
    if rules.reasoning and not rules.bound:
        return placed
    sound = _sound(placed, given, rules, may_end(placed[-1], rules, paused)) if rules.reasoning else 0
    why = (
        "what stood before it, or belongs to it, is no longer the same" if rules.reasoning else "as demanded"
    )
    kept = placed[:sound]
    for at, message in placed[sound:]:
        bare = _bare(message)
        if bare is not message:
            notes.add(FixKind.STRIPPED, at, why)
        if bare is message or not is_blank(bare, rules):
            kept.append((at, bare))
    return kept


def _sound(placed: Sequence[Placed], given: Sequence[Message], rules: Rules, ends: bool) -> int:
    """How many messages from the first can go back as they came."""
    messages = [message for _, message in placed]
    sound = _first_change(messages, given)
    while True:
        sent = [*messages[:sound], *map(_bare, messages[sound:])]
        broken = rules.broken(sent, ends and sound == len(messages))
        if broken is None:
            return sound
        sound = broken


def _first_change(messages: Sequence[Message], given: Sequence[Message]) -> int:
    for n, (message, was) in enumerate(zip(messages, given, strict=False)):
        if message is not was:
            return n
    return min(len(messages), len(given))


def _bare(message: Message) -> Message:
    return replace(message, extra={}) if isinstance(message, Assistant) and message.extra else message
