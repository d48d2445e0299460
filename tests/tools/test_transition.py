"""`transition`: what a model is told of it, and which calls are well-formed."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.domain.calls import Effect
from goalmode.domain.redact import Redactor
from goalmode.errors import ToolError
from goalmode.tools.builtin.transition import MAX_REASON, TransitionArguments, parse_transition, transition
from goalmode.tools.registry import ToolContext
from goalmode.tools.schema import validate

TOOL = transition(("draft", "review"))


def parse(**arguments: Any) -> TransitionArguments | str:
    return parse_transition(arguments, "draft", Redactor(["canary-secret"]))


def test_the_schema_names_the_movements() -> None:
    """An unknown target is refused with the names there are, before anything looks at it."""
    assert TOOL.effect is Effect.CONTROL
    assert validate(TOOL.spec.parameters, {"to": "review", "reason": "x"}) == []
    [problem] = validate(TOOL.spec.parameters, {"to": "polish", "reason": "x"})
    assert problem == 'to: "polish" is not valid, must be one of "draft", "review"'


def test_a_well_formed_call_is_read() -> None:
    """The reason is one line, bounded, and without the secrets that are known."""
    read = parse(to="review", reason=f" with canary-secret\nand more {'x' * 9999}")

    assert isinstance(read, TransitionArguments)
    assert read.to == "review"
    assert "canary" not in read.reason
    assert "\n" not in read.reason
    assert len(read.reason) <= MAX_REASON


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"to": "draft", "reason": "x"}, "draft already"),
        ({"to": "review", "reason": " \n"}, "reason is blank"),
    ],
)
def test_what_makes_no_move_is_told(arguments: dict[str, str], told: str) -> None:
    """The movement that the goal is in, and a blank reason."""
    assert told in str(parse(**arguments))


@pytest.mark.anyio
async def test_the_tool_itself_moves_nothing() -> None:
    """Whoever runs it outside of the loop gets an error, not a move."""
    with pytest.raises(ToolError, match="the loop makes the move"):
        await TOOL.run(ToolContext, {"to": "review", "reason": "x"})  # type: ignore[arg-type]
