"""The workspace jail: which paths are inside, and reading and writing that cannot be led out.

The kernel resolves a path's directories where it can (`goalmode.tools.beneath`). Else, and where it refuses, each part
is opened in the descriptor of the directory before it, never following a link by itself; each symbolic link is read and
resolved by hand. So nothing outside is opened, created or even asked for, and swapping a directory for a link meanwhile
changes nothing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from goalmode.domain.snapshot import Observed
from goalmode.domain.text import one_line, same_name
from goalmode.errors import BadInput, ToolError
from goalmode.tools import beneath
from goalmode.tools.foreign import refuse_foreign

MAX_LINKS = 40
"""Symbolic links followed on one path, as in the kernel."""

MAX_LEVELS = 128
"""Directories between the root and a file: each is an open descriptor while a path is walked."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is opened; never through a link."""

_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20

_SURROGATE = re.compile("[\ud800-\udfff]")
_OUTSIDE = "outside the workspace"


class PathError(ToolError):
    """A path cannot be used. `problem` is the cause without the path, `hint` what may help."""

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        self.path, self.problem, self.hint = path, problem, hint
        super().__init__(f"{one_line(path, 300)}: {problem}" + (f" ({hint})" if hint else ""))


class Missing(PathError):
    """There is nothing at the path."""


