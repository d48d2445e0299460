"""`report`: one report of a goal, in three forms, complete in itself and harmless."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from goalmode.testing import Stub
from goalmode.testing.steps import tool

Serve = Callable[..., Stub]

HOSTILE = (
    "<script>alert(1)</script> {{ 7*7 }} {% x %} [a](javascript:alert(1)) ![i](http://x/y.png) | `c` **b**\n"
    "# Forged\n```\n- item\n<img src=x onerror=alert(1)>\x1b[31m\u202eevil"
)
NAME = "a|b `c` <i>.md"
SAVED = {
    "key_info": HOSTILE,
    "summary": HOSTILE,
    "next_steps": [HOSTILE, "1. go"],
    "pending": [HOSTILE],
    "done": [HOSTILE],
    "failed_approaches": [{"approach": "by hand", "outcome": HOSTILE}],
}


@pytest.fixture
def worked(cli: Any, serve: Serve) -> str:
    steps = [
        tool("write_file", {"path": NAME, "content": "✓\n"}),
        tool("update_working_checkpoint", SAVED),
        tool("complete", {"status": "success", "summary": HOSTILE}),
    ]
    options = ("--deliverable", NAME, "--check", "echo '<b>no</b>'; exit 4", "--require", HOSTILE)
    uid = cli.new(
        *options, "--max-turns", "3", "--turn-budget", "9", objective=HOSTILE, url=serve(steps).base_url
    )
    assert cli("wake", uid).code == 10
    assert cli("note", uid, HOSTILE).code == 0
    return str(uid)


def test_it_has_all_that_somebody_else_needs(cli: Any, worked: str) -> None:
    """Objective, contract with evidence, hashes, wakeups with reasons, spend by purpose, what failed, what is open."""
    report = cli("report", worked, "--json").json

    assert report["objective"].startswith("<script>")
    assert [(r["id"], r["status"], r["exit_code"]) for r in report["requirements"]] == [
        ("R1", "open", None),
        ("R2", "failed", 4),
    ]
    assert report["requirements"][1]["evidence"].strip() == "<b>no</b>"
    assert len(report["deliverables"][0]["sha256"]) == 64
    assert [(w["seq"], w["exit_reason"]) for w in report["wakeups"]] == [(1, "MAX_TURNS_EXCEEDED")]
    assert report["spend_by_purpose"]["work"]["calls"] == 3
    assert sum(s["tokens"] for s in report["spend_by_purpose"].values()) == report["spent"]["tokens"]
    assert [item["text"] for item in report["failed_approaches"]] == ["by hand"]
    assert [(one["kind"], one["what"]) for one in report["open"]] == [
        ("requirement", "R1"),
        ("requirement", "R2"),
        ("to verify", "W1"),
    ]
    assert report["next_steps"][1] == "1. go"
    assert report["remedy"] == f"goalmode run {worked}"
    assert report["wakeups_left_out"] == 0


def test_markdown_takes_nothing_for_markdown(cli: Any, worked: str) -> None:
    """No heading, table, link, image, tag or fence but the report's own (B73)."""
    text = cli("report", worked).out
    outside = re.sub(r"^( *)(`{3,})\n.*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    plain = re.sub(r"\\.", "", outside)
    headings = [line for line in outside.splitlines() if line.startswith("#")]

    assert [line for line in headings if "Forged" in line] == []
    assert headings[1:4] == ["## Objective", "## Requirements", "## Deliverables"]
    assert not re.search(r"[<`*\[\]]", plain)
    assert "a\\|b \\`c\\` \\<i>.md" in outside
    rows = [line for line in plain.splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} <= {3, 4, 5, 6, 10}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


class Tags(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_runs_nothing_and_loads_nothing(cli: Any, worked: str) -> None:
    """Every stored text is text: no script, no handler, no address that is followed; a policy that says so."""
    text = cli("report", worked, "--html").out
    page = Tags()
    page.feed(text)

    assert page.tags <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "pre", "ul", "li", "div"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "scope", "dir"}
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "<script>alert(1)</script> {{ 7*7 }} {% x %}" in page.text
    assert "\\x1b[31m\\u202eevil" in page.text
    assert NAME in page.text


@pytest.mark.parametrize("form", ["--md", "--html", "--json"])
def test_a_file_is_new_and_for_its_user_alone(cli: Any, worked: str, tmp_path: Path, form: str) -> None:
    """0600, and never over what is there."""
    file = tmp_path / "报告"
    done = cli("report", worked, form, "--output", str(file), "-q")
    size = file.stat().st_size

    assert (done.code, done.out, done.err) == (0, "", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "output" in cli("report", worked, form, "--output", str(file)).line()
    assert file.stat().st_size == size
    assert "报告" not in cli("report", worked, form, "--output", str(tmp_path / "no" / "x")).out


def test_a_goal_without_any_history_has_a_report(cli: Any) -> None:
    """Its objective, and that nothing is known yet."""
    uid = cli.new()
    told = cli("report", uid).out

    assert "Write a.txt." in told
    assert "## Wakeups" not in told
    assert "in all" in told
    assert f"goalmode run {uid}" in told
