"""Which sandbox is chosen, what may be read in it, and what is refused. What works here decides nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from goalmode.domain.goal import GoalSettings
from goalmode.domain.sandbox import AUTO, SandboxMode, SandboxSettings
from goalmode.errors import BadInput
from goalmode.tools import bwrap, capabilities, landlock, readable, sandbox
from goalmode.tools.confined import USUAL, Confined
from goalmode.tools.confinement import FREE
from goalmode.tools.landlock import _spared
from goalmode.tools.sandbox import Sandbox, choose, gaps, sandbox_for

NO_BWRAP, NO_LANDLOCK = "bwrap is not installed", "this kernel has no Landlock"


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Which of the two work: `bwrap landlock`, and `net` where bwrap can also take the network away."""
    words = request.param.split()

    def of_bwrap(*, network: bool = True) -> str:
        return "" if "bwrap" in words and (network or "net" in words) else NO_BWRAP

    monkeypatch.setattr(bwrap, "problem", of_bwrap)
    monkeypatch.setattr(landlock, "problem", lambda: "" if "landlock" in words else NO_LANDLOCK)


@pytest.mark.parametrize(
    ("works", "wanted", "network", "mode"),
    [
        ("bwrap landlock", "auto", True, "bwrap"),
        ("bwrap", "auto", True, "bwrap"),
        ("landlock", "auto", True, "landlock"),
        ("", "auto", True, "none"),
        ("bwrap net landlock", "auto", False, "bwrap"),
        ("bwrap landlock", "landlock", True, "landlock"),
        ("bwrap landlock", "none", True, "none"),
        ("bwrap net", "bwrap", False, "bwrap"),
    ],
    indirect=["works"],
)
def test_the_strongest_that_works_is_chosen(works: None, wanted: str, network: bool, mode: str) -> None:
    """`auto`: bubblewrap, else Landlock, else none; a word: that."""
    assert choose(wanted, network=network) == mode


@pytest.mark.parametrize(
    ("works", "wanted", "network", "told"),
    [
        ("landlock", "bwrap", True, NO_BWRAP),
        ("bwrap", "landlock", True, NO_LANDLOCK),
        ("landlock", "auto", False, NO_BWRAP),
        ("bwrap landlock", "auto", False, NO_BWRAP),
        ("bwrap", "bwrap", False, NO_BWRAP),
        ("bwrap net landlock", "landlock", False, "only bwrap can keep the network away"),
        ("bwrap net landlock", "none", False, "only bwrap can keep the network away"),
        ("bwrap landlock", "docker", True, "auto or bwrap or landlock or none"),
        ("bwrap landlock", "", True, "auto or bwrap or landlock or none"),
    ],
    indirect=["works"],
)
def test_what_is_asked_for_and_cannot_be_had_is_refused(
    works: None, wanted: str, network: bool, told: str
) -> None:
    """Never silently weaker, and never silently with a network."""
    with pytest.raises(BadInput, match=r"^sandbox: ") as refused:
        choose(wanted, network=network)
    assert told in str(refused.value)


@pytest.mark.parametrize("works", ["bwrap landlock"], indirect=True)
def test_a_goals_word_comes_before_what_is_configured(works: None, tmp_path: Path) -> None:
    """Which comes before `auto`."""
    for own, configured, mode in (
        ("none", "bwrap", "none"),
        ("", "landlock", "landlock"),
        ("auto", "none", "bwrap"),
    ):
        settings, made = GoalSettings(sandbox=own), SandboxSettings(configured)
        assert sandbox_for(tmp_path, settings, made, {}).mode == mode


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / "desk").mkdir(parents=True)
    return made


@pytest.mark.parametrize(
    ("workspace", "private", "told"),
    [
        ("home", (), "home directory"),
        (".", (), "home directory"),
        ("/", (), "home directory"),
        ("link-to-home", (), "home directory"),
        ("home/desk", ("home/desk/goals.sqlite",), "holds goals.sqlite"),
        ("home/desk", ("home/desk/a/b/goals.sqlite",), "holds goals.sqlite"),
        ("link-to-desk", ("home/desk/goals.sqlite",), "holds goals.sqlite"),
        ("home/desk", ("link-to-desk/goalmode.toml",), "holds goalmode.toml"),
    ],
)
def test_a_workspace_in_which_nothing_could_be_kept_is_refused(
    home: Path, workspace: str, private: tuple[str, ...], told: str
) -> None:
    """The home directory or above it, and one with the store or the configuration in it; also through links."""
    base = home.parent
    (base / "link-to-home").symlink_to(home)
    (base / "link-to-desk").symlink_to(home / "desk")
    made = Sandbox(base / workspace, SandboxMode.LANDLOCK, home=home)

    with pytest.raises(BadInput, match="or take --sandbox none") as refused:
        made.keeping(*(base / path for path in private))
    assert told in str(refused.value)
    Sandbox(base / workspace, SandboxMode.NONE, home=home).keeping(*(base / path for path in private))


