"""What somebody meets who types the documents' lines for the first time, from where they happen to stand."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from goalmode.cli import timeline
from tests.cli.conftest import CLI

LOCAL = ("--base-url", "http://127.0.0.1:9/v1")
FAR = ("--base-url", "https://models.example/v1")


def made(cli: CLI, *options: str, workspace: str = "workspace") -> str:
    """What `new` says beside the id."""
    done = cli("new", "x", "--workspace", workspace, "--model", "openai:m", *options)
    assert done.code == 0, done.err
    return done.err


def test_a_workspace_has_one_name(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals share memories by it: `.` and `../workspace` are the same; `memory list` and `import` know it, too."""
    made(cli)
    monkeypatch.chdir(cli.workspace)
    made(cli, workspace="../workspace")
    made(cli, workspace=".")

    uids = [goal["id"] for goal in cli("list", "--json").json]
    assert {cli("show", uid, "--json").json["workspace"] for uid in uids} == {str(cli.workspace)}
    file = cli.workspace / "goal.json"
    assert cli("export", uids[0], "--output", str(file)).code == 0
    again = cli("import", str(file), "--new-id", "--workspace", "../workspace", "--json").json["id"]
    assert cli("show", again, "--json").json["workspace"] == str(cli.workspace)


def test_a_configuration_beside_the_workspace_may_be_named_from_it(
    cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--config ../goalmode.toml` does not lie in the workspace, and is not refused as if it did."""
    (cli.workspace.parent / "goalmode.toml").write_text("")
    monkeypatch.chdir(cli.workspace)

    made(cli, "--config", "../goalmode.toml", "--sandbox", "auto", workspace=".")


def test_what_is_said_of_a_key_is_what_happens(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A far server needs it; one on this machine is asked without, and nothing is said unless a variable was named."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MY_KEY", raising=False)

    assert "$OPENAI_API_KEY is not set; it is needed to run." in made(cli, *FAR)
    assert "$MY_KEY is not set; the model is asked without a key." in made(
        cli, *LOCAL, "--api-key-env", "MY_KEY"
    )
    assert "is not set" not in made(cli, *LOCAL)
    monkeypatch.setenv("MY_KEY", "k-1234567890")
    assert "is not set" not in made(cli, *LOCAL, "--api-key-env", "MY_KEY")


@pytest.mark.parametrize("name", ["sk-proj-1234567890abcdef1234567890", "MY KEY", "1KEY", "", "MY_KEY1"])
def test_a_key_in_place_of_its_variable_is_not_stored(cli: CLI, name: str) -> None:
    """The key itself is never stored, even where somebody gives it for the name of its variable."""
    done = cli(
        "new", "x", "--workspace", "workspace", "--model", "openai:m", *LOCAL, "--api-key-env", name, "-q"
    )

    if name in ("", "MY_KEY1"):
        assert done.code == 0
        return
    assert done.code == 2
    assert "api-key-env" in done.line()
    assert "sk-proj-1234567890" not in done.err
    assert not cli.store.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--model", "foo"), "model: 'foo' is not valid"),
        (("--base-url", "nowhere"), "base-url: 'nowhere' is not valid"),
        (("--turn-budget", "x"), "turn-budget: 'x' is not valid"),
        (("--turn-budget", "+1"), "turn-budget: '+1' is not valid: one without +"),
        (("--time-budget", "+1h"), "time-budget: '+1h' is not valid: one without +"),
    ],
)
def test_what_a_resume_cannot_take_is_named_as_it_was_given(
    cli: CLI, change: tuple[str, ...], told: str
) -> None:
    """Also with `--no-run`, when no model is asked yet; and nothing is changed."""
    uid = cli.new()
    before = cli.rows()

    done = cli("resume", uid, "--no-run", *change)

    assert done.code == 2
    assert told in done.line()
    assert cli.rows() == before


def test_a_goal_for_another_program_needs_no_model_here(cli: CLI, tmp_path: Path) -> None:
    """What GenericAgent runs has none, and may have its limits changed all the same."""
    (tmp_path / "state.json").write_text(
        f'{{"objective": "x", "budget_seconds": 9000, "start_time": {time.time()}, "status": "running"}}'
    )
    uid = cli("generic-agent", "import", "state.json", "-q").out.strip()

    assert cli("resume", uid, "--no-run", "--max-turns", "7", "--turn-budget", "9").code == 0


def test_a_context_before_the_first_wakeup_is_told_without_a_number(cli: CLI) -> None:
    """Nobody named a wakeup, so none is called wrong; one that was named is."""
    uid = cli.new()

    done = cli("context", uid)
    assert (done.code, done.line()) == (
        1, f"goalmode: goal {uid}: not woken yet; --next shows what its first wakeup would see"
    )  # fmt: skip
    assert "wakeup: '3' is not valid" in cli("context", uid, "--wakeup", "3").line()
    assert cli("turns", uid, "--wakeup", "3").out == "There are no turns of a wakeup 3.\n"
    assert cli("turns", uid).out == "There are no turns yet.\n"


def test_the_end_of_a_file_is_not_in_a_title(cli: CLI) -> None:
    """`echo … | goalmode new -` ends in a newline; it is stored as it came, and listed without it."""
    done = cli("new", "-", "--workspace", "workspace", "--model", "openai:m", "-q", stdin=b"Write a.txt.\n")

    [goal] = cli("list", "--json").json
    assert goal["title"] == "Write a.txt."
    assert cli("show", done.out.strip(), "--json").json["objective"] == "Write a.txt.\n"


def test_sentences_end_before_the_way_to_the_help(cli: CLI) -> None:
    """Whoever writes the sentence, click or we."""
    assert cli("show", "a", "b").line().endswith("argument (b). See: goalmode show --help")
    assert cli("show").line().endswith("argument 'ID'. See: goalmode show --help")


@pytest.mark.parametrize("group", ["db", "generic-agent", "memory", "eval"])
def test_no_sentence_of_a_list_of_commands_is_cut(cli: CLI, group: str) -> None:
    """Each command of a group is told in whole words."""
    assert "..." not in cli(group, "--help").out.partition("Commands:")[2]


def test_path_is_json_too(cli: CLI) -> None:
    """Every command has `--json`."""
    assert cli("generic-agent", "path", "--json").json == {"path": cli("generic-agent", "path").out.strip()}


def test_output_that_finds_no_room_is_no_failure_of_goalmode(
    cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`goalmode list > /dev/full`: one line that says so, and exit code 1."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("goalmode.cli.look.say", full)
    done = cli("list")

    assert (done.code, done.line()) == (1, "goalmode: output: cannot be written: No space left on device")


def test_the_shell_is_not_both_named_and_left_out(cli: CLI) -> None:
    """A goal that could do nothing would be made."""
    options = ("--model", "openai:m", *LOCAL, "--tools", "shell", "--no-shell")
    done = cli("new", "x", "--workspace", "workspace", *options)

    assert done.code == 2
    assert "no-shell: 'set' is not valid: left out where --tools names the shell (shell)" in done.line()
    assert not cli.store.exists()


def test_an_ending_is_seen_in_eighty_columns() -> None:
    """Lines are cut at their ends: what happened stands before what it came to."""
    before = timeline._HEAD[: timeline._HEAD.index("WHAT")]
    widths = {"AT": 19, "WAKEUP": 6, "TURNS": 5, "TOKENS": 9, "COST": 9}

    assert sum(widths[name] + 2 for name in before) + len("GOAL_BUDGET_EXHAUSTED") <= 80
    assert {"MOVEMENT", "PROGRESS"} <= {*timeline._HEAD} - {*before}


def test_a_paused_goal_is_not_asked_to_be_paused(cli: CLI, tmp_path: Path) -> None:
    """`generic-agent export` says so only of a goal that would run on."""
    uid = cli.new("--deadline", "2099-01-01T00:00:00Z")

    assert "pause it here" in cli("generic-agent", "export", uid, str(tmp_path / "a.json")).err
    assert cli("pause", uid).code == 0
    assert cli("generic-agent", "export", uid, str(tmp_path / "b.json")).err == f"{uid}: written\n"
