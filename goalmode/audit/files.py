"""Which files are looked at: sources of the three languages, without tests, vendored code and what is outside."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST = 1 << 20
"""Bytes; a longer file is named and not looked at. No source that somebody maintains by hand is as long."""

PYTHON = frozenset([".py", ".pyi"])
SCRIPT = frozenset([".ts", ".mts", ".cts", ".tsx", ".js", ".jsx", ".mjs", ".cjs"])

_VENDORED = frozenset(
    [
        *(
            ".venv",
            "venv",
            "node_modules",
            "bower_components",
            "site-packages",
            "vendor",
            "third_party",
            "__pycache__",
        ),
        *(
            "dist",
            "build",
            "out",
            "target",
            "coverage",
            ".git",
            ".hg",
            ".svn",
            ".tox",
            ".nox",
            ".next",
            ".cache",
        ),
    ]
)
_TEST_DIRS = frozenset(
    [
        *(
            "test",
            "tests",
            "__tests__",
            "spec",
            "specs",
            "e2e",
            "testdata",
            "test_data",
            "__mocks__",
            "mocks",
        ),
        *("fixture", "fixtures", "__fixtures__", "__snapshots__"),
    ]
)
_TEST_FILE = re.compile(r"test_.*|.*_test|conftest|.*[.-](?:test|tests|spec|stories|fixture|mock)s?")
_MINIFIED = re.compile(r"[.-](?:min|bundle)$")


@dataclass(frozen=True, slots=True)
class Place:
    """A file that the walk met. `shown` is its path as the user would write it.

    `problem`: it is a directory that cannot be read, and why.
    """

    path: Path
    shown: str
    is_test: bool = False
    is_link: bool = False
    problem: str = ""


def walk(roots: Sequence[Path]) -> Iterator[Place]:
    """The source files under the roots, each once, in the order of their names.

    What is named is looked at, also if it is a test; under a root, paths count relative to it. Symbolic links under a
    root are met but never followed: what they lead to is met where it is, or is outside.
    """
    seen: set[Path] = set()
    for root in roots:
        for place in _under(root) if root.is_dir() else [Place(root, str(root))]:
            real = place.path if place.is_link else place.path.resolve()
            if real not in seen:
                seen.add(real)
                yield place


def _under(root: Path) -> Iterator[Place]:
    shut: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=shut.append, followlinks=False):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        yield from (Place(here / name, str(here / name), is_link=True) for name in links)
        kept = {name for name in folders if name not in links and not _is_vendored(here / name)}
        folders[:] = sorted(kept)
        for name in sorted(files):
            path = here / name
            if path.suffix.lower() not in PYTHON | SCRIPT or _MINIFIED.search(path.stem):
                continue
            yield Place(path, str(path), _is_test(path.relative_to(root)), path.is_symlink())
    for error in shut:
        yield Place(Path(error.filename), str(error.filename), problem=error.strerror or "unknown")


def _is_vendored(folder: Path) -> bool:
    return folder.name in _VENDORED or folder.name.endswith(".egg-info") or (folder / "pyvenv.cfg").is_file()


def _is_test(path: Path) -> bool:
    """By its path relative to the root: `tests/a.py` is one, a root called `tests` makes none."""
    return bool(
        _TEST_DIRS & {part.lower() for part in path.parts[:-1]} or _TEST_FILE.fullmatch(path.stem.lower())
    )


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        ValueError: it is no regular file, too long, not UTF-8, or written by a program; the message says which.
        OSError: it cannot be read.
    """
    # Opened without waiting: a pipe in the tree has nobody at its other end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("is no regular file")
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise ValueError(f"is longer than {MOST:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from None
    if path.suffix.lower() in SCRIPT and len(text) > 20_000 and text.count("\n") < len(text) / 500:
        raise ValueError("is minified")
    return text
