"""`new`: a goal out of an argument, standard input or a file, stored whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.goal import MAX_OBJECTIVE

CANARY = "canary-9f8e7d6c5b4a"


def test_prints_the_id_alone(cli: Any) -> None:
    """Standard output holds the id and nothing else, so that a script can keep it."""
    done = cli("new", "Write a.txt.", "--workspace", str(cli.workspace), "--model", "openai:m")

    assert done.code == 0
    assert cli("show", done.out.strip(), "--json").json["id"] == done.out.strip()


def test_prints_json_if_asked(cli: Any) -> None:
    """`--json` prints one object: the id, what may be wrong with the checks, and what is protected."""
    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--json", "--quiet")

    assert (done.code, done.err) == (0, "")
    assert done.json == {"id": done.json["id"], "warnings": [], "protected": []}


def test_everything_of_the_contract_is_stored(cli: Any) -> None:
    """Each option ends up in the goal that `show --json` prints."""
    uid = cli.new(
        "--deliverable", "my report.md", "--deliverable", "out dir/a b.csv", "--check", "true", "--require", "Be kind.",
        "--max-turns", "7", "--turn-budget", "50", "--wakeup-budget", "4", "--token-budget", "200k",
        "--time-budget", "3h", "--deadline", "2099-01-31T18:00+01:00", "--until-budget", "--early-turns", "1",
        "--max-recoveries", "0", "--lang", "zh", "--context-policy", "replay", "--context-tokens", "9000", "--no-shell",
        "--api-key-env", "MY_KEY", "--work-window", "12k",
    )  # fmt: skip
    goal = cli("show", uid, "--json").json

    assert goal["limits"] == {
        "turns": 50,
        "wakeups": 4,
        "tokens": 200_000,
        "active_seconds": 10_800.0,
        "deadline": "2099-01-31T18:00:00+01:00",
        "cost_micro": None,
    }
    assert [r["text"] for r in goal["requirements"]] == ["Be kind.", "true"]
    assert [d["path"] for d in goal["deliverables"]] == ["my report.md", "out dir/a b.csv"]
    wanted = {"max_turns": 7, "early_turns": 1, "max_recoveries": 0, "lang": "zh", "policy": "replay"}
    wanted |= {"context_tokens": 9000, "until_budget": True, "api_key_env": "MY_KEY", "model": "openai:m"}
    wanted |= {"work_window": 12_000}
    assert {name: goal["settings"][name] for name in wanted} == wanted
    assert "shell" not in goal["settings"]["tools"]
    assert "read_file" in goal["settings"]["tools"]


SIZES = (3999, 4000, 4001, 20_000, MAX_OBJECTIVE)
LONGEST_ARGUMENT = 20_000
"""Of those; no system takes an argument of any length."""


@pytest.mark.parametrize(
    ("size", "way"),
    [
        *((size, "argument") for size in SIZES if size <= LONGEST_ARGUMENT),
        *((size, way) for size in SIZES for way in ("file", "stdin")),
    ],
)
def test_a_long_objective_is_stored_whole(cli: Any, tmp_path: Path, size: int, way: str) -> None:
    """Whatever it comes by, an objective up to the limit is stored to the last character (B105)."""
    text = ("目标 goal " * size)[: size - 12] + "\nunique-4711"
    (tmp_path / "brief.md").write_bytes(text.encode())
    given = {"argument": text, "file": "@brief.md", "stdin": "-"}[way]
    done = cli(
        "new", given, "--workspace", str(cli.workspace), "--model", "openai:m", "-q", stdin=text.encode()
    )
    stored = cli("show", done.out.strip(), "--json").json["objective"]

    assert len(stored) == size
    assert hashlib.sha256(stored.encode()).hexdigest() == hashlib.sha256(text.encode()).hexdigest()


def test_an_objective_beyond_the_limit_is_refused_with_both_numbers(cli: Any) -> None:
    """Two million characters are refused, by limit and actual length; no row and no store is made (B105)."""
    before = cli.state()
    done = cli("new", "-", "--workspace", str(cli.workspace), "--model", "openai:m", stdin=b"x" * 2_000_000)

    assert done.code == 2
    assert "200,000" in done.line()
    assert "2,000,000" in done.line()
    assert cli.state() == before


@pytest.mark.parametrize("way", ["argument", "file", "stdin", "option"])
def test_bytes_that_are_not_utf8_are_refused(cli: Any, tmp_path: Path, way: str) -> None:
    """Undecodable bytes are refused in one line before any row is written (B69)."""
    dirty = b"caf\xe9"
    (tmp_path / "brief.md").write_bytes(dirty)
    argument = dirty.decode("utf-8", "surrogateescape")
    given = {"argument": argument, "file": "@brief.md", "stdin": "-", "option": "x"}[way]
    more = ["--require", argument] if way == "option" else []
    done = cli("new", given, "--workspace", str(cli.workspace), "--model", "openai:m", *more, stdin=dirty)

    assert done.code == 2
    assert "UTF-8" in done.line()
    assert not cli.store.exists()


def test_a_byte_order_mark_is_no_part_of_an_objective(cli: Any, tmp_path: Path) -> None:
    """A file as some editors write it is read as what it says."""
    (tmp_path / "brief.md").write_bytes("\ufeff写报告".encode())
    done = cli("new", "@brief.md", "--workspace", str(cli.workspace), "--model", "openai:m", "-q")

    assert cli("show", done.out.strip(), "--json").json["objective"] == "写报告"


@pytest.mark.parametrize(
    "text",
    ["{{ tokens_used }} {% raw %} {0} %s $& ${HOME} \\1", "a\u202eb\x1b[31mred", "✓ 已完成 \U0001f378"],
    ids=["templates", "controls", "astral"],
)
def test_a_strange_objective_round_trips_in_json_and_is_harmless_as_text(cli: Any, text: str) -> None:
    """JSON gives back what was given; people see no raw control character (B71, B73)."""
    uid = cli.new(objective=text)

    assert cli("show", uid, "--json").json["objective"] == text
    assert not {"\x1b", "\u202e"} & set(cli("show", uid).out + cli("list").out + cli("list", "--json").out)


def test_says_what_completion_rests_on(cli: Any) -> None:
    """A user learns at once what will be checked, and that nothing will be if that is so."""
    plain = ("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m")

    assert "Nothing can be checked" in cli(*plain).err
    told = cli(*plain, "--deliverable", "a", "--deliverable", "b", "--check", "true").err
    assert "2 files that must be there and not be empty; 1 command that must exit 0" in told
    assert cli(*plain, "--quiet").err == ""


def test_says_that_the_shell_runs_without_a_sandbox(cli: Any) -> None:
    """An unattended shell is named for what it is; a goal without one is not."""
    plain = ("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m")

    assert "without a sandbox" in cli(*plain).err
    assert "without a sandbox" not in cli(*plain, "--no-shell").err
    assert "without a sandbox" not in cli(*plain, "--tools", "read_file").err


def test_the_key_is_not_needed_to_create_but_its_absence_is_said(cli: Any) -> None:
    """A goal can be made where its key is not."""
    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:gpt-5")

    assert done.code == 0
    assert "$OPENAI_API_KEY is not set" in done.err


@pytest.mark.parametrize(
    "url",
    [
        f"https://u:{CANARY}@h.example/v1",
        f"https://h.example/v1?api_key={CANARY}",
        f"http://[::1/v1?{CANARY}",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(cli: Any, url: str) -> None:
    """A goal's row is no place for a password, and an error message neither (B117)."""
    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--base-url", url)

    assert done.code == 2
    assert "goalmode.toml" in done.line()
    assert CANARY not in done.err
    assert not cli.store.exists()


