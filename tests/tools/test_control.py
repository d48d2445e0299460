"""`complete` and `wait`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.redact import Redactor
from goalmode.errors import ToolError
from goalmode.tools.builtin.control import ClaimArguments, ClaimStatus, complete, parse_claim, wait
from goalmode.tools.registry import ToolContext
from goalmode.tools.schema import validate

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arguments", "claim"),
    [
        (
            {"status": "success", "summary": " done ", "evidence": ["pytest: exit 0", " "]},
            ClaimArguments(ClaimStatus.SUCCESS, "done", ("pytest: exit 0",)),
        ),
        (
            {"status": "success", "summary": "done", "evidence": "a.md", "obstacle": None},
            ClaimArguments(ClaimStatus.SUCCESS, "done", ("a.md",)),
        ),
        (
            {"status": "needs_user_input", "summary": "s", "missing_info": "key", "why_no_default": "secret"},
            ClaimArguments(ClaimStatus.NEEDS_USER_INPUT, "s", missing_info="key", why_no_default="secret"),
        ),
        (
            {"status": "blocked", "summary": "s", "obstacle": "no network"},
            ClaimArguments(ClaimStatus.BLOCKED, "s", obstacle="no network"),
        ),
    ],
    ids=["list", "text", "needs_user_input", "blocked"],
)
def test_a_well_formed_claim_is_read(arguments: dict[str, Any], claim: ClaimArguments) -> None:
    """Each status has its fields; evidence is a list or one text."""
    assert validate(complete.spec.parameters, arguments) == []
    assert parse_claim(arguments) == claim


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "status must be one of success, needs_user_input, blocked"),
        ({"status": "done", "summary": "s"}, "status must be one of"),
        ({"status": ["success"], "summary": "s"}, "status must be one of"),
        ({"status": "success"}, "summary is missing or blank"),
        ({"status": "success", "summary": " \n"}, "summary is missing or blank"),
        ({"status": "needs_user_input", "summary": "s"}, "choose a sensible default and go on, or give both"),
        ({"status": "needs_user_input", "summary": "s", "missing_info": "x"}, "give both"),
        (
            {"status": "needs_user_input", "summary": "s", "missing_info": "x", "why_no_default": " "},
            "give both",
        ),
        (
            {"status": "needs_user_input", "summary": "s", "missing_info": 7, "why_no_default": True},
            "give both",
        ),
        ({"status": "blocked", "summary": "s", "obstacle": ""}, "blocked needs an obstacle"),
    ],
    ids=str,
)
def test_a_claim_that_lacks_something_is_told_what(arguments: dict[str, Any], problem: str) -> None:
    """Missing, blank and wrongly typed fields are refused, other statuses unchanged (B12)."""
    claim = parse_claim(arguments)

    assert isinstance(claim, str)
    assert claim.startswith("complete: ")
    assert problem in claim


def test_a_claim_holds_no_secret_and_can_be_stored() -> None:
    """What a claim says is redacted and made storable."""
    claim = parse_claim({"status": "success", "summary": "used hunter2\x00"}, Redactor(["hunter2"]))

    assert isinstance(claim, ClaimArguments)
    assert claim.summary == "used [redacted]␀"


async def test_a_claim_is_never_executed(context: ToolContext) -> None:
    """Only the loop judges a claim."""
    with pytest.raises(ToolError, match="the loop judges it"):
        await complete.run(context, {"status": "success", "summary": "s"})


async def test_an_accepted_wait_asks_for_an_ending(context: ToolContext) -> None:
    """The ending carries the asked time as a fact and as a moment."""
    context = replace(context, substantive=1, now=NOW)
    output = await wait.run(context, {"seconds": 3_600, "reason": "the build\nruns"})

    assert output.exit == Exit(
        ExitReason.YIELDED,
        "asked to be woken in 3600 s: the build\\nruns",
        {"waited": True, "seconds": 3_600, "reason": "the build\\nruns"},
        wake_at=NOW + timedelta(hours=1),
    )


@pytest.mark.parametrize(
    ("seconds", "reason", "substantive", "problem"),
    [
        (60, "x", 0, "nothing was read or written"),
        (29, "x", 1, "between 30 and 2592000, not 29"),
        (0, "x", 1, "between 30 and 2592000, not 0"),
        (2_592_001, "x", 1, "between 30 and 2592000"),
        (100 * 365 * 86_400, "x", 1, "between 30 and 2592000"),
        (60, " ", 1, "reason is blank"),
    ],
)
async def test_a_wait_that_is_not_earned_is_refused(
    seconds: int, reason: str, substantive: int, problem: str, context: ToolContext
) -> None:
    """Before a substantive success, out of bounds or without a reason nothing ends."""
    context = replace(context, substantive=substantive, now=NOW)
    with pytest.raises(ToolError, match=problem):
        await wait.run(context, {"seconds": seconds, "reason": reason})
