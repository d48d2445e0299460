"""What a user says and is told of sandboxes. Which of them work is pretended; `tests/sandbox` has real ones."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.sandbox import SandboxMode
from goalmode.testing.steps import text
from goalmode.tools import bwrap, landlock
from goalmode.tools.confinement import Free
from goalmode.tools.sandbox import Sandbox
from tests.cli.conftest import CLI
from tests.mcp_servers import script

NOT_HERE = "bwrap is not installed"


@pytest.fixture(autouse=True)
def both_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "problem", lambda *, network=True: "")
    monkeypatch.setattr(landlock, "problem", lambda: "")
    monkeypatch.delenv("GOALMODE_SANDBOX")


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "problem", lambda *, network=True: NOT_HERE)


@pytest.fixture
def nothing_works(no_bwrap: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "problem", lambda: "this kernel has no Landlock")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[Sandbox]:
    """Commands run as ever, whatever sandbox they were to have; those are listed."""
    asked: list[Sandbox] = []

    def confinement(self: Sandbox) -> Free:
        asked.append(self)
        return Free()

    monkeypatch.setattr(Sandbox, "confinement", confinement)
    return asked


def made(cli: CLI, *options: str) -> Any:
    return cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", *options)


def test_new_tells_what_the_shell_is_kept_in_and_what_is_left(cli: CLI) -> None:
    """Of each mode what is true of it."""
    kept = made(cli).err
    assert "kept in bwrap" in kept
    assert "Left in its reach: the network" in kept
    assert "without a sandbox" not in kept
    assert "modes and times of your files" in made(cli, "--sandbox", "landlock").err
    assert "Left in its reach" not in made(cli, "--no-network").err
    assert "unattended and without a sandbox: it can do what you can" in made(cli, "--sandbox", "none").err
    assert "kept in" not in made(cli, "--no-shell").err


def test_new_tells_why_there_is_no_sandbox(cli: CLI, nothing_works: None) -> None:
    """`auto` is none where nothing works, with the reasons."""
    assert f"without a sandbox ({NOT_HERE}; this kernel has no Landlock): it can" in made(cli).err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sandbox", "bwrap"], NOT_HERE),
        (["--no-network"], NOT_HERE),
        (["--sandbox", "landlock", "--no-network"], "only bwrap can keep the network away"),
        (["--sandbox", "docker"], "auto or bwrap or landlock or none"),
    ],
)
def test_what_cannot_be_had_is_refused_and_leaves_nothing(
    cli: CLI, no_bwrap: None, options: list[str], told: str
) -> None:
    """One line, exit code 2, no store."""
    done = made(cli, *options)

    assert (done.code, told in done.line()) == (2, True)
    assert not cli.store.exists()


@pytest.mark.sqlite
def test_a_workspace_that_holds_the_store_is_refused(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the configuration, by whatever path; with `--sandbox none` it is the user's own risk."""
    around = str(cli.store.parent.parent)
    assert "holds goals.sqlite" in cli("new", "x", "--workspace", around, "--model", "openai:m").line()
    (cli.workspace / "mine.toml").write_text("")
    assert "holds mine.toml" in made(cli, "--config", str(cli.workspace / "mine.toml")).line()
    monkeypatch.setenv("HOME", str(cli.workspace))
    assert "is the home directory" in made(cli).line()
    assert not cli.store.exists()
    assert made(cli, "--sandbox", "none").code == 0


