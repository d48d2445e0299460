"""`check`, `accept`, and the options of `new` and `edit` that make a contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli import create
from goalmode.settings import Settings, load_settings
from goalmode.testing.steps import tool

WRITE = tool("write_file", {"path": "out.md", "content": "Total: 5\n"})
CLAIM = tool("complete", {"status": "success", "summary": "Written.", "evidence": ["out.md reads well"]})


def new(cli: Any, *options: str) -> tuple[str, ...]:
    return ("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", *options)


def test_every_option_of_a_contract_is_stored(cli: Any) -> None:
    """Each kind with its text, its check and its id, in the order of their kinds."""
    (cli.workspace / "data.csv").touch()
    uid = cli.new(
        "--human", "It is beautiful.", "--check-file", "contains:out.md:Total: 5", "--check-file", "larger:./a//b:10",
        "--check", "true", "--require", "Be kind.", "--check-timeout", "90s", "--protect", "*.csv",
    )  # fmt: skip
    goal = cli("show", uid, "--json").json

    assert [(r["id"], r["kind"], r["text"], r["check"], r["file"]) for r in goal["requirements"]] == [
        ("R1", "evidence", "Be kind.", None, None),
        ("R2", "command", "true", "true", None),
        ("R3", "file", "contains:out.md:Total: 5", None, "contains:out.md:Total: 5"),
        ("R4", "file", "larger:./a//b:10", None, "larger:a/b:10"),
        ("R5", "human", "It is beautiful.", None, None),
    ]
    assert goal["settings"]["check_seconds"] == 90
    assert [(p["path"], p["named_by"], p["state"]) for p in goal["protected"]] == [("data.csv", "*.csv", "")]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--check-file", "out.md"), "check-file"),
        (("--check-file", "contains:out.md"), "check-file"),
        (("--check-file", "exists:../out.md"), "check-file"),
        (("--check-file", "larger:out.md:many"), "check-file"),
        (("--human", " "), "human"),
        (("--human", "caf\udce9"), "human"),
        (("--check-timeout", "soon"), "check-timeout"),
        (("--check-timeout", "0"), "check-timeout"),
        (("--check-timeout", "2d"), "check-timeout"),
        (("--protect", "*.none"), "protect"),
        (("--protect", "../*"), "protect"),
    ],
)
def test_bad_options_make_no_goal(cli: Any, options: tuple[str, ...], field: str) -> None:
    """B25: one line with the field and what would be right, exit code 2, and not even a store."""
    done = cli(*new(cli, *options))

    assert done.code == 2
    assert done.line().startswith(f"goalmode: {field}")
    assert not cli.store.exists()


def test_says_what_may_be_wrong_with_a_check(cli: Any) -> None:
    """A masked exit code is warned about, on standard error and in JSON; it is no error."""
    done = cli(*new(cli, "--check", "true", "--check", "pytest | tee log"))
    as_json = cli(*new(cli, "--check", "pytest || true", "--json"))

    assert done.code == 0
    assert "Warning: check R2 may hold whatever it finds: a pipe into `tee`" in done.err
    assert "check R1" not in done.err
    assert len(as_json.json["warnings"]) == 1
    assert "`|| true`" in as_json.json["warnings"][0]
    assert cli(*new(cli, "--check", "pytest; true", "-q")).err == ""


def test_says_what_is_protected(cli: Any) -> None:
    """Each file with what names it, and how to take it out."""
    (cli.workspace / "my run.sh").touch()
    done = cli(*new(cli, "--check", "sh 'my run.sh'"))
    uid = done.out.strip()

    assert "my run.sh (R1)" in done.err
    assert f"goalmode edit {uid} --drop 'my run.sh'" in done.err
    assert cli(*new(cli, "--check", "sh 'my run.sh'", "--json")).json["protected"] == ["my run.sh"]
    assert "Protected" not in cli(*new(cli, "--check", "true")).err


def test_an_edit_warns_of_what_is_new_only(cli: Any) -> None:
    """What was said when the goal was made is not said again."""
    (cli.workspace / "a.sh").touch()
    (cli.workspace / "b.sh").touch()
    uid = cli.new("--check", "sh a.sh; true")

    done = cli("edit", uid, "--check", "sh b.sh || true", "--protect", "*.sh")
    as_json = cli("edit", uid, "--objective", "y", "--json").json

    assert "R2" in done.err
    assert "R1" not in done.err
    assert "b.sh (R2)" in done.err
    assert "a.sh" not in done.err
    assert (as_json["warnings"], as_json["protected"]) == ([], ["a.sh", "b.sh"])


def test_an_edit_changes_every_part_of_a_contract(cli: Any) -> None:
    """Requirements, protections and the time limit are added and dropped; ids follow."""
    (cli.workspace / "a.sh").touch()
    (cli.workspace / "x.csv").touch()
    uid = cli.new("--check", "sh a.sh", "--human", "h", "--protect", "*.csv")

    options = ("--check-file", "exists:out.md", "--check-timeout", "5s", "--drop", "a.sh", "--drop", "*.csv")
    done = cli("edit", uid, "--drop", "R1", *options)
    goal = cli("show", uid, "--json").json

    assert done.code == 0
    assert [(r["id"], r["kind"]) for r in goal["requirements"]] == [("R1", "human"), ("R2", "file")]
    assert (goal["protected"], goal["settings"]["check_seconds"]) == ([], 5)
    assert goal["settings"]["model"] == "openai:m"
    refused = cli("edit", uid, "--drop", "nothing")
    assert (refused.code, "one of the contract's: R1, R2" in refused.line()) == (2, True)


def test_says_what_completion_rests_on(cli: Any) -> None:
    """Every kind is counted; a goal with people alone needs a citation too."""
    kinds = ("--deliverable", "a", "--check", "c", "--check-file", "json:a", "--human", "h", "--require", "r")
    told = cli(*new(cli, *kinds)).err

    for part in ("1 file that must be there", "1 command that must exit 0", "1 file that must be as its test says",
                 "1 requirement in words", "1 requirement that a person has to accept"):  # fmt: skip
        assert part in told
    assert "a claim that cites" in cli(*new(cli, "--human", "h")).err


def test_check_prints_a_table_and_tells_by_its_exit_code(cli: Any) -> None:
    """1 as long as anything fails, 0 once all holds; what was found stands in `show`."""
    uid = cli.new(
        "--check", "echo no luck; grep -q Total out.md", "--check-file", "exists:out.md",
        "--deliverable", "out.md", "--require", "Be kind.",
    )  # fmt: skip

    failing = cli("check", uid)
    (cli.workspace / "out.md").write_text("Total: 5\n")
    holding = cli("check", uid)
    shown = cli("show", uid)

    assert (failing.code, holding.code) == (1, 0)
    assert "fails  R2       command      exit code 2; " in failing.out
    assert "holds  R2" in holding.out
    assert "open   R1" in holding.out
    assert "exit code 0" in shown.out
    assert "no luck" in shown.out
    assert cli("check", uid, "-q").out == ""


def test_check_in_json(cli: Any) -> None:
    """Everything in one object, the outputs with it; without anything to check it says what completion rests on."""
    uid = cli.new("--check", "echo said; exit 3")
    found = cli("check", uid, "--json")
    bare = cli("check", cli.new())

    assert found.code == 1
    assert found.json == {
        "id": uid,
        "holds": False,
        "rests_on": "Completion rests on: 1 command that must exit 0.",
        "checks": [
            {
                "subject": "R1",
                "kind": "command",
                "text": "echo said; exit 3",
                "holds": False,
                "exit_code": 3,
                "detail": "exit code 3",
                "tail": "said",
            }
        ],
    }
    assert (bare.code, "nothing to check" in bare.out, "Nothing can be checked" in bare.err) == (
        0,
        True,
        True,
    )


def test_checks_get_no_key_and_show_none(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """B115: the environment of a check is that of a claim; what it prints of a key is struck out."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary-1234567890")
    monkeypatch.setenv("GOALMODE_DEBUG", "0")
    uid = cli.new(
        "--check", 'test -z "$OPENAI_API_KEY$GOALMODE_STORE"', "--check", "echo canary-1234567890; false"
    )

    found = cli("check", uid, "--json").json["checks"]

    assert [line["holds"] for line in found] == [True, False]
    assert "canary" not in found[1]["tail"]
    assert cli.rows().count("canary-1234567890") == cli.rows().count("echo canary-1234567890")


