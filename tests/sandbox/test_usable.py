"""What still works in a sandbox, with bubblewrap and with Landlock: it must not get in the way of honest work."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from goalmode.domain.sandbox import SandboxMode
from tests.sandbox.conftest import SECRET, Cage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pwd", "{workspace}\n"),
        ("mkdir -p a/b && echo x > a/b/c && mv a/b/c d && ln d e && cat e && rm -r a d e", "x\n"),
        ("cat <<E\nhere\nE", "here\n"),
        ("echo in | tee >(cat) > /dev/null; sleep 0.05", "in\n"),
        ("echo x > /dev/null && head -c 2 /dev/zero | wc -c", "2\n"),
        ("echo out > /dev/stdout; echo err > /dev/stderr", "out\nerr\n"),
        ('f=$(mktemp) && echo x > "$f" && cat "$f"', "x\n"),
        ("echo kept > $TMPDIR/kept; echo kept > ~/kept", ""),
        ("cat $TMPDIR/kept ~/kept", "kept\nkept\n"),
        ("echo $GOALMODE_IDEMPOTENCY_KEY$LC_ALL$MY_TOKEN", "C.UTF-8\n"),
        ("getent hosts localhost > /dev/null; grep -c localhost /etc/hosts > /dev/null; test -r /etc/resolv.conf", ""),
        ("python3 -c 'import ssl, json; print(1)'", "1\n"),
        ("test -w . && test -x /usr/bin/env && nproc > /dev/null", ""),
        ("kill -0 $$; sleep 60 & kill %1; wait %1; echo $?", "143\n"),
    ],
)  # fmt: skip
def test_a_shell_works(cage: Cage, command: str, output: str) -> None:
    """Files, pipes, here-documents, temporary files that stay from call to call, jobs, Python, a name to look up."""
    ran = cage.run(f"export LC_ALL=C.UTF-8; {command}")

    assert (ran.exit_code, ran.output) == (0, output.format(workspace=cage.workspace))


def test_git_works(cage: Cage) -> None:
    """A repository is made, committed to, branched and cloned in the workspace."""
    who = "-c user.name=a -c user.email=a@b"
    ran = cage.run(
        f"git init -q r && cd r && echo 1 > f && git add f && git {who} commit -qm one && git checkout -qb b && "
        f"git {who} commit -q --allow-empty -m two && git gc -q && cd .. && git clone -q r s && "
        "git -C s log --format=%s"
    )

    assert (ran.exit_code, ran.output) == (0, "two\none\n"), ran.output


def test_a_virtual_environment_works(cage: Cage) -> None:
    """Made by the Python that runs goalmode, and by the one that is on the PATH."""
    for python in (f"'{sys.executable}'", "python3"):
        made = f"{python} -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'; rm -r v"
        assert cage.run(made).output == f"{cage.workspace}/v\n"


def test_a_server_on_this_machine_is_reached(cage: Cage) -> None:
    """Tests of programs that talk to themselves over loopback work."""
    ran = cage.python(
        "import socket, threading\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: s.accept()[0].send(b'hello')).start()\n"
        "print(socket.create_connection(s.getsockname()).recv(5).decode())"
    )

    assert ran.output == "hello\n"


def test_without_a_network_it_still_has_a_loopback_of_its_own(tmp_path: Path, mode: SandboxMode) -> None:
    """A program can talk to itself where nothing else can be reached."""
    if mode is not SandboxMode.BWRAP:
        pytest.skip("only bwrap can keep the network away")
    cage = Cage(tmp_path, mode, network=False)
    try:
        test_a_server_on_this_machine_is_reached(cage)
    finally:
        cage.close()


def test_tools_of_the_home_directory_work(
    tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on the PATH, and what it belongs to; and what is configured: where it was, and in the home it sees."""
    home = tmp_path / "home"
    for place in (".tools/shims", ".cargo/bin", "go/bin", ".rustup"):
        (home / place).mkdir(parents=True)
    program = '#!/bin/sh\ncat "$(dirname "$0")/../library" && cat ~/.rustup/toolchain\n'
    for name, place in (("shimmed", ".tools/shims"), ("going", "go/bin")):
        (home / place / name).write_text(program)
        (home / place / name).chmod(0o755)
        (home / place).parent.joinpath("library").write_text("library ")
    (home / ".cargo/credentials.toml").write_text(SECRET)
    (home / ".rustup/toolchain").write_text("toolchain\n")
    places = [str(home / place) for place in (".tools/shims", ".cargo/bin", "go/bin")]
    monkeypatch.setenv("PATH", os.pathsep.join([*places, os.environ["PATH"]]))
    cage = Cage(tmp_path, mode, read=(str(home / ".rustup"),))
    ran = [
        cage.run(c)
        for c in ("shimmed", "going", f"cat {home}/.cargo/credentials.toml", "echo x > ~/.rustup/y")
    ]
    cage.close()

    assert [r.output for r in ran[:2]] == ["library toolchain\n"] * 2
    assert SECRET not in ran[2].output
    assert not (home / ".rustup/y").exists()


def test_a_variable_that_is_configured_is_given(tmp_path: Path, mode: SandboxMode) -> None:
    """`[sandbox] env`: by name, and no other."""
    cage = Cage(tmp_path, mode, env=("MY_TOKEN",))
    ran = cage.run("echo $MY_TOKEN $AWS_SECRET_ACCESS_KEY")
    cage.close()

    assert ran.output == f"{SECRET}\n"


def test_a_store_within_what_may_be_read_is_not(tmp_path: Path, mode: SandboxMode) -> None:
    """A directory that is read as a whole, without the store and the configuration in it."""
    outer = tmp_path / "home/outer"
    outer.mkdir(parents=True)
    (outer / "readable").write_text("readable")
    cage = Cage(tmp_path, mode, read=(str(outer),), store_in="outer/store")
    (outer / "store/beside").write_text(SECRET)
    ran = cage.run(f"cat {outer}/readable {outer}/store/*; ls {outer}/store/; echo x > {outer}/store/x")
    cage.close()

    assert "readable" in ran.output
    assert SECRET not in ran.output
    assert "SQLite" not in ran.output
    assert not (outer / "store/x").exists()


def test_nothing_is_left_behind(tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The private directory is made for the first command and goes with the sandbox, whatever was put there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    cage = Cage(tmp_path / "cage", mode)
    assert set(tmp_path.iterdir()) - before == {tmp_path / "cage"}
    cage.run("mkdir -p $TMPDIR/a/b; ln -s / $TMPDIR/root; chmod 500 $TMPDIR/a; cd /tmp; touch x")
    assert len(set(tmp_path.iterdir()) - before) == 2
    cage.close()

    assert set(tmp_path.iterdir()) - before == {tmp_path / "cage"}
    assert Path("/usr").is_dir()
