"""`read_file`, `write_file`, `edit_file`, `list_files`: the workspace's files, never one outside of it.

A read that is cancelled is left to itself. A write is small and is waited for: it must not land
after its call has ended.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, BinaryIO

from anyio import to_thread

from goalmode.domain.text import safe, sendable
from goalmode.domain.work import StatePatch
from goalmode.errors import ToolError
from goalmode.tools.listing import Entry, Kind, entries
from goalmode.tools.paths import Workspace, measure
from goalmode.tools.record import SHOWN
from goalmode.tools.registry import ToolContext, ToolOutput, tool
from goalmode.tools.surrogates import well_formed
from goalmode.tools.thread import in_daemon_thread

PAGE = SHOWN - 1_000
"""Characters of one page of a file, so that the model sees all of it and knows where to go on."""

MAX_EDIT = 10_000_000
"""Bytes of the largest file that `edit_file` takes."""

MAX_HASHED = 64_000_000
"""Bytes of the largest binary file whose hash is told."""

MAX_NOTED = 1_000
"""Characters of the longest path of a written file that is remembered."""

MAX_ENTRIES = 500
MAX_LIST_DEPTH = 10
DEPTH = 2
_LOOKED_AT = 8_192
_CHUNK = 65_536

InWorkspace = Annotated[str, "Path in the workspace, relative to it."]


def _state_of_file(context: ToolContext, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    with Workspace(context.workspace).open(arguments["path"]) as file:
        info = os.fstat(file.fileno())
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _state_of_directory(context: ToolContext, arguments: Mapping[str, Any]) -> bytes:
    """Of everything that is listed: a directory's own time does not tell what changed below it."""
    found, more = _entries(context, arguments.get("path", "."), arguments.get("depth", DEPTH))
    state = [(e.path, e.kind.value, e.size, e.inode, e.mtime_ns) for e in found]
    return hashlib.sha256(ascii((state, more)).encode()).digest()


@tool(effect="read", cacheable=True, fingerprint=_state_of_file)
async def read_file(
    context: ToolContext,
    path: InWorkspace,
    offset: Annotated[int, "Lines to leave out at the start."] = 0,
    limit: Annotated[int, "Lines to read at most."] = 2_000,
) -> ToolOutput:
    """Read a text file of the workspace. A long file comes in pages: the result says with which offset to go on."""
    if offset < 0 or limit < 1:
        raise ToolError(f"read_file: offset must be 0 or more and limit 1 or more, not {offset} and {limit}")

    def read() -> str:
        with Workspace(context.workspace).open(path) as file:
            if b"\x00" in file.read(_LOOKED_AT):
                return _binary(file)
            file.seek(0)
            return _page(file, offset, limit)

    return ToolOutput(await in_daemon_thread(read))


@tool(effect="write")
async def write_file(
    context: ToolContext,
    path: InWorkspace,
    content: Annotated[str, "The whole new content; stored as UTF-8."],
) -> ToolOutput:
    """Create a file in the workspace or replace all of it. Missing directories are made."""
    data = well_formed(content, "write_file: content").encode()
    workspace = Workspace(context.workspace)
    replaced = await to_thread.run_sync(workspace.write, path, data)
    told = f"{'replaced' if replaced else 'created'} {safe(workspace.normalise(path))}: {len(data)} bytes"
    return ToolOutput(told, patch=_written(workspace.normalise(path), data))


@tool(effect="write")
async def edit_file(
    context: ToolContext,
    path: InWorkspace,
    old: Annotated[str, "Text to replace; must occur exactly once, so take in enough of what is around it."],
    new: Annotated[str, "What stands there afterwards."],
) -> ToolOutput:
    """Replace one piece of text in a UTF-8 file of the workspace."""
    old, new = well_formed(old, "edit_file: old"), well_formed(new, "edit_file: new")
    if not old:
        raise ToolError("edit_file: old is empty; use write_file for a new file")
    if old == new:
        raise ToolError("edit_file: old and new are the same")

    def edit() -> ToolOutput:
        workspace = Workspace(context.workspace)
        with workspace.open(path) as file:
            data = file.read(MAX_EDIT + 1)
        if len(data) > MAX_EDIT:
            raise ToolError(f"edit_file: the file is larger than {MAX_EDIT} bytes; use shell")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"edit_file: the file is not UTF-8 (byte {error.start}); use shell") from error
        place = _only_place(text, old)
        changed = (text[:place] + new + text[place + len(old) :]).encode()
        workspace.write(path, changed)
        told = f"edited {safe(workspace.normalise(path))}, line {text.count(chr(10), 0, place) + 1}"
        return ToolOutput(told, patch=_written(workspace.normalise(path), changed))

    return await to_thread.run_sync(edit)


