import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.context.fit import Section, fit
from goalmode.errors import ContextDoesNotFit

COUNT = len
"""One token a character: an item of n characters costs n + 1, for its line's end."""


def _section(name: str, *items: str, **more: object) -> Section:
    return Section(name, items, **more)  # type: ignore[arg-type]


def _kept(sections: list[Section], budget: int) -> dict[str, int]:
    return {kept.section.name: len(kept.items) for kept in fit(sections, budget, COUNT).sections}


def test_important_sections_are_served_first() -> None:
    """A section of a lower priority number gets all it has before the next gets anything."""
    sections = [_section("b", "xxxx", "xxxx", priority=1), _section("a", "xxxx", "xxxx", priority=0)]

    assert _kept(sections, 10) == {"b": 0, "a": 2}
    assert _kept(sections, 15) == {"b": 1, "a": 2}


def test_sections_of_one_priority_take_turns() -> None:
    """Sections of equal priority share the room evenly."""
    sections = [_section("a", *["xxxx"] * 9), _section("b", *["xxxx"] * 9)]

    assert _kept(sections, 40) == {"a": 4, "b": 4}


def test_a_cap_bounds_a_section_whatever_the_room() -> None:
    """A section never gets more tokens than its cap, and the room goes to the others."""
    sections = [_section("a", *["xxxx"] * 9, cap=10), _section("b", *["xxxx"] * 9)]

    assert _kept(sections, 1000) == {"a": 2, "b": 9}


def test_floors_come_before_everything_or_nothing_fits() -> None:
    """What must be there is kept before any other item; without room for it there is no context."""
    sections = [
        _section("a", "xxxx", "xxxx", priority=0),
        _section("b", "xxxx", priority=9, floor=1, frame=3),
    ]

    assert _kept(sections, 8) == {"a": 0, "b": 1}
    with pytest.raises(ContextDoesNotFit, match="at least 8 tokens, its budget is 7") as caught:
        fit(sections, 7, COUNT)
    assert (caught.value.needed, caught.value.budget) == (8, 7)


def test_left_out_items_are_counted_and_empty_sections_vanish() -> None:
    """Each kept section knows how many of its items are left out; a section without items is not there."""
    fitted = fit([_section("a", "xxxx", "xxxx", "xxxx"), _section("b")], 10, COUNT)

    assert [(k.section.name, k.items, k.left_out) for k in fitted.sections] == [("a", ("xxxx", "xxxx"), 1)]


def test_no_more_items_are_counted_than_can_fit() -> None:
    """Of a huge section only its beginning is counted."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    fit([_section("a", *["xxxx"] * 10_000)], 50, count)

    assert len(counted) == 11


SECTIONS = st.lists(
    st.builds(
        Section,
        name=st.uuids().map(str),
        items=st.lists(st.text("x", max_size=30), max_size=12).map(tuple),
        priority=st.integers(0, 3),
        floor=st.integers(0, 2),
        cap=st.none() | st.integers(0, 80),
        frame=st.integers(0, 5),
    ),
    max_size=6,
)


@given(SECTIONS, st.integers(0, 500), st.integers(0, 200))
def test_fit_keeps_its_promises(sections: list[Section], budget: int, more: int) -> None:
    """Never above the budget, whole items from the front, deterministic, and more room never costs an item."""
    least = sum(s.frame + sum(len(i) + 1 for i in s.items[: s.floor]) for s in sections if s.items)
    if least > budget:
        with pytest.raises(ContextDoesNotFit):
            fit(sections, budget, COUNT)
        return
    fitted = fit(sections, budget, COUNT)
    larger = fit(sections, budget + more, COUNT)
    cost = sum(k.section.frame + sum(len(i) + 1 for i in k.items) for k in fitted.sections)

    assert cost == fitted.tokens <= budget
    assert fitted == fit(sections, budget, COUNT)
    for kept, at_least in zip(larger.sections, fitted.sections, strict=True):
        assert kept.items[: len(at_least.items)] == at_least.items
        assert at_least.items == at_least.section.items[: len(at_least.items)]
        assert len(at_least.items) >= min(at_least.section.floor, len(at_least.section.items))
