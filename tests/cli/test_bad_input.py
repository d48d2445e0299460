"""What is wrong is said in one clear line, with the right exit code, and leaves the store as it was."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from goalmode.state.reading import HEAD

NEW = ("new", "Write a.txt.", "--workspace", "workspace", "--model", "openai:m")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("new", "", *NEW[2:]), "objective"),
        (("new", " \n\t", *NEW[2:]), "objective"),
        (("new", "@nowhere.md", *NEW[2:]), "nowhere.md"),
        (("new", "x", "--workspace", "nowhere", "--model", "openai:m"), "workspace"),
        (("new", "x", "--workspace", "file", "--model", "openai:m"), "file"),
        (("new", "x", "--workspace", "", "--model", "openai:m"), "workspace"),
        ((*NEW, "--turn-budget", "-1"), "turn-budget"),
        ((*NEW, "--turn-budget", "many"), "turn-budget"),
        ((*NEW, "--wakeup-budget", "1.5"), "wakeup-budget"),
        ((*NEW, "--token-budget", "-200k"), "token-budget"),
        ((*NEW, "--cost-budget", "-1"), "cost-budget"),
        ((*NEW, "--cost-budget", "2,50"), "cost-budget"),
        ((*NEW, "--cost-budget", "0.0000001"), "cost-budget"),
        ((*NEW, "--cost-budget", "much"), "cost-budget"),
        ((*NEW, "--time-budget", "-3h"), "time-budget"),
        ((*NEW, "--time-budget", "soon"), "time-budget"),
        ((*NEW, "--deadline", "tomorrow"), "deadline"),
        ((*NEW, "--deadline", "2001-01-01"), "deadline"),
        ((*NEW, "--max-turns", "0"), "max-turns"),
        ((*NEW, "--max-turns", "x"), "max-turns"),
        ((*NEW, "--early-turns", "-1"), "early-turns"),
        ((*NEW, "--context-tokens", "10"), "context-tokens"),
        ((*NEW, "--work-window", "10"), "work-window"),
        ((*NEW, "--work-window", "all"), "work-window"),
        ((*NEW, "--context-policy", "forget"), "context-policy"),
        ((*NEW, "--lang", "de"), "lang"),
        ((*NEW, "--tools", "frob"), "frob"),
        ((*NEW, "--tools", ""), "tools"),
        ((*NEW, "--check", " "), "check"),
        ((*NEW, "--require", ""), "require"),
        ((*NEW, "--deliverable", "../x"), "deliverable"),
        ((*NEW, "--deliverable", "/etc/passwd"), "outside the workspace"),
        ((*NEW, "--deliverable", "."), "deliverable"),
        ((*NEW, "--base-url", "ftp://x"), "base-url"),
        ((*NEW, "--base-url", "https://a..b/v1"), "base-url"),
        ((*NEW, "--base-url", f"https://{'x' * 64}.net/v1"), "base-url"),
        (("new", "x", "--workspace", "workspace", "--model", "llama:x"), "model"),
        (("new", "x", "--workspace", "workspace", "--model", "nothing"), "model"),
        (("new", "x", "--workspace", "workspace"), "model"),
        ((*NEW, "--config", "nowhere.toml"), "nowhere.toml"),
        ((*NEW, "--config", "broken.toml"), "broken.toml"),
        ((*NEW, "--store", "postgres://h/d"), "store"),
        ((*NEW, "--store", ":memory:"), "store"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else None,
)
def test_a_goal_that_cannot_be_made_leaves_nothing_behind(
    cli: Any, tmp_path: Path, arguments: tuple[str, ...], names: str
) -> None:
    """Each wrong value: one line that names it, exit code 2, and no store (B107, B113)."""
    (tmp_path / "file").touch()
    (tmp_path / "broken.toml").write_text("[models\n")
    done = cli(*arguments)

    assert (done.code, done.out) == (2, "")
    assert names in done.line()
    assert not cli.store.exists()


COMMANDS = ["run", "wake", "resume", "pause", "abort", "edit", "delete", "show", "turns", "context", "why"]


@pytest.mark.sqlite
@pytest.mark.parametrize("command", COMMANDS)
def test_no_store_is_one_line(cli: Any, command: str) -> None:
    """No command makes a store to look for a goal in it."""
    done = cli(command, "zzz")

    assert (done.code, done.out) == (1, "")
    assert "no store" in done.line()
    assert not cli.store.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_goal_is_one_line(cli: Any, command: str) -> None:
    """The store is as it was."""
    cli.new()
    before = cli.rows()
    done = cli(command, "zzz")
    assert (done.code, done.out) == (1, "")
    assert "no goal 'zzz'" in done.line()
    assert cli.rows() == before


def test_an_ambiguous_prefix_names_the_candidates(cli: Any) -> None:
    """A beginning that several goals share is refused; a longer one is enough."""
    cli.new()
    cli.new()
    cli.sql("UPDATE goals SET uid = 'aaaa' || id || 'bbbbbbb'")
    before = cli.rows()
    done = cli("show", "aaaa")

    assert done.code == 1
    assert "aaaa1bbbbbbb, aaaa2bbbbbbb" in done.line()
    assert cli("show", "aaaa2", "--json").json["id"] == "aaaa2bbbbbbb"
    assert cli.rows() == before


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--turn-budget", "+5"), "not set"),
        (("--turn-budget", "five"), "turn-budget"),
        (("--token-budget", "-1"), "token-budget"),
        (("--cost-budget", "+1"), "not set"),
        (("--cost-budget", "2,50"), "cost-budget: '2,50'"),
        (("--deadline", "2001-01-01"), "deadline"),
        (("--max-turns", "0"), "max-turns"),
        (("--max-wait", "long"), "max-wait"),
        (("--base-url", "https://u:p@h/v1"), "goalmode.toml"),
        (("--model", "nothing"), "model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_resume_changes_nothing(cli: Any, arguments: tuple[str, ...], names: str) -> None:
    """A limit or a model that is wrong is said before anything is changed."""
    uid = cli.new()
    cli("pause", uid)
    before = cli.rows()
    done = cli("resume", uid, *arguments)

    assert done.code == 2
    assert names in done.line()
    assert cli.rows() == before


def test_a_missing_key_is_said_before_anything_is_changed(cli: Any) -> None:
    """A run without its key names the variable; a paused goal stays paused."""
    uid = cli.new(url="https://models.example/v1")
    cli("pause", uid)
    before = cli.rows()
    done = cli("resume", uid)

    assert done.code == 2
    assert "OPENAI_API_KEY" in done.line()
    assert cli.rows() == before


def test_a_broken_configuration_names_file_and_line(cli: Any, tmp_path: Path) -> None:
    """A `goalmode.toml` that is no TOML stops a run before it begins."""
    uid = cli.new()
    (tmp_path / "broken.toml").write_text("[models]\nx = = 1\n")
    before = cli.rows()
    done = cli("run", uid, "--config", "broken.toml")

    assert done.code == 2
    assert "broken.toml" in done.line()
    assert "line 2" in done.line()
    assert cli.rows() == before


def test_a_template_with_an_unknown_variable_is_one_line(cli: Any, tmp_path: Path) -> None:
    """A user's own template that asks for what there is not stops the run before anything is stored."""
    uid = cli.new()
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "templates" / "en").mkdir(parents=True)
    (tmp_path / "templates" / "en" / "goal.j2").write_text("{{ nonsense }}")
    before = cli.rows()
    done = cli("run", uid, "--config", "mine.toml")

    assert done.code == 1
    assert "nonsense" in done.line()
    assert cli.rows() == before


