"""bubblewrap: a command in namespaces of its own, where what it is not given is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from goalmode.tools.capabilities import KEPT

PROBE_SECONDS = 10

_OF_ROOT = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""In /proc what belongs to root, capabilities or not, and is of the whole machine."""

_ALWAYS = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")


@cache
def problem(*, network: bool = True) -> str:
    """Why it cannot be used here, empty if it can. It is tried: containers and kernels may forbid namespaces."""
    found = _found()
    if found is None:
        return "bwrap is not installed (Debian's package bubblewrap)"
    system = [Path(path) for path in ("/usr", "/bin", "/lib", "/lib64", "/nix")]
    command = [*start_of(network=network), *view(system), b"--", b"/bin/sh", b"-c", b"exit 0"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found} does not run here: {error}"
    said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if done.returncode == 0 else f"{found} does not run here: {said or done.returncode}"


def start_of(*, network: bool) -> list[bytes]:
    """The command line up to what is seen: processes, message queues and perhaps the network are its own.

    It ends with us, and all that it started with it: no process can leave its process namespace.
    """
    kept = [word for name in KEPT for word in ("--cap-add", name)] if os.geteuid() == 0 else []
    words = [_found() or "bwrap", *_ALWAYS, *kept, *(() if network else ("--unshare-net",))]
    return [os.fsencode(word) for word in words]


def view(
    read: Iterable[Path],
    write: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    temporary: Path | None = None,
) -> list[bytes]:
    """The words for what is seen: devices and processes of its own, and of the files these.

    Args:
        hidden: files and directories below those to read that are seen empty.
        temporary: what is seen as /tmp.
    """
    words: list[str | Path] = ["--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        for path in (Path("/proc", name) for name in _OF_ROOT):
            words += ["--ro-bind-try", path, path]
    words += [] if temporary is None else ["--bind", temporary, "/tmp"]  # First: the others may lie there.
    for path in sorted(read):
        words += ["--ro-bind-try", path, path]
    for path in hidden:
        words += (
            ["--tmpfs", path, "--remount-ro", path] if path.is_dir() else ["--ro-bind", "/dev/null", path]
        )
    for path in write:
        words += ["--bind", path, path]
    return [os.fsencode(word) for word in (*words, "--remount-ro", "/")]


@cache
def _found() -> str | None:
    # Not by $PATH, on which a directory may stand that the agent writes.
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")
