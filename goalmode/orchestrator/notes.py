"""Telling a goal something of one's own accord, whether it runs or not."""

from __future__ import annotations

from goalmode.domain.goal import Goal
from goalmode.domain.notes import MAX_NOTE, Note
from goalmode.domain.text import is_blank
from goalmode.errors import BadInput
from goalmode.state import notes
from goalmode.state.store import Store


def add_note(store: Store, goal: Goal, text: str, *, replaces: int | None = None) -> Note:
    """Store a note. A running wakeup hears it before its next model call; later ones have it in their contexts.

    Args:
        replaces: number of a note that no longer stands from now on.

    Raises:
        BadInput: the text is wrong.
        NotAllowed: the goal is done or aborted, or no such note stands; nothing is stored.
    """
    return notes.add(store, goal, _checked(text), replaces=replaces, now=store.clock.now())


def withdraw_note(store: Store, goal: Goal, number: int) -> Note:
    """Take a note back; a running wakeup that has heard it is told.

    Raises:
        NotAllowed: the goal is done or aborted, or no such note stands.
    """
    return notes.withdraw(store, goal, number, now=store.clock.now())


def _checked(text: object) -> str:
    if not isinstance(text, str) or is_blank(text):
        raise BadInput("note", text, "a text that is not blank")
    if len(text) > MAX_NOTE:
        raise BadInput("note", text, f"at most {MAX_NOTE:,} characters, it has {len(text):,}")
    return text
