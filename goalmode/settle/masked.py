"""Checks that cannot fail: commands whose exit code says nothing of what they run.

A check holds if it exits 0. `pytest | tee log` exits with the code of `tee`, `pytest; true` with that of `true`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from goalmode.settle.shell import Token, script_of, simple, simple_commands, tokens

PASSES_ON = frozenset(
    {
        "cat", "column", "cut", "fmt", "fold", "head", "hexdump", "less", "logger", "more", "nl", "od", "paste",
        "pr", "rev", "sed", "sort", "tac", "tail", "tee", "tr", "ts", "uniq", "wc", "xxd",
    }
)  # fmt: skip
"""Commands that exit 0 whatever they read."""

SUCCEEDS = frozenset({"true", ":", "echo", "printf"})
"""Commands that exit 0 in any case."""

_PREFIXES = frozenset({"time", "command", "exec", "nohup", "sudo", "env"})
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_GROUPS = ((Token("(", operator=True), Token(")", operator=True)), (Token("{"), Token("}")))
_DEEPEST = 10


def masked(command: str) -> str:
    """Why the command's exit code is not that of what it runs; empty if nothing speaks for that."""
    return _masked(list(tokens(command)), _Options.of(command), 0)


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command says of failures within itself: `set -e`, `set -o pipefail`, an `exit` that is not `exit 0`."""

    errexit: bool
    pipefail: bool
    exits: bool

    @classmethod
    def of(cls, command: str) -> _Options:
        commands = [_words(one.words, _PREFIXES | _KEYWORDS) for one in simple_commands(command)]
        options = [word for words in commands if words[:1] == ("set",) for word in words[1:]]
        return cls(
            errexit=any(o == "errexit" or (o[:1] == "-" and o[1:2] != "-" and "e" in o) for o in options),
            pipefail="pipefail" in options,
            exits=any(words[:1] == ("exit",) and words != ("exit", "0") for words in commands),
        )


@dataclass(frozen=True, slots=True)
class _Link:
    """A part of a list, and the operator before it."""

    before: str
    part: tuple[Token, ...]


def _masked(script: Sequence[Token], options: _Options, depth: int) -> str:
    steps = _split(script, (";", "\n", "&"))
    if len(steps) > 1 and not steps[-1].part and steps[-1].before == "&":
        return "what ends in `&` runs in the background, and its exit code is lost"
    steps = [step for step in steps if step.part]
    if not steps:
        return ""
    last = steps[-1].part
    if len(steps) > 1 and _succeeds(last) and not (options.errexit or options.exits):
        return f"its last command is `{_told(last)}`, which exits 0 in any case"
    return _masked_list(last, options, depth)


def _masked_list(part: Sequence[Token], options: _Options, depth: int) -> str:
    """Pipelines joined by && and ||."""
    links = _split(part, ("&&", "||"))
    if links[-1].before == "||" and _succeeds(links[-1].part):
        return f"`|| {_told(links[-1].part)}` makes it exit 0 whatever fails before"
    return next(filter(None, (_masked_pipeline(link.part, options, depth) for link in links)), "")


def _masked_pipeline(part: Sequence[Token], options: _Options, depth: int) -> str:
    pipe = _split(part, ("|", "|&"))
    last = pipe[-1].part
    words = _words(simple(last).words)
    name = words[0] if words else ""
    if len(pipe) > 1 and name in PASSES_ON and not options.pipefail:
        return (
            f"a pipe into `{name}` exits with the code of `{name}`; `set -o pipefail;` before it changes that"
        )
    if len(pipe) > 1 or depth == _DEEPEST:
        return ""
    if (last[:1], last[-1:]) in [((first,), (end,)) for first, end in _GROUPS]:
        return _masked(last[1:-1], options, depth + 1)
    if script := script_of(words):
        return _masked(list(tokens(script)), _Options.of(script), depth + 1)
    return ""


def _split(part: Sequence[Token], joints: Sequence[str]) -> list[_Link]:
    """Split at these operators, but not within groups."""
    links, depth, current = [], 0, list[Token]()
    before = ""
    for token in part:
        if token.operator and token.text in joints and depth == 0:
            links.append(_Link(before, tuple(current)))
            before, current = token.text, []
            continue
        depth += any(token == first for first, _ in _GROUPS) - any(token == end for _, end in _GROUPS)
        depth = max(depth, 0)  # The ) of a `case` pattern.
        current.append(token)
    return [*links, _Link(before, tuple(current))]


def _succeeds(part: Sequence[Token]) -> bool:
    words = _words(simple(part).words)
    return words[:1] != () and (words[0] in SUCCEEDS or words == ("exit", "0"))


def _told(part: Sequence[Token]) -> str:
    words = simple(part).words
    return words[0] if words[0] in ("echo", "printf") else " ".join(words)


def _words(words: Sequence[str], before: frozenset[str] = _PREFIXES) -> tuple[str, ...]:
    """A command's name without its directory, and its arguments; what stands before the name is left out."""
    for place, word in enumerate(words):
        if word not in before and "=" not in word:
            return (PurePosixPath(word).name, *words[place + 1 :])
    return ()
