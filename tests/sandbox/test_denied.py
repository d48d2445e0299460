"""What a command in a sandbox must not do, tried: with bubblewrap and with Landlock, each where it works."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from goalmode.domain.sandbox import SandboxMode
from goalmode.state import goals
from goalmode.state.locks import started
from goalmode.tools import landlock
from tests.sandbox.conftest import SECRET, Cage, missing

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    "command",
    [
        "echo x > '{outside}/new'",
        "echo x >> '{outside}/file'",
        "rm '{outside}/file'",
        "mv '{outside}/file' here",
        "ln '{outside}/file' here && echo x >> here",
        "ln -s '{outside}/file' here && echo x >> here",
        "mkdir '{outside}/sub'",
        "mkfifo '{outside}/pipe'",
        "truncate -s 0 '{outside}/file'",
        "cp /bin/true '{outside}/file'",
        "echo x > /etc/goalmode-was-here",
        "echo x > /usr/goalmode-was-here",
        "echo x > /goalmode-was-here",
        "echo x > /dev/goalmode-was-here && ls /dev/goalmode-was-here && false",
        "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname",
        "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
        "for f in /proc/irq/*/smp_affinity; do cat $f > $f && exit 0; done; exit 1",
        "echo h > /proc/sysrq-trigger",
    ],
)
def test_nothing_outside_is_written(cage: Cage, command: str) -> None:
    """Whatever the way: created, changed, emptied, linked, moved, removed."""
    outside = cage.home / "other"
    ran = cage.run(command.format(outside=outside))

    assert ran.exit_code != 0
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"file": SECRET}
    assert [root for root in ("/etc", "/usr", "/", "/dev") if Path(root, "goalmode-was-here").exists()] == []


@pytest.mark.parametrize(
    "command",
    [
        "cat '{home}/.ssh/id_ed25519'",
        "cat '{home}/.netrc'",
        "ls -A '{home}' | grep ssh",
        "cat '{home}/other/file'",
        "cat '{home}/store/goals.sqlite'",
        "ls '{home}/store' | grep goals",
        "cat '{home}/store/goals.sqlite-locks/'*",
        "cat '{home}/.config/goalmode/goalmode.toml'",
        "ln -s '{home}/.netrc' link && cat link",
        "cat /proc/self/root'{home}/.netrc'",
        "cat '/proc/{host}/root{home}/.netrc'",
        "cat '/proc/{host}/cwd/pyproject.toml'",
        "cat ~/.netrc",
        "cat ~/.ssh/id_ed25519",
    ],
)
def test_neither_keys_nor_the_store_are_read(cage: Cage, command: str) -> None:
    """Files of the home directory, the store, its locks, the configuration; also by a link, or through /proc."""
    ran = cage.run(command.format(home=cage.home, host=os.getpid()))

    assert ran.exit_code != 0
    assert SECRET not in ran.output


@pytest.mark.parametrize("act", ["kill -0", "kill -TERM", "kill -KILL", "kill -STOP"])
@pytest.mark.parametrize("whom", ["host", "bystander"])
def test_no_signal_reaches_another_process(
    cage: Cage, act: str, whom: str, bystander: subprocess.Popen[bytes]
) -> None:
    """Neither goalmode itself nor any other of the user's processes."""
    if cage.mode is SandboxMode.LANDLOCK and landlock.abi() < landlock.SCOPED_ABI:
        pytest.skip("this kernel's Landlock does not hold back signals (Linux 6.12 does)")
    pid = bystander.pid if whom == "bystander" else os.getpid()
    ran = cage.run(f"{act} {pid}")

    assert ran.exit_code != 0
    assert bystander.poll() is None
    assert Path(f"/proc/{bystander.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "SR"


def test_no_environment_but_its_own_is_seen(cage: Cage, bystander: subprocess.Popen[bytes]) -> None:
    """Neither by inheritance nor in /proc, of goalmode, of what stands between, or of any other process."""
    everybody = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done"
    ran = cage.run(f"env; {everybody}; cat /proc/{os.getpid()}/environ /proc/{bystander.pid}/environ")

    assert "PATH=" in ran.output
    assert SECRET not in ran.output


def test_no_memory_of_another_process_is_read(cage: Cage, bystander: subprocess.Popen[bytes]) -> None:
    """Nor is it traced."""
    for pid in (os.getpid(), bystander.pid):
        assert cage.run(f"head -c 1 /proc/{pid}/mem").exit_code != 0
        attach = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0)"
        assert cage.python(attach).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs none .",
        "mount -o remount,rw / && echo x > /goalmode-was-here",
        "umount /etc/shadow || umount /proc",
        "mknod device b 1 0",
        "mknod device c 1 1",
        "nsenter -t 1 -m true",
        "chroot . /bin/true",
    ],
)
def test_the_walls_cannot_be_taken_down(cage: Cage, command: str) -> None:
    """Not by root either."""
    assert cage.run(command).exit_code != 0
    assert not Path("/goalmode-was-here").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody but root could read them")