def test_the_default_model_of_the_configuration_is_used(cli: Any, tmp_path: Path) -> None:
    """Without `--model` the configured default counts, from the file that `--config` names."""
    (tmp_path / "mine.toml").write_text(
        '[defaults]\nmodel = "local"\n[models.local]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    done = cli("new", "x", "--workspace", str(cli.workspace), "--config", "mine.toml", "-q")

    assert (done.code, done.err) == (0, "")


def test_a_configuration_in_the_workspace_is_never_read(cli: Any) -> None:
    """Whoever writes into the workspace must not choose where keys are sent."""
    (cli.workspace / "goalmode.toml").write_text('[defaults]\nmodel = "openai:evil"\n')
    done = cli("new", "x", "--workspace", str(cli.workspace))

    assert done.code == 2
    assert "model" in done.line()


def test_edit_adds_and_drops_and_reopens(cli: Any) -> None:
    """An edit is a new revision with what was added, without what was dropped; the history stays visible (B138)."""
    uid = cli.new("--deliverable", "a.txt", "--check", "false")
    cli.sql("UPDATE goals SET status='DONE'")
    edit = (
        "--objective",
        "Write b.txt.",
        "--deliverable",
        "b.txt",
        "--drop",
        "a.txt",
        "--drop",
        "R1",
        "--require",
        "Neat.",
    )
    done = cli("edit", uid, *edit)
    goal = cli("show", uid, "--json").json

    assert (done.code, done.err) == (0, "")
    assert (goal["status"], goal["objective_revision"], goal["objective"]) == ("ACTIVE", 2, "Write b.txt.")
    assert [d["path"] for d in goal["deliverables"]] == ["b.txt"]
    assert [(r["text"], r["check"]) for r in goal["requirements"]] == [("Neat.", None)]
    assert [r["objective"] for r in goal["revisions"]] == ["Write a.txt.", "Write b.txt."]


def test_a_workflow_is_taken_by_name(cli: Any) -> None:
    """`--workflow polish`: stored with the goal, which begins in its first movement; the default is pursue."""
    polish = cli("show", cli.new("--workflow", "polish", "--until-budget"), "--json").json
    usual = cli("show", cli.new(), "--json").json

    assert (polish["movement"], polish["settings"]["workflow"]["name"]) == ("create", "polish")
    assert [m["name"] for m in polish["settings"]["workflow"]["movements"]] == ["create", "verify", "improve"]
    assert (usual["movement"], usual["settings"]["workflow"]["name"]) == ("pursue", "pursue")
    assert "create, of the workflow polish" in cli("show", polish["id"]).out


def test_a_workflow_file_is_read_once(cli: Any) -> None:
    """What is changed in the file later does not change the goal."""
    file = cli.workspace / "flow.toml"
    file.write_text('[[movement]]\nname = "only"\ninstruction = "Do it so."\ntools = ["read_file"]\n')
    uid = cli.new("--workflow", str(file))
    file.write_text("nonsense")

    [movement] = cli("show", uid, "--json").json["settings"]["workflow"]["movements"]

    assert (movement["instruction"], movement["tools"]) == ("Do it so.", ["read_file"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[movement]]\nname = "a"\ninstruction = "x"\ntools = ["shel"]\n',
            "flow.toml, line 4: tools: 'shel'",
        ),
        (
            '[[movement]]\nname = "a"\ninstruction = "x"\ndefault_next = "b"\n',
            "flow.toml, line 4: default_next",
        ),
        (
            '[[movement]]\nname = "a"\ninstruction_template = "nowhere"\n',
            "flow.toml, line 3: instruction_template",
        ),
        ('[[movement]\nname = "a"\n', "valid TOML"),
    ],
    ids=["tool", "next", "template", "syntax"],
)
def test_a_mistake_in_a_workflow_is_told_and_leaves_nothing(cli: Any, text: str, told: str) -> None:
    """One line with file, line, field and value; no store is made."""
    file = cli.workspace / "flow.toml"
    file.write_text(text)

    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--workflow", str(file))

    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1
    assert not cli.store.exists()