def test_check_needs_no_key(cli: Any) -> None:
    """Nobody asks a model."""
    uid = cli.new("--check", "true", url="https://example.org/v1")

    assert cli("check", uid).code == 0


def test_accept_signs_off_and_the_goal_ends(cli: Any, serve: Callable[..., Any]) -> None:
    """B124: the whole way: a claim, the question, a person's word, the next claim."""
    stub = serve([WRITE, CLAIM, CLAIM])
    uid = cli.new(
        "--deliverable", "out.md", "--require", "Be kind.", "--human", "It is beautiful.", url=stub.base_url
    )

    asked = cli("run", uid)
    done = cli("accept", uid, "R2")
    again = cli("accept", uid, "R2", "--json").json
    ended = cli("run", uid)
    shown = cli("show", uid)

    assert asked.code == 30
    assert f"to go on: goalmode accept {uid} R2" in asked.err.splitlines()[-1]
    assert (done.code, done.out) == (0, f"{uid}: R2: accepted\n")
    assert f"goalmode run {uid}" in done.err
    assert (again["already"], again["open"], again["status"]) == (["R2"], [], "ACTIVE")
    assert ended.code == 0
    assert "accepted by the user" in shown.out
    assert "out.md reads well" in shown.out
    assert "as verified" in shown.out


