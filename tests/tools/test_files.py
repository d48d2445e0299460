"""The file tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.calls import digest
from goalmode.domain.work import StatePatch
from goalmode.errors import BadInput, ToolError
from goalmode.tools.builtin.files import PAGE, edit_file, list_files, read_file, write_file
from goalmode.tools.record import SHOWN
from goalmode.tools.registry import ToolContext

pytestmark = pytest.mark.anyio


async def read(context: ToolContext, path: str, **more: int) -> str:
    return (await read_file.run(context, {"path": path, **more})).text


async def test_what_is_written_is_read(context: ToolContext, workspace: Path) -> None:
    """Content arrives as UTF-8, in directories that are made, under names with blanks (B108)."""
    made = await write_file.run(context, {"path": "out dir/my report.md", "content": "héllo\r\n"})

    assert made.text == "created out dir/my report.md: 8 bytes"
    assert (workspace / "out dir/my report.md").read_bytes() == "héllo\r\n".encode()
    assert await read(context, "out dir/my report.md") == "héllo\r\n"
    again = await write_file.run(context, {"path": "out dir/my report.md", "content": ""})
    assert again.text == "replaced out dir/my report.md: 0 bytes"
    assert await read(context, "out dir/my report.md") == "(the file is empty)"


async def test_two_halves_of_a_character_are_written_as_one(context: ToolContext, workspace: Path) -> None:
    """An escaped surrogate pair is stored as its four bytes; half a pair is refused, not replaced (B67)."""
    await write_file.run(context, {"path": "a", "content": "\ud83c\udf78"})

    assert (workspace / "a").read_bytes() == b"\xf0\x9f\x8d\xb8"
    with pytest.raises(ToolError, match="half a surrogate pair"):
        await write_file.run(context, {"path": "a", "content": "x\ud83c"})
    assert (workspace / "a").read_bytes() == b"\xf0\x9f\x8d\xb8"


async def test_a_long_file_comes_in_pages(context: ToolContext, workspace: Path) -> None:
    """Following the offsets, the whole file is read once, and no page is cut by the record."""
    whole = "".join(f"line {n} " + "x" * (n % 90) + "\n" for n in range(2_000)) + "no end"
    (workspace / "a").write_text(whole)
    offset, seen = 0, ""
    while True:
        page = await read(context, "a", offset=offset)
        assert len(page) < SHOWN
        text, told, rest = page.rpartition("[lines ")
        seen += text if told else page
        if not told:
            break
        offset = int(rest.rpartition("offset=")[2].rstrip("]"))

    assert seen == whole


async def test_limit_and_offset_are_lines(context: ToolContext, workspace: Path) -> None:
    """A part of a file is told as a part; a line beyond the end is told too."""
    (workspace / "a").write_text("1\n2\n3\n")

    assert (
        await read(context, "a", offset=1, limit=1) == "2\n[lines 2 to 2; more follow, go on with offset=2]"
    )
    assert await read(context, "a", offset=2) == "3\n"
    assert await read(context, "a", offset=9) == "[the file has no line 10]"
    with pytest.raises(ToolError, match="offset must be 0 or more"):
        await read(context, "a", offset=-1)


async def test_a_line_longer_than_a_page_is_cut_and_told(context: ToolContext, workspace: Path) -> None:
    """Fifty megabytes on one line cost one page (B59)."""
    with (workspace / "a").open("wb") as file:
        for _ in range(50):
            file.write(b"j" * 1_048_576)
        file.write(b"\nnext\n")
    page = await read(context, "a")

    assert len(page) < PAGE + 300
    assert "[line 1 is longer than a page and cut here" in page
    assert page.endswith("more follow, go on with offset=1]")
    assert await read(context, "a", offset=1) == "next\n"


async def test_a_binary_file_is_described(context: ToolContext, workspace: Path) -> None:
    """A file with NUL bytes is not dumped; Latin-1 text is shown with marks (B65, B70)."""
    (workspace / "a").write_bytes(b"\x89PNG\x00\x01")
    (workspace / "b").write_bytes(b"caf\xe9")

    assert (await read(context, "a")).startswith(
        "binary file, 6 bytes, not shown\nbegins with: 89 50 4e 47 00 01\nsha256: "
    )
    assert await read(context, "b") == "caf\ufffd"


async def test_a_huge_sparse_file_is_described_at_once(context: ToolContext, workspace: Path) -> None:
    """A terabyte of nothing is not read through for its hash (B59)."""
    with (workspace / "a").open("wb") as file:
        file.truncate(1 << 40)

    assert (await read(context, "a")).startswith("binary file, 1099511627776 bytes, not shown")


async def test_an_edit_replaces_the_one_place(context: ToolContext, workspace: Path) -> None:
    """The rest of the file stays as it was, byte for byte."""
    (workspace / "a").write_bytes("α\r\nold line\r\nω".encode())
    done = await edit_file.run(context, {"path": "./a", "old": "old", "new": "new\n"})

    assert done.text == "edited a, line 2"
    assert (workspace / "a").read_bytes() == "α\r\nnew\n line\r\nω".encode()


async def test_what_was_written_is_noted_with_its_hash(context: ToolContext, workspace: Path) -> None:
    """By its clean path, for a new file and for an edit; what cannot be noted as it is is written all the same."""
    wrote = await write_file.run(context, {"path": "./out//a.md", "content": "α"})
    edited = await edit_file.run(context, {"path": "out/a.md", "old": "α", "new": "β"})
    long = "/".join(["d" * 100] * 11)
    unnoted = await write_file.run(context, {"path": long, "content": "x"})

    assert wrote.patch == StatePatch(written=(("out/a.md", digest("α")),))
    assert edited.patch == StatePatch(written=(("out/a.md", digest("β")),))
    assert unnoted.patch == StatePatch()
    assert (workspace / long).read_text() == "x"


@pytest.mark.parametrize(
    ("content", "old", "new", "problem"),
    [
        (b"abc", "x", "y", "does not occur"),
        (b"ab ab", "ab", "y", "more than once"),
        (b"aaa", "aa", "y", "more than once"),
        (b"a\r\nb", "a\nb", "y", r"\\r\\n line ends"),
        (b"abc", "", "y", "old is empty"),
        (b"abc", "b", "b", "are the same"),
        (b"caf\xe9 b", "b", "y", "not UTF-8"),
        (b"b" + b"." * 10_000_000, "b", "y", "larger than"),
    ],
    ids=lambda value: str(value)[:12],
)
async def test_an_edit_that_is_not_clear_changes_nothing(
    content: bytes, old: str, new: str, problem: str, context: ToolContext, workspace: Path
) -> None:
    """The error says why the text was not replaced."""
    (workspace / "a").write_bytes(content)
    with pytest.raises(ToolError, match=problem):
        await edit_file.run(context, {"path": "a", "old": old, "new": new})

    assert (workspace / "a").read_bytes() == content


async def test_no_tool_reaches_outside(context: ToolContext, workspace: Path, tmp_path: Path) -> None:
    """Links, `..` and absolute paths out are an error result; nothing outside is touched (B111, B113)."""
    (tmp_path / "secret").write_text("secret")
    (workspace / "link").symlink_to(tmp_path / "secret")
    for path in ("link", "../secret", str(tmp_path / "secret"), "~/x", "file:///etc/passwd"):
        calls: list[tuple[Any, dict[str, object]]] = [
            (read_file, {"path": path}),
            (write_file, {"path": path, "content": "x"}),
            (edit_file, {"path": path, "old": "secret", "new": "x"}),
            (list_files, {"path": path}),
        ]
        for made, arguments in calls:
            with pytest.raises((BadInput, ToolError)):
                await made.run(context, arguments)

    assert (tmp_path / "secret").read_text() == "secret"


async def test_a_listing_shows_kinds_sizes_and_escaped_names(context: ToolContext, workspace: Path) -> None:
    """A name with control characters is one line that colours nothing."""
    (workspace / "dir").mkdir()
    (workspace / "dir/a b").write_text("12")
    (workspace / "evil\n\x1b[31m").write_text("")
    (workspace / "link").symlink_to("dir")

    assert (await list_files.run(context, {})).text == "dir/\ndir/a b  2\nevil\\n\\x1b[31m  0\nlink@"
    assert (await list_files.run(context, {"path": "dir", "depth": 1})).text == "a b  2"
    with pytest.raises(ToolError, match="depth must be"):
        await list_files.run(context, {"depth": 11})


async def test_a_huge_directory_is_listed_in_bounds(context: ToolContext, workspace: Path) -> None:
    """Beyond 500 entries the listing says that there are more."""
    for n in range(510):
        (workspace / f"f{n:03}").touch()
    lines = (await list_files.run(context, {})).text.splitlines()

    assert (len(lines), lines[499]) == (501, "f499  0")
    assert lines[500].startswith("[only the first 500 entries")