def test_root_reads_no_secrets_of_the_system(cage: Cage) -> None:
    """What other users may not read in /etc is not there for root's commands; the rest is."""
    ran = cage.run("cat /etc/shadow /etc/gshadow; cat /etc/ssl/private/*")

    assert "root:" not in ran.output
    assert cage.run("cat /etc/passwd").output.startswith("root:")


def test_the_lock_is_not_in_its_hands(cage: Cage) -> None:
    """A command cannot write into the lock file: who writes there names the processes that a new owner ends."""
    forged = '{"call": "forged"}'
    ran = cage.run(f"for fd in /proc/self/fd/*; do echo '{forged}' >> $fd; done; for n in 3 4 5 6 7 8 9 10 11 12; do "
                   f"eval \"echo '{forged}' >&$n\"; done")  # fmt: skip
    assert ran.exit_code is not None
    assert started(cage.store.lock_file(cage.goal.id, 1)) == {"call"}


def test_it_cannot_accept_for_a_person(tmp_path: Path, mode: SandboxMode) -> None:
    """`goalmode accept` runs inside, and finds no store there, with and without being told where it is."""
    cage = Cage(tmp_path, mode, read=(str(ROOT),))
    command = f"'{sys.executable}' -m goalmode"
    ran = [
        cage.run(f"{command} {words}")
        for words in (
            "--version",
            f"accept {cage.goal.uid} R1",
            f"accept {cage.goal.uid} R1 --store '{cage.store.path}'",
        )
    ]
    stored = goals.get(cage.store, cage.goal.id)
    cage.close()

    assert [result.exit_code for result in ran] == [0, 1, 1], ran
    assert "goalmode: no goal" in ran[1].output
    assert "goalmode: " in ran[2].output
    assert "Traceback" not in ran[2].output
    assert stored.requirements == cage.goal.requirements


def test_without_a_network_not_even_this_machine_answers(tmp_path: Path) -> None:
    """`--no-network`: neither TCP nor abstract sockets of this machine; with the network there is both."""
    why = missing(SandboxMode.BWRAP, network=False)
    if why:
        pytest.skip(why)
    connect = "import socket; socket.create_connection(('127.0.0.1', {port}), 3).send(b'x')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for network, code in ((True, 0), (False, 1)):
            cage = Cage(tmp_path / str(network), SandboxMode.BWRAP, network)
            ran = cage.python(connect.format(port=port))
            cage.close()
            assert ran.exit_code == code, ran.output


def test_abstract_sockets_are_out_of_reach_of_landlock(tmp_path: Path) -> None:
    """From Linux 6.12 on; a desktop listens there."""
    if missing(SandboxMode.LANDLOCK) or landlock.abi() < landlock.SCOPED_ABI:
        pytest.skip("needs Landlock of Linux 6.12")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0goalmode-test-{os.getpid()}")
        server.listen()
        cage = Cage(tmp_path, SandboxMode.LANDLOCK)
        name = f"\\0goalmode-test-{os.getpid()}"
        ran = cage.python(f"import socket; socket.socket(socket.AF_UNIX).connect('{name}')")
        cage.close()

    assert "PermissionError" in ran.output