def test_accept_says_what_is_still_open(cli: Any) -> None:
    """And what it does not know; nothing is accepted then."""
    uid = cli.new("--human", "a", "--human", "b")

    assert "R2 waits for a person still" in cli("accept", uid, "r1").err
    refused = cli("accept", uid, "R2", "R9")
    assert refused.code == 2
    assert "'R9'" in refused.line()
    assert [r["status"] for r in cli("show", uid, "--json").json["requirements"]] == ["passed", "open"]
    assert "had been accepted already" in cli("accept", uid, "R1").out


def test_a_changed_file_is_accepted_by_its_path(cli: Any, tmp_path: Path) -> None:
    """Then the contract holds again."""
    (cli.workspace / "run.sh").write_text("exit 1")
    uid = cli.new("--check", "sh run.sh")
    (cli.workspace / "run.sh").write_text("exit 0")

    assert cli("check", uid).code == 1
    assert "run.sh: was changed (named by R1)" in cli("show", uid).out
    assert cli("accept", uid, "run.sh").code == 0
    assert cli("check", uid).code == 0
    assert "run.sh: as it was (named by R1, accepted " in cli("show", uid).out


@pytest.mark.parametrize("command", [("accept", "R1"), ("check",)])
def test_an_aborted_goal_is_only_read(cli: Any, command: tuple[str, ...]) -> None:
    """One line, exit code 1."""
    uid = cli.new("--human", "h")
    cli("abort", uid)

    done = cli(command[0], uid, *command[1:])

    assert done.code == 1
    assert "is refused" in done.line()


def test_odd_requirements_are_shown_as_data(cli: Any) -> None:
    """B71: template syntax, tags and control characters are neither run nor obeyed, wherever a requirement is shown."""
    odd = "{{ 7*7 }} {% raw %} </contract> \u202e \x1b[31m"
    uid = cli.new(
        "--human", odd, "--require", odd, "--check", f"true # {odd}", "--check-file", f"contains:a:{odd}"
    )

    texts = [cli(name, uid, *more).out for name, *more in (("show",), ("check",), ("context", "--next"))]

    for text in texts:
        assert text.count("{{ 7*7 }} {% raw %}") >= 4
        assert not {"\x1b", "\u202e"} & set(text)
    assert texts[2].count("</contract>") == 1


def test_an_edit_reads_the_settings_only_where_it_needs_them(cli: Any, tmp_path: Path) -> None:
    """A broken file is no trouble of an objective, nor of an edit that takes servers or a sandbox away."""
    uid = cli.new("--check", "true")
    broken = tmp_path / "broken.toml"
    broken.write_text("[models\n")

    for options in (["--objective", "y"], ["--check-timeout", "5s"], ["--no-mcp"], ["--sandbox", "none"]):
        assert cli("edit", uid, *options, "--config", str(broken)).code == 0
    for options in (["--mcp", "git"], ["--sandbox", "auto"]):
        done = cli("edit", uid, *options, "--config", str(broken))
        assert (done.code, "not valid TOML" in done.line()) == (2, True)
    assert cli("show", uid, "--json").json["objective"] == "y"


def test_a_new_goal_reads_the_settings_once(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is made of and what is told of it are out of one reading."""
    read: list[Settings] = []

    def counted(*given: Any) -> Settings:
        read.append(load_settings(*given))
        return read[-1]

    monkeypatch.setattr(create, "load_settings", counted)
    assert cli(*new(cli)).code == 0
    assert len(read) == 1
