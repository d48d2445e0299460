"""Which items of which sections fit into a token budget. Pure and deterministic.

All items stand in one queue whose order does not depend on the budget, and the longest beginning of it that fits is
kept: so a larger budget keeps all that a smaller one kept. The order is by priority; sections of one priority take
turns, each getting about the same number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goalmode.errors import ContextDoesNotFit


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the context, as it would be with room for everything.

    Attributes:
        name: its tag, one of `goalmode.context.escape.SECTIONS`; its title is in the template `section.j2`.
        items: rendered, most important first; each is kept whole or left out.
        priority: 0 is served first.
        floor: so many items must be there.
        cap: tokens of items beyond which no more are kept, however much room there is; None for no such bound.
        stable: it changes only with the goal's revision, so that a provider's prefix cache may end behind it.
        withheld: sentences that claimed completion and whose wording is not shown.
        frame: tokens of what stands around the items. A section without kept items is still shown, with their number.
    """

    name: str
    items: tuple[str, ...]
    priority: int = 0
    floor: int = 0
    cap: int | None = None
    stable: bool = False
    withheld: int = 0
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What fits of one section. The kept items are the first ones of its list."""

    section: Section
    items: tuple[str, ...]

    @property
    def left_out(self) -> int:
        return len(self.section.items) - len(self.items)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Sections in their given order, those without any item left out, and the tokens they take by themselves."""

    sections: tuple[Kept, ...]
    tokens: int


def fit(sections: Sequence[Section], budget: int, count: Callable[[str], int]) -> Fitted:
    """Keep what fits into `budget` tokens.

    Raises:
        ContextDoesNotFit: the sections' frames and floors alone are larger.
    """
    shown = [section for section in sections if section.items]
    costs = [_costs(section, budget, count) for section in shown]
    kept = [min(section.floor, len(section.items)) for section in shown]
    used = sum(section.frame for section in shown)
    used += sum(sum(cost[:floor]) for cost, floor in zip(costs, kept, strict=True))
    if used > budget:
        raise ContextDoesNotFit(used, budget)

    for position, cost in _queue(shown, costs):
        if used + cost > budget:
            break
        kept[position] += 1
        used += cost
    return Fitted(tuple(Kept(s, s.items[:n]) for s, n in zip(shown, kept, strict=True)), used)


def _costs(section: Section, budget: int, count: Callable[[str], int]) -> list[int]:
    """Tokens of the section's items, up to the first that can fit in no case: that one ends the queue."""
    costs: list[int] = []
    total = 0
    for number, item in enumerate(section.items):
        cost = count(f"{item}\n")
        total += cost
        if number >= section.floor and section.cap is not None and total > section.cap:
            break
        costs.append(cost)
        if number >= section.floor and total > budget:
            break
    return costs


def _queue(sections: Sequence[Section], costs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """(section's position, tokens) of every item above the floors, in the order in which they are served."""
    entries: list[tuple[int, int, int, int, int]] = []
    for position, (section, own) in enumerate(zip(sections, costs, strict=True)):
        total = 0
        for number, cost in enumerate(own):
            total += cost
            if number >= section.floor:
                entries.append((section.priority, total, position, number, cost))
    return [(position, cost) for _, _, position, _, cost in sorted(entries)]
