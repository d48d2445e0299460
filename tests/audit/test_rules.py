"""What makes a loop one that guesses: each condition with its counterpart."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from goalmode.audit.run import audit
from tests.moments import a_moment

AGENT = """
def run(llm, messages, tools):
    idle = 0
    while True:
        reply = llm.chat(messages)
{exit}
        messages.extend(tools.run(reply.tool_calls))
"""


def signals(tmp_path: Path, text: str, name: str = "agent.py") -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return [finding.signal.value for finding in audit([path]).findings]


def loop(exit: str) -> str:
    return AGENT.format(exit=indent(exit, " " * 8))


@pytest.mark.parametrize(
    ("exit", "expected"),
    [
        ("if not reply.tool_calls: break", ["not-tool-use"]),
        ("if len(reply.tool_calls) == 0: return reply.text", ["not-tool-use"]),
        ("if len(reply.tool_calls) < 1: return reply.text", ["not-tool-use"]),
        ("if reply.tool_calls is None or reply.tool_calls == []: break", ["not-tool-use"]),
        ("calls = reply.get('tool_calls')\nif not calls: break", ["not-tool-use"]),
        ("done = not reply.tool_calls\nif done: break", ["not-tool-use"]),
        ("if not any(b.type == 'tool_use' for b in reply.content): break", ["not-tool-use"]),
        ("if reply.stop_reason != 'tool_use': return reply.text", ["not-tool-use"]),
        ("if reply.finish_reason not in ('tool_calls', 'function_call'): break", ["not-tool-use"]),
        ("if reply.tool_calls: break", []),
        ("if len(reply.tool_calls) > 8: break", []),
        ("if not reply.tool_calls: raise RuntimeError", []),
        ("if not reply.tool_calls: return 'failed'", []),
        ("if not reply.tool_calls and reply.stop_reason == 'end_turn': break", ["end-turn-alone"]),
        ("if reply.stop_reason == 'length': raise Cut\nif not reply.tool_calls: break", []),
        ("if reply.stop_reason == 'end_turn': break", ["end-turn-alone"]),
        ("if reply.stop_reason == 'end_turn': break\nif reply.stop_reason != 'tool_use': raise Odd", []),
        ("if reply.stop_reason in ('end_turn', 'max_tokens'): break", []),
        ("if not reply.tool_calls: idle += 1\nif idle >= 2: break", ["idle-count"]),
        ("if not reply.tool_calls: idle += 1\nif idle >= 2: raise Stuck", []),
        ("if not reply.tool_calls: idle += 1\nif idle >= 2: return 'stalled'", []),
        ("if not reply.tool_calls: idle += 1\nif idle < 2: continue", []),
        ("idle += 1\nif reply.stop_reason == 'end_turn' or reply.stop_reason == 'length': break\n"
         "if idle > 2: break", []),
        ("errors = 0\nif not reply.text: errors += 1\nif errors > 2: break", []),
        ("if time.time() - start > 60: return 'completed'", ["timeout"]),
        ("if time.time() - start > 60: raise TimeoutError", []),
        ("if time.time() - start > 60: return 'timed_out'", []),
        ("if os.path.exists('answer.md'): break", ["file-existence"]),
        ("if os.path.exists('STOP'): break", []),
        ("if not os.path.exists('answer.md'): break", []),
    ],
)  # fmt: skip
def test_an_exit_is_judged_by_what_it_hangs_on(tmp_path: Path, exit: str, expected: list[str]) -> None:
    """The same loop with each way out: only a guess that ends as if the work were done is a finding."""
    assert signals(tmp_path, loop(exit)) == expected


def test_a_loop_that_is_about_something_else_is_no_control_loop(tmp_path: Path) -> None:
    """The same names without a model's replies in the loop decide about no agent."""
    text = """
def next_page(pages, tool_calls):
    idle = 0
    while idle < 3:
        page = pages.fetch()
        if not page:
            idle += 1
    for call in tool_calls:
        if not call.tool_calls:
            break
"""
    assert signals(tmp_path, text) == []


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# ax-audit-ignore:comm-no-completion-signal", ""),
        ("# ax-audit-ignore:comm-no-completion-signal, a demonstration", "a demonstration"),
        ("#ax-audit-ignore:comm-no-completion-signal: a demonstration", "a demonstration"),
        ("# ax-audit-ignore:comm-no-completion-signal a * b **/", "a * b"),
    ],
)
def test_a_comment_suppresses_with_its_reason(tmp_path: Path, comment: str, reason: str) -> None:
    """What is found in the file is counted as suppressed, whatever line the comment is on."""
    path = tmp_path / "agent.py"
    path.write_text(loop("if not reply.tool_calls: break") + comment)
    report = audit([path])

    assert report.findings == ()
    assert [(one.finding.signal.value, one.reason) for one in report.suppressed] == [("not-tool-use", reason)]


def test_a_long_reason_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """A frame of stars around a comment holds up no audit."""
    path = tmp_path / "agent.py"
    path.write_text(f"# ax-audit-ignore:comm-no-completion-signal a{' *' * 50_000}x")
    with a_moment():
        audit([path])


@pytest.mark.parametrize(
    "line",
    [
        "# ax-audit-ignore:comm-no-completion-signals",
        "# ax-audit-ignore:another-rule",
        "NOTE = 'ax-audit-ignore:comm-no-completion-signal'",
    ],
)
def test_nothing_else_suppresses(tmp_path: Path, line: str) -> None:
    """Another rule's comment, and the same words in a text, change nothing."""
    assert signals(tmp_path, loop("if not reply.tool_calls: break") + line) == ["not-tool-use"]


@pytest.mark.parametrize("form", ["// {}, meant", "/* {}: meant */", "/**\n * {} - meant\n */"])
def test_comments_of_scripts_suppress_too(tmp_path: Path, form: str) -> None:
    """Line and block comments, with their reason."""
    path = tmp_path / "agent.ts"
    rule = "ax-audit-ignore:comm-no-completion-signal"
    path.write_text(
        form.format(rule) + "\nwhile (true) { const r = await llm.chat(m); if (!r.toolCalls) break; }"
    )

    assert [one.reason for one in audit([path]).suppressed] == ["meant"]
