"""Code as the rules see it, whatever its language: loops, branches, exits, calls and names.

A parser of a language leaves out what no rule asks for. Every node knows its line, the first of a file is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

_TEXTS = ("line", "path", "name", "op", "how")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    line: int

    @property
    def parts(self) -> list[Node]:
        """The nodes directly inside, in the order of the source."""
        found: list[Node] = []
        for name in _FIELDS.get(type(self)) or _fields(type(self)):
            value = getattr(self, name)
            if isinstance(value, tuple):
                found.extend(value)
            elif isinstance(value, Node):
                found.append(value)
        return found


_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes."""
    _FIELDS[kind] = tuple(field.name for field in fields(kind) if field.name not in _TEXTS)
    return _FIELDS[kind]


Nodes = tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Const(Node):
    """A literal; null and undefined are None."""

    value: str | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """A variable, or what is read out of one: `reply.choices[0].tool_calls` is (reply, choices, tool_calls).

    `base` is set where the path begins at something else than a variable, such as a call.
    """

    path: tuple[str, ...]
    base: Node | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    callee: Node
    args: Nodes = ()


@dataclass(frozen=True, slots=True, eq=False)
class Op(Node):
    """Operands under an operator: `and or not == != < <= > >= in ?:`, or something no rule tells apart."""

    op: str
    operands: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Node):
    """`op` is empty for `=`, else the operator: `+` for `+=` and `++`."""

    targets: Nodes
    value: Node
    op: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Leave(Node):
    """`leave` goes to the end of a `switch`."""

    how: Literal["return", "raise", "break", "continue", "leave"]
    value: Node | None = None


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    test: Node
    then: Nodes
    orelse: Nodes = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case(Node):
    """Without values it is the default."""

    values: Nodes
    body: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Switch(Node):
    subject: Node
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Node):
    """`each` and `over` are set for a loop over something, `test` for a loop with a condition."""

    body: Nodes
    test: Node | None = None
    each: Nodes = ()
    over: Node | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Handler(Node):
    caught: Node | None
    body: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Try(Node):
    body: Nodes
    handlers: tuple[Handler, ...]
    final: Nodes = ()


@dataclass(frozen=True, slots=True, eq=False)
class Block(Node):
    body: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Function(Node):
    """Empty `name`: an expression."""

    name: str
    params: Nodes
    body: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Class(Node):
    name: str
    body: Nodes


IGNORE = "ax-audit-ignore"
"""Only comments of files with this word in them are read."""


@dataclass(frozen=True, slots=True)
class Comment:
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read. `broken` is the line at which a part of it does not parse, None if all of it does."""

    body: Nodes
    comments: tuple[Comment, ...]
    broken: int | None = None


class NotParsed(Exception):
    """A source cannot be looked at; the message says why, in a few words."""


def walk(*nodes: Node, functions: bool = True) -> Iterator[Node]:
    """The nodes and all that is inside of them, in the order of the source; `functions`: also inside nested ones."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        if functions or not isinstance(node, Function | Class):
            stack.extend(reversed(node.parts))


def read(base: Node, *keys: str) -> Name:
    """What is read out of `base`."""
    if isinstance(base, Name):
        return Name(base.line, (*base.path, *keys), base.base)
    return Name(base.line, keys, base)


def call(line: int, callee: Node, args: Nodes) -> Node:
    """A call; `x.get("k")` and `getattr(x, "k")` are what they mean, `x.k`."""
    match callee, args:
        case Name(path=(*path, "get"), base=base), (Const(value=str(key)), *_) if path:
            return Name(line, (*path, key), base)
        case Name(path=("getattr",), base=None), (owner, Const(value=str(key)), *_):
            return read(owner, key)
    return Call(line, callee, args)
