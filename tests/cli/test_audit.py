"""`audit` says where an agent's code guesses, to people, to programs and to code hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

GUESS = "while True:\n    r = llm.chat(m)\n    if not r.tool_calls:\n        break\n"
IGNORED = "# ax-audit-ignore:comm-no-completion-signal, a demonstration\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    (root / "tests").mkdir(parents=True)
    (root / "loop.py").write_text(GUESS)
    (root / "meant.py").write_text(GUESS + IGNORED)
    (root / "broken.py").write_text("def f(:\n")
    (root / "tests" / "test_loop.py").write_text(GUESS)
    return root


def test_a_finding_names_file_line_signal_reason_and_fix(cli: Any, tree: Path) -> None:
    """All that is needed to look at it and to repair it; the summary counts what was left out."""
    done = cli("audit", str(tree))
    lines = done.out.splitlines()

    assert (done.code, done.err) == (1, "")
    assert lines[0].startswith(
        f"{tree}/loop.py:4: not-tool-use: a reply without tool calls ends the loop of line 1"
    )
    assert "max_tokens" in lines[1]
    assert lines[2].startswith("  fix: branch on the stop reason")
    assert lines[3].startswith(f"{tree}/broken.py: line 1 does not parse as Python")
    assert lines[4] == f"{tree}/meant.py:4: not-tool-use: suppressed: a demonstration"
    assert lines[5] == (
        "1 finding (comm-no-completion-signal, release-blocker, agent-tool-execution, agent-dashboard), "
        "2 files looked at, 1 suppressed, 1 not looked at as a whole, 1 test or fixture left out"
    )


def test_nothing_found_is_0(cli: Any, tree: Path) -> None:
    """A suppressed finding and a file that does not parse are told, and fail nothing."""
    (tree / "loop.py").unlink()
    done = cli("audit", str(tree))

    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("no findings, 1 file looked at")


def test_json_has_everything(cli: Any, tree: Path) -> None:
    """Findings with reason and fix, what was suppressed and why, what was not looked at."""
    done = cli("audit", str(tree), "--json", "--tier", "advice", "--surface", "cli")

    assert done.code == 1
    assert (done.json["tier"], done.json["surfaces"]) == ("advice", ["cli"])
    [finding] = done.json["findings"]
    assert (finding["path"], finding["line"], finding["signal"]) == (str(tree / "loop.py"), 4, "not-tool-use")
    assert finding["why"]
    assert finding["fix"]
    assert [one["reason"] for one in done.json["suppressed"]] == ["a demonstration"]
    assert [one["path"] for one in done.json["not_looked_at"]] == [str(tree / "broken.py")]


def test_sarif_is_what_code_hosts_read(cli: Any, tree: Path) -> None:
    """One run with a rule for each signal; suppressed results are marked, unread files are notifications."""
    done = cli("audit", str(tree), "--sarif")
    [run] = done.json["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    open_, meant = run["results"]

    assert (done.code, done.json["version"]) == (1, "2.1.0")
    assert rules[open_["ruleIndex"]] == open_["ruleId"] == "comm-no-completion-signal/not-tool-use"
    assert (open_["level"], "suppressions" in open_) == ("error", False)
    place = open_["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tree / "loop.py").as_uri()
    assert place["region"] == {"startLine": 4}
    assert meant["suppressions"] == [{"kind": "inSource", "justification": "a demonstration"}]
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert "broken.py" in note["message"]["text"]


def test_another_tier_is_a_warning(cli: Any, tree: Path) -> None:
    """Who overrides the tier gets no error of it in the log; the exit code stays."""
    done = cli("audit", str(tree / "loop.py"), "--sarif", "--tier", "advice")

    assert done.code == 1
    assert done.json["runs"][0]["results"][0]["level"] == "warning"


@pytest.mark.parametrize("arguments", [(), ("nowhere",), ("loop.py", "--frob")], ids=str)
def test_wrong_usage_is_2(
    cli: Any, tree: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """One line, nothing audited."""
    monkeypatch.chdir(tree)
    done = cli("audit", *arguments)

    assert (done.code, done.out) == (2, "")
    assert done.line()


def test_a_hostile_name_of_a_file_moves_no_cursor(cli: Any, tree: Path) -> None:
    """Names from a foreign tree are shown on one line, without what a terminal would obey."""
    (tree / "a\x1b[31m\nb.py").write_text(GUESS)
    done = cli("audit", str(tree))

    assert f"{tree}/a\\x1b[31m\\nb.py:4: not-tool-use" in done.out