class Workspace:
    """The directory a goal works in. All paths taken and given are relative to it; an absolute one inside is too.

    Args:
        root: may be relative, or a symbolic link.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        given = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow the link, whose name counts too
        self._roots = tuple({root.parts[1:]: None for root in (self.root, given)})

    def normalise(self, path: str) -> str:
        """`path` in its one clean form: relative, without `.` and `..` parts. The file system is not asked.

        Raises:
            BadInput: it is empty, leads out, or is not a plain path. The message names the cause.
        """
        if "\x00" in path:
            raise BadInput("path", path, "it holds a NUL character")
        if _SURROGATE.search(path):
            raise BadInput("path", path, "it holds half a surrogate pair")
        refuse_foreign(path, path)
        relative = self._below_root(path) if path.startswith("/") else path
        if relative is None:
            raise BadInput("path", path, f"it is {_OUTSIDE}")
        parts: list[str] = []
        for part in relative.split("/"):
            if part == "..":
                if not parts:
                    raise BadInput("path", path, "`..` leads out of the workspace")
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        clean = "/".join(parts) or "."
        refuse_foreign(clean, path)
        return clean

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A regular file, opened for reading.

        Raises:
            BadInput, PathError: there is no such file inside the workspace.
        """
        with _told(path), self._place(self.normalise(path)) as (directory, name):
            try:
                _must_be_file(os.stat(name, dir_fd=directory, follow_symlinks=False), path)
                descriptor = os.open(name, _FILE, dir_fd=directory)
            except FileNotFoundError:
                raise Missing(path, "no such file", _twin(directory, name)) from None
            with os.fdopen(descriptor, "rb") as file:
                _must_be_file(os.fstat(descriptor), path)
                yield file

    def write(self, path: str, data: bytes) -> bool:
        """Replace or create a file as a whole; its directories are made. Returns whether it was there before.

        An old file's mode is kept. A link to another place inside is followed, and stays a link.

        Raises:
            BadInput, PathError: it cannot be written inside the workspace; an old file is as it was.
        """
        with _told(path), self._place(self.normalise(path), create=True) as (directory, name):
            mode = None
            with suppress(FileNotFoundError):
                old = os.stat(name, dir_fd=directory, follow_symlinks=False)
                _must_be_file(old, path)
                mode = stat.S_IMODE(old.st_mode) & 0o777
            temporary = f".goalmode-{secrets.token_hex(8)}.tmp"
            descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=directory)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                raise
            return mode is not None

    def observe(self, path: str) -> Observed:
        """What is at a path just now, never an error. Whatever does not count as a file is told as absent."""
        try:
            with self.open(path) as file:
                size, sha256 = measure(file)
        except Missing as missing:
            return Observed(path, False, hint=missing.hint)
        except PathError as error:
            return Observed(path, False, problem=error.problem, hint=error.hint)
        except BadInput as error:
            return Observed(path, False, problem=error.expected)
        return Observed(path, True, size, sha256)

    @contextmanager
    def open_directory(self, path: str) -> Iterator[int]:
        """A directory's descriptor.

        Raises:
            BadInput, PathError: there is no such directory inside the workspace.
        """
        with _told(path), self._place(self.normalise(path)) as (directory, name):
            try:
                descriptor = os.open(name, DIRECTORY, dir_fd=directory)
            except FileNotFoundError:
                raise Missing(path, "no such directory", _twin(directory, name)) from None
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _below_root(self, path: str) -> str | None:
        """An absolute path relative to the root, by its text; None if it is not below."""
        parts = tuple(part for part in path.split("/") if part not in ("", "."))
        for root in self._roots:
            if parts[: len(root)] == root:
                return "/".join(parts[len(root) :]) or "."
        return None

    @contextmanager
    def _place(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The opened directory that holds the path's last part, and that part: no link when it was looked at."""
        try:
            trail = [os.open(self.root, DIRECTORY)]
        except FileNotFoundError:
            raise PathError(path, "the workspace itself is not there") from None
        try:
            yield self._jump(trail, path) or self._descend(trail, path, create)
        finally:
            for descriptor in trail:
                os.close(descriptor)

    def _jump(self, trail: list[int], path: str) -> tuple[int, str] | None:
        """The same in one step, if the kernel can take it and the last part is no link."""
        directory, _, name = path.rpartition("/")
        entered = beneath.enter(trail[-1], directory or ".")
        if entered is None:
            return None
        trail.append(entered)
        if _link_target(name, entered) is None:
            return entered, name
        os.close(trail.pop())
        return None

    def _descend(self, trail: list[int], path: str, create: bool) -> tuple[int, str]:
        """`trail` holds the opened directories from the root to where we are; `..` of a link's target goes back."""
        todo = deque(path.split("/"))
        links = 0
        while todo:
            part = todo.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if len(trail) == 1:
                    raise PathError(path, _OUTSIDE)
                os.close(trail.pop())
                continue
            target = _link_target(part, trail[-1])
            if target is None:
                if not todo:
                    return trail[-1], part
                if len(trail) > MAX_LEVELS:
                    raise PathError(path, f"more than {MAX_LEVELS} directories deep")
                trail.append(_enter(part, trail[-1], path, create))
                continue
            links += 1
            if links > MAX_LINKS:
                raise PathError(path, "too many symbolic links")
            if target.startswith("/"):
                inside = self._below_root(target)
                if inside is None:
                    raise PathError(path, _OUTSIDE)
                target = inside
                while len(trail) > 1:
                    os.close(trail.pop())
            todo.extendleft(reversed(target.split("/")))
        return trail[-1], "."


@contextmanager
def _told(path: str) -> Iterator[None]:
    """The system's errors as answers about `path`."""
    try:
        yield
    except OSError as error:
        swapped = error.errno == errno.ELOOP
        problem = "changed while it was opened" if swapped else error.strerror or "cannot be used"
        raise PathError(path, problem) from error


def _link_target(name: str, directory: int) -> str | None:
    """Where a symbolic link points; None if it is no link, or is not there."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _enter(name: str, directory: int, path: str, create: bool) -> int:
    try:
        return os.open(name, DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        if not create:
            raise Missing(path, "no such file or directory", _twin(directory, name)) from None
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    return os.open(name, DIRECTORY, dir_fd=directory)


def _must_be_file(info: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(info.st_mode):
        kind = "a directory" if stat.S_ISDIR(info.st_mode) else "a pipe, socket or device"
        raise PathError(path, f"{kind}, not a file")


def _twin(directory: int, name: str) -> str:
    """A hint at a name that looks the same but is composed of other characters."""
    if name.isascii():
        return ""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name != name and same_name(entry.name, name):
                form = "NFC" if unicodedata.is_normalized("NFC", entry.name) else "NFD"
                return f"a file with the same normalised name exists, spelled in {form}: {one_line(entry.name, 200)}"
    return ""


def measure(file: BinaryIO) -> tuple[int, str]:
    """Bytes and SHA-256, of what was there when it was opened: a file that grows meanwhile has an end."""
    left = os.fstat(file.fileno()).st_size
    size, digest = 0, hashlib.sha256()
    while left > 0 and (data := file.read(min(_CHUNK, left))):
        digest.update(data)
        size += len(data)
        left -= len(data)
    return size, digest.hexdigest()
