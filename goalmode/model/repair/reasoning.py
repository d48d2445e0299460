"""Reasoning goes back as it came or not at all: providers sign it over all that stood before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goalmode.domain.messages import Assistant, FixKind, Message
from goalmode.model.repair.notes import Notes, Placed
from goalmode.model.repair.order import is_blank
from goalmode.model.rules import Rules


def with_sound_reasoning(
    placed: list[Placed], given: Sequence[Message], rules: Rules, notes: Notes
) -> list[Placed]:
    """Without reasoning behind the first change, where it is signed; without any, if none may go back."""
    if rules.reasoning and not rules.bound:
        return placed
    sound = _first_change(placed, given) if rules.reasoning else 0
    why = "what stood before its reasoning has changed" if rules.reasoning else "sent without its reasoning"
    kept = placed[:sound]
    for at, message in placed[sound:]:
        if isinstance(message, Assistant) and message.extra:
            notes.add(FixKind.STRIPPED, at, why)
            message = replace(message, extra={})
            if is_blank(message, rules):
                continue
        kept.append((at, message))
    return kept


def _first_change(placed: Sequence[Placed], given: Sequence[Message]) -> int:
    for n, ((_, message), was) in enumerate(zip(placed, given, strict=False)):
        if message is not was:
            return n
    return min(len(placed), len(given))
