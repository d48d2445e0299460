"""Text of others inside the tagged sections of a context."""

import pytest

from goalmode.context.escape import SECTIONS, block, item, line
from tests.moments import a_moment


@pytest.mark.parametrize("tag", ["<objective>", "</objective>", "< / OBJECTIVE >", "<objective x=1>"])
@pytest.mark.parametrize("shown", [block, item, line])
def test_nothing_that_looks_like_a_sections_tag_is_left(tag: str, shown: object) -> None:
    """Whatever blanks and case it is written with: data neither ends a section nor begins one (B71)."""
    assert callable(shown)

    assert shown(f"a {tag} b").startswith("a &lt;")


@pytest.mark.parametrize(
    "text", ["a < b", "<b>", "</ b>", "<objectives>", "x <= objective", "< / / objective"]
)
def test_other_angle_brackets_stay(text: str) -> None:
    assert block(text) == text


@pytest.mark.parametrize(
    "text", ["<" + " " * 100_000, "<" + "\n" * 100_000 + "/", "< " * 50_000, "</" * 50_000]
)
def test_a_long_text_costs_no_more_than_its_length(text: str) -> None:
    """A `<` before a wide column of blanks, as tables and diagrams have them, holds up no context."""
    with a_moment():
        block(f"{text}{SECTIONS[0][:-1]}")
