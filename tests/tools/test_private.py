"""The private directory: its user's alone, gone afterwards, and not left behind for long by who was killed."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from goalmode.tools import private
from goalmode.tools.private import private_directory


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(directory: Path) -> None:
    os.utime(directory, (1, 1))


def test_it_is_its_users_alone_and_gone_afterwards(place: Path) -> None:
    """With all that is in it: links are not followed, and what may not be written is removed too."""
    (place / "kept").mkdir()
    with private_directory() as own:
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        (own / "link").symlink_to(place / "kept")
        (own / "modules/a").mkdir(parents=True)
        (own / "modules").chmod(0o500)

    assert [path.name for path in place.iterdir()] == ["kept"]


def test_what_a_killed_process_left_is_removed_and_nothing_else(place: Path) -> None:
    """Not one that somebody holds, not one that was made just now, nothing of another name."""
    killed, young, other = (
        place / f"goalmode-{name}" for name in ("sandbox-killed", "sandbox-young", "other")
    )
    for path in (killed, young, other):
        path.mkdir()
        (path / "x").touch()
    age(killed)
    age(other)
    with private_directory() as held:
        age(held)
        assert not killed.exists()
        with private_directory():
            assert held.exists()

    assert {path.name for path in place.iterdir()} == {young.name, other.name}


def test_a_link_in_its_place_is_not_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may put one there: what it points to stays."""
    monkeypatch.setattr(private, "_NEW_SECONDS", -1)
    (place / "kept").mkdir()
    (place / "goalmode-sandbox-link").symlink_to(place / "kept")
    with private_directory():
        pass

    assert (place / "kept").is_dir()
