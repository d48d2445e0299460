"""A shell command in tokens: enough of the grammar to see which commands it is made of and which words they have.

It reads only. What it cannot follow (a here-document, an alias) comes out as words too many, never as an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_OPERATORS = re.compile(r"&>>|<<<|<<-|\|\||&&|;;|\|&|>>|>\||>&|&>|<<|<&|<>|[;&|<>()\n]")
_DESCRIPTOR = re.compile(r"\d+(?=[<>])")
_BLANK = " \t\r"
_DEEPEST = 50
"""Quotes within substitutions within quotes that are followed."""

REDIRECTIONS = frozenset({"&>>", ">>", ">|", ">&", "&>", ">", "<<<", "<<-", "<<", "<&", "<>", "<"})
WRITING = frozenset({"&>>", ">>", ">|", ">&", "&>", ">"})
"""Redirections whose word is a file that the command writes."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


@dataclass(frozen=True, slots=True)
class Token:
    """A word without its quotes, or an operator such as `|`."""

    text: str
    operator: bool = False


def tokens(command: str) -> Iterator[Token]:
    """The words and operators of a command, comments left out; a substitution `$(…)` is part of its word."""
    place, end = 0, len(command)
    while place < end:
        char = command[place]
        if char in _BLANK or command.startswith("\\\n", place):
            place += 1 if char in _BLANK else 2
        elif char == "#":
            newline = command.find("\n", place)
            place = end if newline < 0 else newline
        elif found := _OPERATORS.match(command, place):
            yield Token(found.group(), operator=True)
            place = found.end()
        elif descriptor := _DESCRIPTOR.match(command, place):
            place = descriptor.end()
        else:
            word, place = _word(command, place)
            yield Token(word)


@dataclass(frozen=True, slots=True)
class Simple:
    """One command: its words, and the files that it is told to write by redirection."""

    words: tuple[str, ...]
    written: tuple[str, ...] = ()


def simple_commands(command: str) -> list[Simple]:
    """Every command in it, whatever joins them."""
    found: list[Simple] = []
    pending: list[Token] = []
    for token in (*tokens(command), Token(";", operator=True)):
        if token.operator and token.text not in REDIRECTIONS:
            found += [simple(pending)] if pending else []
            pending = []
        else:
            pending.append(token)
    return found


def script_of(words: Sequence[str]) -> str:
    """The script that a shell is given (`bash -c SCRIPT`), empty if these are not the words of one."""
    if not words or PurePosixPath(words[0]).name not in SHELLS or "-c" not in words[:-1]:
        return ""
    return words[words.index("-c") + 1]


def simple(part: Sequence[Token]) -> Simple:
    """Words and redirections as one command."""
    words: list[str] = []
    written: list[str] = []
    redirection = ""
    for token in part:
        if token.operator:
            redirection = token.text if token.text in REDIRECTIONS else ""
        elif redirection:
            written += [token.text] if redirection in WRITING else []
            words += [token.text] if redirection in ("<", "<>") else []
            redirection = ""
        else:
            words.append(token.text)
    return Simple(tuple(words), tuple(written))


def _word(command: str, place: int) -> tuple[str, int]:
    """The word that begins at `place`, and where it ends."""
    text: list[str] = []
    while place < len(command) and command[place] not in _BLANK and not _OPERATORS.match(command, place):
        match command[place]:
            case "'":
                close = command.find("'", place + 1)
                close = len(command) if close < 0 else close
                text.append(command[place + 1 : close])
                place = close + 1
            case '"':
                inner, place = _quoted(command, place + 1)
                text.append(inner)
            case "\\":
                text.append(command[place + 1 : place + 2].replace("\n", ""))
                place += 2
            case "`" | "$" if (close := _substitution_end(command, place)) > place:
                text.append(command[place:close])
                place = close
            case char:
                text.append(char)
                place += 1
    return "".join(text), place


def _quoted(command: str, place: int, depth: int = 0) -> tuple[str, int]:
    """What stands in double quotes, from behind the first one, and where it ends."""
    text: list[str] = []
    while place < len(command) and command[place] != '"':
        close = _substitution_end(command, place, depth)
        if close > place:
            text.append(command[place:close])
            place = close
        elif command[place] == "\\" and command[place + 1 : place + 2] in ('"', "\\", "$", "`", "\n"):
            text.append(command[place + 1].replace("\n", ""))
            place += 2
        else:
            text.append(command[place])
            place += 1
    return "".join(text), place + 1


def _substitution_end(command: str, place: int, depth: int = 0) -> int:
    """Behind the substitution that begins at `place`: `…`, $(…) or ${…}; `place` itself if none does."""
    if command[place] == "`":
        close = command.find("`", place + 1)
        return len(command) if close < 0 else close + 1
    if not command.startswith(("$(", "${"), place) or depth == _DEEPEST:
        return place
    opening, closing = command[place + 1], ")" if command[place + 1] == "(" else "}"
    unclosed, place = 1, place + 2
    while place < len(command) and unclosed:
        match command[place]:
            case "'":
                close = command.find("'", place + 1)
                place = len(command) if close < 0 else close + 1
                continue
            case '"':
                place = _quoted(command, place + 1, depth + 1)[1]
                continue
            case "\\":
                place += 1
            case char:
                unclosed += (char == opening) - (char == closing)
        place += 1
    return min(place, len(command))
