"""The page of `turns`: how each reply ended, in two languages, and what had to be repaired before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goalmode.testing import Stub
from goalmode.testing.steps import status, text, tool

Serve = Callable[..., Stub]

REFUSED = "Unexpected role 'user' after role 'tool'\x1b[31m"


def test_the_providers_own_words_stand_beside_ours(cli: Any, serve: Serve) -> None:
    """Normalised, raw, and the word of the server behind a gateway."""
    native = {"native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    stub = serve([text("x", extra=native), tool("shell", {"command": "true"})])
    uid = cli.new("--max-turns", "2", "--max-recoveries", "1", url=stub.base_url)
    cli("wake", uid)

    first, second = (line for line in cli("turns", uid).out.splitlines() if line.startswith("1."))

    assert "MALFORMED_TOOL_CALL (stop, MALFORMED_FUNCTION_CALL)" in first
    assert "TOOL_USE (tool_calls)" in second
    assert cli("turns", uid, "--json").json[0]["stop_native"] == "MALFORMED_FUNCTION_CALL"


def test_a_repair_is_told(cli: Any, serve: Serve) -> None:
    """What was done to which message and why; a provider's words cannot move the cursor."""
    stub = serve([status(400, {"error": {"message": REFUSED}}), text("x"), text("x")])
    uid = cli.new("--max-turns", "1", "--max-recoveries", "0", url=stub.base_url)
    cli("wake", uid)

    lines = cli("turns", uid).out.splitlines()

    assert lines[1].startswith("    repaired: resent message 1: refused: ")
    assert lines[1].endswith("Unexpected role 'user' after role 'tool'\\x1b[31m")
    assert cli("turns", uid, "--json").json[0]["repairs"][0]["kind"] == "resent"


def test_repeats_are_flagged(cli: Any, serve: Serve) -> None:
    """How often a call was made in a row with the same result; a call that differs begins the count anew."""
    same, other = tool("shell", {"command": "echo 1"}), tool("shell", {"command": "echo 2"})
    stub = serve([same, same, text("x"), other, same, text("x"), same, text("x"), text("x")])
    uid = cli.new("--max-turns", "9", "--max-recoveries", "0", "--early-turns", "0", url=stub.base_url)
    cli("wake", uid)

    shown = [c["in_a_row"] for turn in cli("turns", uid, "--json").json for c in turn["calls"]]

    assert shown == [1, 2, 1, 1, 2]
    assert cli("turns", uid).out.count("(2 times in a row)") == 2
