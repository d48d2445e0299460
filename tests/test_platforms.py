"""Where goalmode cannot run it says so in one line. Windows itself is not to be had here: it is played."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from goalmode.platforms import POSIX_ONLY
from goalmode.reflect import module

PLAYED = """
import os, runpy, sys
sys.modules["fcntl"] = None
for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "killpg", "getpgid", "setsid", "fchmod"):
    delattr(os, name)
import goalmode.platforms
goalmode.platforms.os = type("nt", (), {"name": "nt"})
"""
"""What Windows lacks is missing; the rest of Python is as it is here."""

COMMAND = "from goalmode.cli.main import main; main()"
REFLECT = f"runpy.run_path({str(Path(module.__file__))!r})"


@pytest.mark.parametrize("started", [COMMAND, REFLECT])
def test_windows_is_refused_in_one_line(started: str) -> None:
    """By the command line, and by the file that GenericAgent loads there; no traceback of a missing module."""
    done = subprocess.run(
        [sys.executable, "-c", PLAYED + started, "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"goalmode: {POSIX_ONLY}\n"
