"""A directory and a file that are swapped for links as fast as another process can: nothing is led out."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.errors import BadInput
from goalmode.tools import beneath
from goalmode.tools.paths import PathError, Workspace

SECRET = b"outside"
WAYS = ("read", "written", "refused")
"""All of them come out where there was a race."""

SWAPPER = """
import ctypes, os, sys
exchange = ctypes.CDLL(None).renameat2
os.chdir(sys.argv[1])
pairs = [(b"d", b"d-link"), (b"f", b"f-link")]
print("ready", flush=True)
while os.getppid() == int(sys.argv[2]):
    for one, other in pairs:
        exchange(-100, one, -100, other, 2)
"""


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Workspace]:
    """`d` is now a directory and now a link to one outside; `f` is now a file and now a link to one outside."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for directory in (outside, inside / "d"):
        directory.mkdir(parents=True)
        (directory / "f").write_bytes(SECRET if directory == outside else b"inside")
    (inside / "f").write_bytes(b"inside")
    (inside / "d-link").symlink_to(outside)
    (inside / "f-link").symlink_to(outside / "f")
    command = [sys.executable, "-S", "-E", "-c", SWAPPER, str(inside), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        yield Workspace(inside)
        swapper.kill()


def race(jail: Workspace, tries: int) -> Counter[str]:
    """Read and write through what is swapped, so often at least and until there was a race; how each of them came out.

    Whoever swaps may not have had the processor for a while.
    """
    seen: Counter[str] = Counter()
    end = time.monotonic() + 60
    for number in itertools.count():
        if number >= tries and (min(seen[way] for way in WAYS) or time.monotonic() > end):
            return seen
        path = ("d/f", "f")[number % 2]
        try:
            if number % 16 < 14:
                with jail.open(path) as file:
                    seen["led out" if file.read() == SECRET else "read"] += 1
            else:
                jail.write(f"{path}-new" if path == "d/f" else path, b"written")
                seen["written"] += 1
        except (PathError, BadInput):
            seen["refused"] += 1
    raise AssertionError


def assert_kept(jail: Workspace, seen: Counter[str]) -> None:
    outside = jail.root.parent / "outside"
    assert seen["led out"] == 0
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"f": SECRET}
    assert min(seen[way] for way in WAYS) > 0, f"there was no race: {seen}"


@pytest.mark.parametrize("how", ["openat2", "walk"])
@pytest.mark.parametrize("tries", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_swapped_link_leads_nowhere(
    swapped: Workspace, how: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel's own resolution where it has one, and by the walk that stands in for it."""
    if how == "walk":
        monkeypatch.setattr(beneath, "enter", lambda root, path: None)
    else:
        _must_have_openat2(swapped.root)

    assert_kept(swapped, race(swapped, tries))


def _must_have_openat2(directory: Path) -> None:
    root = os.open(directory, os.O_RDONLY)
    found = [beneath.enter(root, ".") for _ in range(100)]
    for descriptor in (root, *found):
        if descriptor is not None:
            os.close(descriptor)
    if not any(found):
        pytest.skip("this kernel has no openat2")
