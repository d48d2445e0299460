"""GenericAgent's own words: which are errors, cut replies, orders, the end of a task."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from goalmode.domain.exits import ExitReason
from goalmode.domain.signals import ErrorKind
from goalmode.reflect.said import ending_of, error_in, is_broken, is_truncated, unburdened
from tests.moments import a_moment

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "status"),
    [
        ("!!!Error: HTTP 500: oops", ErrorKind.SERVER, 500),
        ("!!!Error: HTTP 500: " + "x" * 400, ErrorKind.SERVER, 500),
        ("!!!Error: HTTP 500", ErrorKind.SERVER, 500),
        ("\n!!!Error: HTTP 401: no such key", ErrorKind.AUTH, 401),
        ('!!!Error: HTTP 429: {"error": {"code": "insufficient_quota"}}', ErrorKind.QUOTA, 429),
        ("!!!Error: HTTP 503 (retry-after > 60s): later", ErrorKind.OVERLOADED, 503),
        ("!!!Error: HTTP 400: maximum context length is 8192 tokens", ErrorKind.CONTEXT_OVERFLOW, 400),
        ("!!!Error: ReadTimeout: silence", ErrorKind.TIMEOUT, None),
        ("!!!Error: ConnectionError", ErrorKind.CONNECTION, None),
        ("!!!Error: overloaded", ErrorKind.SERVER, None),
        (
            "Error: HTTP 403 403 Client Error; content_type: x; retry_after: <empty>; request_id: y; body: no entry",
            ErrorKind.PERMISSION,
            403,
        ),
        ("Error: HTTPConnectionPool(host='x'): refused", ErrorKind.CONNECTION, None),
        ("Error: ConnectionError: refused", ErrorKind.CONNECTION, None),
    ],
)
def test_a_reply_that_is_an_error(text: str, kind: ErrorKind, status: int | None) -> None:
    """However long the server's words are: GenericAgent looks at the last 100 characters alone."""
    error = error_in(text, NOW)

    assert error is not None
    assert (error.kind, error.status) == (kind, status)


@pytest.mark.parametrize(
    "text",
    ["All done.", "Error: the file is missing, so I stop.", "It said !!!Error: HTTP 500.", "", "Errors"],
)
def test_a_reply_that_only_speaks_of_errors_is_none(text: str) -> None:
    assert error_in(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "broken", "truncated"),
    [
        ("", True, False),
        (" \n", True, False),
        ("<summary>x</summary>", True, False),
        ("x" * 100 + "<summary>x</summary>", False, False),
        ("half [!!! 流异常中断 Timeout: x !!!]", True, False),
        ("half [max_tokens !!!]", False, True),
        ("[!!! output truncated: max_output_tokens]", False, True),
        ("All done.", False, False),
    ],
)
def test_replies_that_were_cut(text: str, broken: bool, truncated: bool) -> None:
    assert (is_broken(text), is_truncated(text)) == (broken, truncated)


@pytest.mark.parametrize(
    "order",
    [
        "[DANGER] Turn 175. Must call ask_user to summarize progress and get direction. No more blind retries.",
        "[DANGER] 已连续执行第 35 轮。你必须总结情况进行ask_user，不允许继续重试。",
        "[DANGER] Plan模式已运行 190 轮，已达上限。必须 ask_user 汇报进度并确认是否继续。",
    ],
)
def test_orders_to_ask_the_user_are_left_out(order: str) -> None:
    """The rest of a prompt stays, and so do its other warnings."""
    other = "[DANGER] Turn 13. Call update_working_checkpoint to save key context."

    assert unburdened(f"result\n\n{order}") == "result"
    assert unburdened(f"{other}\n\n{order}\nmore") == f"{other}\nmore"


def test_what_repeats_costs_no_more_than_its_length() -> None:
    """What a tool printed may be mostly blank, and a text may open what it never closes."""
    with a_moment():
        assert unburdened("\n" * 100_000 + "x") == "\n" * 100_000 + "x"
        assert unburdened("<history>" * 20_000) == "<history>" * 20_000
        assert "without a reason" in ending_of("\n```\na: b" * 20_000).detail


def test_its_summaries_of_turns_are_left_out() -> None:
    earlier, history = (
        "<earlier_context>\na\n</earlier_context>\n",
        "<history>\n[Agent] all done\n</history>\n",
    )

    assert unburdened(f"### [WORKING MEMORY]\n{earlier}{history}Turn: 3") == "### [WORKING MEMORY]\nTurn: 3"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("said\n```\nValueError: broken @ ga.py:1\n```", "GenericAgent: ValueError: broken @ ga.py:1"),
        ("said\n```\nx = 1\n```", "GenericAgent: its task ended without a reason"),
        ("", "GenericAgent: its task ended without a reason"),
    ],
)
def test_a_task_that_ends_without_its_loop_having_ended(text: str, detail: str) -> None:
    ending = ending_of(text)

    assert (ending.reason, ending.detail) == (ExitReason.ENGINE_ERROR, detail)
