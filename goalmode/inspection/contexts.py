"""The contexts of a wakeup, the one that it began with first: exactly what the model saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goalmode.domain.goal import Goal
from goalmode.errors import BadInput, NotAllowed
from goalmode.state import reading
from goalmode.state.reading import ContextSeen
from goalmode.state.store import Store
from goalmode.state.wakeups import StoredContext


def stored_contexts(
    store: Store, goal: Goal, wakeup: int | None, *, later: bool = False
) -> tuple[int, list[ContextSeen]]:
    """A wakeup's number and the context that it began with; the last wakeup's if no number is given.

    Args:
        later: also those that took the place of its conversation when it had filled its work window.

    Raises:
        BadInput: there is no such wakeup, or it ended before it had a context. NotAllowed: there is none at all.
    """
    with store.reading() as connection:
        last = reading.last_wakeup(connection, goal.id)
        named = [] if wakeup is None else reading.wakeups(connection, goal.id, numbers=[wakeup])
        chosen = last if wakeup is None else next(iter(named), None)
        found = [] if chosen is None else reading.contexts(connection, chosen.id, later=later)
    if chosen is None:
        if wakeup is None:
            raise NotAllowed(f"goal {goal.uid}: not woken yet; --next shows what its first wakeup would see")
        have = "none yet; --next shows what the first would see" if last is None else f"1 to {last.seq}"
        raise BadInput("wakeup", str(wakeup), f"the number of a wakeup of goal {goal.uid}: {have}")
    if not found:
        ended = chosen.exit_reason or "it did not get that far"
        raise BadInput("wakeup", str(chosen.seq), f"one that had a context; this one ended before: {ended}")
    return chosen.seq, [replace(context, text=store.clean(context.text)) for context in found]


def as_seen(rendered: StoredContext) -> ContextSeen:
    """A context that has been rendered but not stored."""
    return ContextSeen(
        rendered.text,
        rendered.sha256,
        rendered.tokens,
        rendered.encoding,
        rendered.completion_phrases,
        rendered.sections,
    )


def described(wakeup: int, contexts: Sequence[ContextSeen]) -> dict[str, Any]:
    """The context that a wakeup began with, its sections' sizes, and the contexts that followed within the wakeup."""
    first, *later = contexts
    return {
        "wakeup": wakeup,
        **_described(first),
        "later": [{"n": n, **_described(context)} for n, context in enumerate(later, 1)],
    }


def sizes(wakeup: int, context: ContextSeen) -> dict[str, Any]:
    """What each section of a context takes, and what was left out of it; the rest is what stands around them."""
    sections = [dict(section) for section in context.sections]
    return {
        "wakeup": wakeup,
        "tokens": context.tokens,
        "encoding": context.encoding,
        "completion_phrases": context.completion_phrases,
        "sections": sections,
        "around": context.tokens - sum(int(section["tokens"]) for section in sections),
    }


def _described(context: ContextSeen) -> dict[str, Any]:
    return {
        "sha256": context.sha256,
        "tokens": context.tokens,
        "encoding": context.encoding,
        "completion_phrases": context.completion_phrases,
        "sections": [dict(section) for section in context.sections],
        "text": context.text,
    }