@pytest.mark.sqlite
def test_a_store_anywhere_in_the_workspace_is_refused(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below it, not there yet, or behind a link that lies in it: commands could write it, or put another there."""
    outside = cli.store.parent.parent / "outside"
    outside.mkdir()
    (cli.workspace / "link").symlink_to(outside)
    for place in ("goals.sqlite", "a/b/goals.sqlite", "link/goals.sqlite"):
        monkeypatch.setenv("GOALMODE_STORE", str(cli.workspace / place))
        for sandbox in ("auto", "bwrap", "landlock"):
            done = made(cli, "--sandbox", sandbox)
            assert (done.code, "holds goals.sqlite" in done.line()) == (2, True)
            assert "or take --sandbox none" in done.line()
        assert not (cli.workspace / place).exists()
        assert made(cli, "--sandbox", "none").code == 0


@pytest.mark.sqlite
def test_no_edit_and_no_wakeup_puts_the_store_into_a_sandbox(
    cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A goal that was made without a sandbox beside its store: one line, and nothing is changed."""
    monkeypatch.setenv("GOALMODE_STORE", str(cli.workspace / "goals.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    uid = cli.new("--sandbox", "none", "--check", "true")
    for option in (["--sandbox", "bwrap"], ["--sandbox", "auto"], ["--no-network", "--sandbox", "auto"]):
        done = cli("edit", uid, *option)
        assert (done.code, "holds goals.sqlite" in done.line()) == (2, True)
    shown = cli("show", uid, "--json").json
    assert (shown["settings"]["sandbox"], shown["objective_revision"]) == ("none", 1)
    with closing(sqlite3.connect(cli.workspace / "goals.sqlite")) as connection:
        connection.execute("UPDATE goals SET settings = json_set(settings, '$.sandbox', 'bwrap')")
        connection.commit()
    for command in ("wake", "run", "check"):
        done = cli(command, uid)
        assert (done.code, "holds goals.sqlite" in done.line()) == (2, True)
    assert cli("show", uid, "--json").json["wakeups"] == []


@pytest.mark.parametrize(
    ("server", "protected"),
    [
        (f"own={shlex.join(script())}", False),
        ("own=/bin/false", False),
        ("own=./gone", True),
        ("far=http://127.0.0.1:9/mcp", True),
    ],
    ids=["runs", "ended at once", "never began", "elsewhere"],
)
def test_servers_run_in_no_sandbox_and_so_protect_no_contract(
    cli: CLI, serve: Any, free: list[Sandbox], server: str, protected: bool
) -> None:
    """`why` says so of a wakeup in which a program of one was started, whatever its commands were kept in."""
    stub = serve([text("Not yet.")])
    gone = cli.workspace / "gone"
    gone.touch()
    options = ("--max-recoveries", "0", "--max-turns", "1", "--sandbox", "bwrap")
    uid = cli.new("--mcp", server, *options, url=stub.base_url)
    gone.unlink()
    cli("wake", uid, "--quiet")
    why = cli("why", uid, "--json").json

    assert (why["sandbox"], why["contract_protected"]) == ("bwrap", protected)
    assert ("the contract is not protected from them" in cli("why", uid).out) is not protected


def test_the_word_is_kept_shown_and_changed(cli: CLI, no_bwrap: None) -> None:
    """`new`, `show`, `edit`; what an edit does not name stays."""
    uid = cli.new("--sandbox", "landlock")
    assert "landlock" in cli("show", uid).out
    assert cli("edit", uid, "--no-network").code == 2
    assert cli("edit", uid, "--sandbox", "bwrap").code == 2
    assert cli("edit", uid, "--objective", "y").code == 0
    assert cli("show", uid, "--json").json["settings"]["sandbox"] == "landlock"
    assert cli("edit", uid, "--sandbox", "none").code == 0
    assert cli("show", uid, "--json").json["settings"]["sandbox"] == "none"
    plain = cli("show", cli.new(), "--json").json["settings"]
    assert (plain["sandbox"], plain["network"]) == ("", True)


@pytest.mark.parametrize(("sandbox", "mode"), [("auto", "bwrap"), ("landlock", "landlock"), ("none", "none")])
def test_a_wakeup_remembers_what_its_commands_ran_in(
    cli: CLI, serve: Any, free: list[Sandbox], sandbox: str, mode: str
) -> None:
    """Stored with it, for `show`, `why` and the exported file; a goal that was not woken has none."""
    stub = serve([text("Not yet.")])
    uid = cli.new("--sandbox", sandbox, "--max-recoveries", "0", "--max-turns", "1", url=stub.base_url)
    assert cli("why", uid, "--json").json["sandbox"] is None
    cli("wake", uid, "--quiet")
    why, shown = cli("why", uid, "--json").json, cli("show", uid, "--json").json

    assert (why["sandbox"], why["contract_protected"]) == (mode, mode != "none")
    assert [w["sandbox"] for w in shown["wakeups"]] == [mode]
    told = cli("why", uid).out
    assert ("Its commands ran without a sandbox: the contract is not protected" in told) == (mode == "none")
    assert (f"Its commands ran in {mode}. Left in its reach: the network" in told) == (mode != "none")
    assert [one.mode for one in free] == [SandboxMode(mode)]
    if "://" not in cli.url:
        assert {cli.store, cli.store.parent} <= set(free[0].private)


def test_a_sandbox_that_is_gone_is_no_wakeup(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal that asks for bwrap is not run without it; nothing is stored, and the line says what is missing."""
    uid = cli.new("--sandbox", "bwrap")
    before = cli.rows()
    monkeypatch.setattr(bwrap, "problem", lambda *, network=True: NOT_HERE)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for command in ("wake", "run", "check"):
        done = cli(command, uid)
        assert (done.code, NOT_HERE in done.line()) == (2, True)

    assert cli.rows() == before


def test_checks_run_in_it_too(cli: CLI, free: list[Sandbox]) -> None:
    """`goalmode check`, outside of any wakeup."""
    uid = cli.new("--check", "true", "--sandbox", "landlock")

    assert cli("check", uid).code == 0
    assert [one.mode for one in free] == [SandboxMode.LANDLOCK]


def test_doctor_tells_what_works(cli: CLI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The mode that `auto` means here, with what it leaves open; a warning for none; broken where it cannot be had."""

    def found(*more: str) -> tuple[str, str]:
        [one] = [f for f in cli("doctor", "--json", *more).json if f["name"] == "sandbox"]
        return one["state"], one["detail"]

    assert found() == ("ok", "bwrap. Left in its reach: the network, with what listens on this machine")
    (tmp_path / "none.toml").write_text('[sandbox]\nmode = "none"\n')
    assert found("--config", "none.toml")[0] == "warning"
    (tmp_path / "bwrap.toml").write_text('[sandbox]\nmode = "bwrap"\n')
    monkeypatch.setattr(bwrap, "problem", lambda *, network=True: NOT_HERE)
    assert found("--config", "bwrap.toml")[0] == "broken"
    assert found()[1].startswith("landlock. Left in its reach")
    assert f"no --no-network here: {NOT_HERE}" in found()[1]
    monkeypatch.setattr(landlock, "problem", lambda: "this kernel has no Landlock")
    assert found() == (
        "warning",
        f"none ({NOT_HERE}; this kernel has no Landlock): the shell of a goal runs as you, without a sandbox",
    )