@pytest.mark.parametrize("place", ["beside/goals.sqlite", "desk-2/goals.sqlite"])
def test_what_lies_beside_a_workspace_may_be_named_from_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """`--store ../goals.sqlite`, typed in the workspace, names nothing in it; `../desk/goals.sqlite` does."""
    made = Sandbox(home / "desk", SandboxMode.LANDLOCK, home=home)
    monkeypatch.chdir(home / "desk")

    assert made.keeping(Path("..", place)).private == (home / place,)
    assert made.keeping_store(Path("..", place)).private == (home / place, (home / place).parent)
    for inside in ("../desk/goals.sqlite", "goals.sqlite", "a/../../beside/goals.sqlite"):
        with pytest.raises(BadInput, match="which no command may reach"):
            made.keeping(Path(inside))


@pytest.mark.parametrize("workspace", ["desk", ".hidden/workspace", ".local/share/goalmode/workspace"])
def test_other_workspaces_are_taken(home: Path, workspace: str) -> None:
    """Also one in a hidden directory, or beside the store: what lies around it stays closed."""
    (home / workspace).mkdir(parents=True, exist_ok=True)
    made = Sandbox(home / workspace, SandboxMode.BWRAP, home=home)

    store = home / ".local/share/goalmode/goals.sqlite"
    assert made.keeping_store(store).private == (store, store.parent)
    assert made.keeping_store(None) == made


@pytest.mark.parametrize("place", ["home", "."])
def test_the_home_is_not_to_be_configured(home: Path, place: str) -> None:
    """Its keys would be among what may be read."""
    made = Sandbox(home / "desk", SandboxMode.BWRAP, read=(home.parent / place,), home=home)
    with pytest.raises(BadInput, match=r"^sandbox\.read: .* keys lie in it"):
        made.keeping()


def test_what_is_on_the_path_is_readable_with_what_it_belongs_to(home: Path) -> None:
    """Neither the home directory, nor of a hidden directory in it more than its `bin`."""
    for place in (".pyenv/shims", ".cargo/bin", ".nvm/v20/bin", "go/bin", "bin", "scripts", "tools/sub"):
        (home / place).mkdir(parents=True)
    words = [*(str(home / p) for p in (".pyenv/shims", ".cargo/bin", ".nvm/v20/bin", "go/bin", "bin", "scripts")),
             str(home), "relative/bin", "", "/bin", "/nowhere/bin"]  # fmt: skip
    found = readable.readable(os.pathsep.join(words), home, [home / "tools/sub"])
    in_home = {str(path.relative_to(home)) for path in found if home in path.parents}

    assert in_home == {".pyenv", ".cargo/bin", ".nvm/v20", "go", "bin", "scripts", "tools/sub"}
    assert not {Path("/"), home, home.parent} & set(found)
    assert Path("/usr") in found
    assert Path("/nowhere/bin") not in found


def test_what_is_private_is_left_out_of_what_is_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where it lies in it; for root also what others may not read in /etc."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for name in ("a/store", "b"):
        (tmp_path / name).mkdir(parents=True)
    private = [tmp_path / "a/store", tmp_path / "b", tmp_path / "a/missing"]

    assert readable.unreadable(private, [tmp_path / "a"]) == (tmp_path / "a/store",)
    assert readable.unreadable(private, [tmp_path / "b"]) == (tmp_path / "b",)
    assert readable.unreadable(private, [Path("/usr")]) == ()


def test_secrets_are_what_others_may_not_read(tmp_path: Path) -> None:
    """Files, and directories as a whole; links are not followed."""
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "open/key").touch(mode=0o600)
    (tmp_path / "open/cert").touch()
    (tmp_path / "open/cert").chmod(0o644)
    (tmp_path / "link").symlink_to(tmp_path / "closed")

    assert set(readable._secrets(tmp_path)) == {tmp_path / "closed", tmp_path / "open/key"}