@tool(effect="read", cacheable=True, fingerprint=_state_of_directory)
async def list_files(
    context: ToolContext,
    path: InWorkspace = ".",
    depth: Annotated[int, f"Levels of directories, 1 to {MAX_LIST_DEPTH}."] = DEPTH,
) -> str:
    """List a directory of the workspace: directories end in /, links in @, files have their size in bytes."""
    found, more = await in_daemon_thread(partial(_entries, context, path, depth))
    lines = [_line(entry) for entry in found] or ["(empty)"]
    if more:
        lines.append(f"[only the first {MAX_ENTRIES} entries; list a directory below, or use less depth]")
    return "\n".join(lines)


def _entries(context: ToolContext, path: str, depth: int) -> tuple[tuple[Entry, ...], bool]:
    if not 1 <= depth <= MAX_LIST_DEPTH:
        raise ToolError(f"list_files: depth must be between 1 and {MAX_LIST_DEPTH}, not {depth}")
    return entries(Workspace(context.workspace), path, depth=depth, limit=MAX_ENTRIES)


def _line(entry: Entry) -> str:
    name = safe(entry.path).replace("\n", "\\n").replace("\t", "\\t")
    match entry.kind:
        case Kind.FILE:
            return f"{name}  {entry.size}"
        case Kind.DIRECTORY:
            return f"{name}/"
        case Kind.LINK:
            return f"{name}@"
        case Kind.OTHER:
            return f"{name}  (pipe, socket or device)"


def _written(path: str, data: bytes) -> StatePatch:
    """What the host notes of a file that it wrote. A path that cannot be stored as it is, or is very long, is not."""
    if len(path) > MAX_NOTED or sendable(path) != path:
        return StatePatch()
    return StatePatch(written=((path, hashlib.sha256(data).hexdigest()),))


def _binary(file: BinaryIO) -> str:
    file.seek(0)
    begin = file.read(16).hex(" ")
    size = os.fstat(file.fileno()).st_size
    told = f"binary file, {size} bytes, not shown\nbegins with: {begin}"
    if size > MAX_HASHED:
        return told
    file.seek(0)
    return f"{told}\nsha256: {measure(file)[1]}"


def _page(file: BinaryIO, offset: int, limit: int) -> str:
    """Up to `limit` whole lines from line `offset` on, as many as fit a page, and a last line on what is left out."""
    for _ in range(offset):
        if not _skip_line(file):
            return f"[the file has no line {offset + 1}]"
    lines: list[str] = []
    room = PAGE
    while len(lines) < limit:
        start = file.tell()
        line = file.readline(room * 4 + 1)
        text = line.decode("utf-8", "replace")
        if not line:
            return "".join(lines) if lines or offset else "(the file is empty)"
        if len(text) > room:
            if lines:
                file.seek(start)
                break
            lines.append(
                f"{text[:room]}\n[line {offset + 1} is longer than a page and cut here; use shell for the rest]\n"
            )
            if not line.endswith(b"\n"):
                _skip_line(file)
            break
        lines.append(text)
        room -= len(text)
    if not file.read(1):
        return "".join(lines)
    end = "" if lines[-1].endswith("\n") else "\n"
    told = (
        f"[lines {offset + 1} to {offset + len(lines)}; more follow, go on with offset={offset + len(lines)}]"
    )
    return "".join(lines) + end + told


def _skip_line(file: BinaryIO) -> bool:
    """Pass the rest of a line, however long; False if there was nothing."""
    any_read = False
    while part := file.readline(_CHUNK):
        any_read = True
        if part.endswith(b"\n"):
            break
    return any_read


def _only_place(text: str, old: str) -> int:
    place = text.find(old)
    if place < 0:
        windows = "\r\n" in text and "\r" not in old and old.replace("\n", "\r\n") in text
        hint = "; it would with \\r\\n line ends, which this file has" if windows else "; read the file again"
        raise ToolError(f"edit_file: old does not occur in the file{hint}")
    if text.find(old, place + 1) >= 0:
        raise ToolError("edit_file: old occurs more than once; take in more of what is around it")
    return place