@pytest.mark.parametrize("command", [("list",), ("show", "x"), ("run", "x"), NEW], ids=lambda c: c[0])
@pytest.mark.parametrize("kind", ["directory", "text", "other", "newer"])
@pytest.mark.sqlite
def test_what_is_no_store_of_ours_is_left_alone(cli: Any, kind: str, command: tuple[str, ...]) -> None:
    """A directory, a text, somebody else's database, a newer store: one line, 1, and not a byte changed (B142)."""
    cli.store.parent.mkdir()
    match kind:
        case "directory":
            cli.store.mkdir()
        case "text":
            cli.store.write_text("no database at all, but a text that somebody needs")
        case "other":
            with sqlite3.connect(cli.store) as other:
                other.execute("CREATE TABLE theirs (x)")
            other.close()
        case "newer":
            cli.new()
            cli.sql("UPDATE alembic_version SET version_num='0999'")
    before = cli.store.read_bytes() if cli.store.is_file() else None
    done = cli(*command)

    assert (done.code, done.out) == (1, "")
    assert str(cli.store) in done.line()
    assert kind != "newer" or ("0999" in done.line() and HEAD in done.line())
    assert (cli.store.read_bytes() if cli.store.is_file() else None) == before


@pytest.mark.sqlite
def test_a_corrupt_store_is_named(cli: Any) -> None:
    """A database with torn pages is said to be corrupt, with its file."""
    uid = cli.new()
    cli("list")
    whole = cli.store.read_bytes()
    cli.store.write_bytes(whole[:2048] + b"\xff" * (len(whole) - 2048))
    done = cli("show", uid)

    assert (done.code, done.out) == (1, "")
    assert str(cli.store) in done.line()


def test_our_own_failure_is_one_line_with_a_hint(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody expected is one line; a traceback is for whoever asks for it, and holds no key (B115)."""
    key = "canary-1234567890"
    monkeypatch.setenv("MY_API_KEY", key)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"broken near {key}")

    uid = cli.new()
    monkeypatch.setattr("goalmode.inspection.show.show", fail)
    done = cli("show", uid)
    assert done.code == 1
    assert "GOALMODE_DEBUG=1" in done.line()
    assert key not in done.err

    monkeypatch.setenv("GOALMODE_DEBUG", "1")
    assert key not in cli("show", uid, traceback=True).err
