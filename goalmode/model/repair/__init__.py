"""A conversation put right before it is sent. Pure: a conversation that is right comes back as the same objects.

Nothing is invented: a call whose result is missing gets one that says so, where somebody must speak who did not there
is a placeholder, and what cannot go back is left out. Nothing that was sent is rewritten if it can be helped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goalmode.domain.messages import Fix, Message
from goalmode.model.repair.notes import Notes
from goalmode.model.repair.order import ended, opened, spaced, system_first, without_blanks
from goalmode.model.repair.pairs import paired
from goalmode.model.repair.reasoning import with_sound_reasoning
from goalmode.model.rules import Rules


@dataclass(frozen=True, slots=True)
class Repaired:
    """A conversation that may be sent, and what was done to it: nothing, as a rule.

    Attributes:
        places: of each message, where it stood before; what was put in stands where its reason did.
    """

    messages: tuple[Message, ...]
    fixes: tuple[Fix, ...]
    places: Sequence[int]


def repair(messages: Sequence[Message], rules: Rules, *, resuming: bool = False) -> Repaired:
    """`messages` as `rules` demand them.

    Args:
        resuming: the last message may be the model's own words: a paused reply that is sent back.
    """
    given = tuple(messages)
    notes = Notes()
    paused = len(given) - 1 if resuming else None
    placed = system_first(list(enumerate(given)), notes)
    placed = without_blanks(placed, rules, notes)
    placed = paired(placed, rules, notes)
    placed = opened(placed, notes)
    placed = with_sound_reasoning(placed, given, rules, notes, paused=paused)
    placed = spaced(placed, rules, notes)
    placed = ended(placed, rules, notes, paused=paused)
    if not notes.fixes:
        return Repaired(given, (), range(len(given)))
    places, sent = zip(*placed, strict=True)
    return Repaired(sent, tuple(sorted(notes.fixes, key=lambda fix: fix.message)), places)
