"""The key of a call: the one that its tool sees is the one that is stored, whatever came between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.testing import call, calls, say
from goalmode.tools.registry import ToolContext, tool
from tests.state.builders import rows

Make = Callable[..., Any]

SUCCESS = call("complete", status="success", summary="Done.", evidence=["told.txt"])


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def world(make: Make, seen: list[str]) -> Any:
    @tool(effect="write")
    def tell(context: ToolContext, words: int = 1) -> str:
        """Tell the key."""
        seen.append(context.idempotency_key)
        return "tide " * words

    made = make(tools=(tell,), work_window=16_000)
    (made.workspace / "told.txt").write_text("told")
    return made


def test_a_tool_sees_the_key_that_is_stored(world: Any, seen: list[str]) -> None:
    """goal:wakeup:turn:call, the goal by its own name; each is another one."""
    world.wake([calls(call("tell"), call("tell", words=2)), call("tell", words=3), SUCCESS])

    assert seen == rows(world.store, "SELECT idem_key FROM tool_calls WHERE tool = 'tell' ORDER BY id")
    assert [key.rpartition(":")[0] for key in seen] == [f"{world.goal.uid}:1:{turn}" for turn in (1, 1, 2)]
    assert len(set(seen)) == 3


@pytest.mark.parametrize("kind", [ErrorKind.CONTEXT_OVERFLOW, ErrorKind.REQUEST_TOO_LARGE])
def test_a_request_that_was_refused_is_no_turn(world: Any, seen: list[str], kind: ErrorKind) -> None:
    """Its number is the next one's: keys, and what a claim cites, name turns that are there."""
    big = [call("tell", words=700 + n) for n in range(4)]
    ending = world.wake([*big, ModelError(kind, "prompt is too long"), call("tell"), say("so"), SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert seen == rows(world.store, "SELECT idem_key FROM tool_calls WHERE tool = 'tell' ORDER BY id")
    assert [int(key.split(":")[2]) for key in seen] == [1, 2, 3, 4, 5]