def test_a_tree_is_given_without_what_is_hidden_in_it(tmp_path: Path) -> None:
    """Landlock knows no exceptions: the pieces beside it are given, of the directories above it the names alone."""
    for name in ("a/b/hidden", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/b/file").touch()
    (tmp_path / "a/link").symlink_to(tmp_path / "a/b/hidden")
    hidden = [tmp_path / "a/b/hidden", tmp_path / "elsewhere"]

    found = {str(path.relative_to(tmp_path)): whole for path, whole in _spared(tmp_path, hidden)}

    assert found == {".": False, "a": False, "a/b": False, "a/b/file": True, "a/c": True, "d": True}
    assert list(_spared(tmp_path / "d", hidden)) == [(tmp_path / "d", True)]
    assert list(_spared(tmp_path / "a/b/hidden", hidden)) == []


def test_a_command_gets_no_environment_but_the_usual(tmp_path: Path) -> None:
    """No key by whatever name, a home and a place for temporary files of its own; more only by name."""
    given = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/root", "TMPDIR": "/tmp", "SSH_AUTH_SOCK": "/run/agent",
             "GITHUB_TOKEN": "x", "XDG_DATA_HOME": "/x", "GOALMODE_IDEMPOTENCY_KEY": "k", "MINE": "m"}  # fmt: skip
    made = Confined(
        SandboxMode.BWRAP, tmp_path, network=True, read=(), env=("MINE",), private=(), path="", home=tmp_path
    )
    got = made.environment(given)
    made.close()

    assert got.keys() == {"PATH", "LC_ALL", "HOME", "TMPDIR", "GOALMODE_IDEMPOTENCY_KEY", "MINE"}
    assert got["HOME"] != "/root"
    assert not [name for name in USUAL if any(word in name for word in ("TOKEN", "SECRET", "PASS", "AUTH"))]


def test_without_a_sandbox_a_command_is_as_it_ever_was(tmp_path: Path) -> None:
    """Nothing is made, nothing taken away."""
    made = Sandbox(tmp_path).confinement()

    assert made is FREE
    assert made.environment({"A": "b"}) == {"A": "b"}


def test_what_is_left_open_is_told_of_each_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Landlock more than of bubblewrap, and more on an older kernel."""
    monkeypatch.setattr(landlock, "abi", lambda: landlock.SCOPED_ABI)
    told = [gaps(mode) for mode in (SandboxMode.BWRAP, SandboxMode.LANDLOCK)]
    monkeypatch.setattr(landlock, "abi", lambda: landlock.MIN_ABI)
    told.append(gaps(SandboxMode.LANDLOCK))

    assert [len(lines) for lines in told] == [1, 3, 4]
    assert "signals" in told[2][-1]
    assert gaps(SandboxMode.BWRAP, network=False) == ()


@pytest.mark.parametrize(("abi", "told"), [(0, "no Landlock"), (1, "is version 1"), (2, "is version 2")])
def test_an_older_landlock_is_none(abi: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its third version files outside could be emptied."""
    monkeypatch.setattr(landlock, "abi", lambda: abi)

    assert told in landlock.problem.__wrapped__()


def test_bubblewrap_is_not_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory on it may be the agent's to write."""
    planted = tmp_path / "bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(planted.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert bwrap._found.__wrapped__() != str(planted)


def test_a_bubblewrap_that_does_not_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that forbids namespaces: its own words are told."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bwrap, "_found", lambda: str(broken))

    assert "No permissions to create new namespace" in bwrap.problem.__wrapped__(network=True)
    monkeypatch.setattr(bwrap, "_found", lambda: None)
    assert "not installed" in bwrap.problem.__wrapped__(network=True)


def test_root_keeps_no_capability_beyond_files() -> None:
    """Nothing with which signals, mounts, devices, traces, handles or raw sockets come within reach."""
    assert set(capabilities.KEPT.values()) == {0, 1, 3, 4, 6, 7}


def test_auto_is_what_is_configured_where_nothing_is() -> None:
    """And this suite runs with none, whatever works here."""
    assert SandboxSettings().mode == AUTO
    assert os.environ["GOALMODE_SANDBOX"] == "none"
    assert sandbox.choose("none") is SandboxMode.NONE
