"""Where a loop is left, and under which conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from goalmode.audit.tree import (
    Assign,
    Block,
    Call,
    Case,
    Class,
    Const,
    Function,
    Handler,
    If,
    Leave,
    Loop,
    Name,
    Node,
    Nodes,
    Op,
    Switch,
    Try,
    walk,
)
from goalmode.audit.words import EXISTS

Path = tuple[str, ...]

NEAR = 3
"""So many statements right before an exit belong to it."""

_DEEPEST = 24
"""The nearest conditions that are kept; generated code may have thousands one after the other."""

_IsEnd = Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which something is reached: `test` holds, or it does not."""

    test: Node
    holds: bool


@dataclass(frozen=True, slots=True)
class Exit:
    """One way out of a loop.

    Attributes:
        how: `test` is the loop's own condition, `flag` sets a variable in it.
        given: what holds where it is reached. before: what is done right before it, in the same block.
        caught: what the handler catches in which it stands.
    """

    line: int
    how: Literal["return", "raise", "break", "test", "flag"]
    given: tuple[Guard, ...]
    before: Nodes = ()
    value: Node | None = None
    caught: Node | None = None


@dataclass(frozen=True, slots=True)
class _At:
    """Where the walk is: the conditions so far, whether a `break` leaves an inner loop only, what is caught."""

    given: tuple[Guard, ...] = ()
    inner: bool = False
    caught: Node | None = None

    def under(self, *guards: Guard) -> _At:
        return _At((*self.given, *guards)[-_DEEPEST:], self.inner, self.caught)


def of_loop(loop: Loop) -> tuple[Exit, ...]:
    """All ways out of a loop, its own condition first."""
    own = () if loop.test is None else (Exit(loop.line, "test", (Guard(loop.test, False),)),)
    # That its condition held when the round began tells nothing about a way out later in the round.
    return (*own, *_block(loop.body, _At(), _sets(frozenset(_flags(loop)))))


def of_body(body: Nodes, is_end: _IsEnd = lambda node: False) -> tuple[Exit, ...]:
    """All ways out of a function; what `is_end` knows ends it too."""
    return tuple(_block(body, _At(inner=True), is_end))


def _sets(flags: frozenset[Path]) -> _IsEnd:
    def is_end(node: Node) -> bool:
        match node:
            case Assign(targets=(Name(path=path, base=None),), value=Const()):
                return path in flags
        return False

    return is_end


def _flags(loop: Loop) -> Iterator[Path]:
    """Variables that keep a loop going, or whose being set ends it by `if flag: break`."""
    tests = [] if loop.test is None else [loop.test]
    for node in walk(*loop.body, functions=False):
        if isinstance(node, If) and any(isinstance(s, Leave) and s.how == "break" for s in node.then):
            tests.append(node.test)
    for test in tests:
        for node in _conjuncts(test):
            if isinstance(node, Name) and node.base is None:
                yield node.path


def _conjuncts(test: Node) -> Iterator[Node]:
    match test:
        case Op(op="not" | "and" | "or", operands=operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case _:
            yield test


def flattened(block: Nodes) -> Iterator[Node]:
    """The statements of a block, those of blocks in it among them."""
    for node in block:
        if isinstance(node, Block):
            yield from flattened(node.body)
        else:
            yield node


def _block(block: Nodes, at: _At, is_end: _IsEnd) -> Iterator[Exit]:
    done: list[Node] = []
    flat = list(flattened(block))
    for number, node in enumerate(flat):
        match node:
            case Leave(how="return" | "raise" | "break" as how) if how != "break" or not at.inner:
                yield from _leave(node, at, tuple(done[-NEAR:]))
            case If(test=test, then=then, orelse=orelse):
                yield from _block(then, at.under(Guard(test, True)), is_end)
                yield from _block(orelse, at.under(Guard(test, False)), is_end)
                if leaves(then):
                    at = at.under(Guard(test, False))
                elif orelse and leaves(orelse):
                    at = at.under(Guard(test, True))
            case Switch():
                yield from _switch(node, at, is_end)
                at = at.under(
                    *(Guard(_is(node, c), False) for c in node.cases if c.values and leaves(c.body))
                )
            case Loop(body=body):
                yield from _block(body, _At(at.given, True, at.caught), is_end)
            case Try():
                yield from _try(node, at, is_end)
            case _ if is_end(node):
                value = node.value if isinstance(node, Assign) else None
                # What follows in the block tells how it is meant as well.
                yield Exit(
                    node.line,
                    "flag",
                    at.given,
                    tuple(flat[max(0, number + 1 - NEAR) : number + 2]),
                    value,
                    at.caught,
                )
        done.append(node)


def _leave(node: Leave, at: _At, done: Nodes) -> Iterator[Exit]:
    """`return a if test else b` are two ways out."""
    how = node.how
    if how == "continue" or how == "leave":
        return
    match node.value:
        case Op(op="?:", operands=(test, then, orelse)):
            yield Exit(node.line, how, at.under(Guard(test, True)).given, done, then, at.caught)
            yield Exit(node.line, how, at.under(Guard(test, False)).given, done, orelse, at.caught)
        case value:
            yield Exit(node.line, how, at.given, done, value, at.caught)


def _switch(node: Switch, at: _At, is_end: _IsEnd) -> Iterator[Exit]:
    others = tuple(Guard(_is(node, case), False) for case in node.cases if case.values)
    for case in node.cases:
        yield from _block(
            case.body, at.under(*([Guard(_is(node, case), True)] if case.values else others)), is_end
        )


def _is(node: Switch, case: Case) -> Node:
    tests = tuple(Op(value.line, "==", (node.subject, value)) for value in case.values)
    return tests[0] if len(tests) == 1 else Op(case.line, "or", tests)


def _try(node: Try, at: _At, is_end: _IsEnd) -> Iterator[Exit]:
    body = list(flattened(node.body))
    # What raises unless a file is there: what follows is reached only if it is.
    at_body = at
    match body:
        case [Call(callee=Name(path=(*_, name))) as first, *_] if name in EXISTS:
            at_body = at.under(Guard(first, True))
    yield from _block(node.body, at_body, is_end)
    for handler in node.handlers:
        caught = handler.caught or Name(handler.line, ("error",))
        yield from _block(handler.body, _At(at.given, at.inner, caught), is_end)
    yield from _block(node.final, at, is_end)


def leaves(block: Nodes, *, tried: bool = True) -> bool:
    """Whether what follows the block is never reached from it; `tried`: not even after an exception."""
    for node in flattened(block):
        match node:
            case Leave(how=how) if how != "leave":
                return True
            case If(then=then, orelse=orelse) if orelse and leaves(then, tried=tried):
                if leaves(orelse, tried=tried):
                    return True
            case Switch(cases=cases) if not all(case.values for case in cases):
                if all(leaves(case.body, tried=tried) for case in cases):
                    return True
            case Try(body=body, handlers=handlers, final=final):
                caught = not tried or all(leaves(handler.body) for handler in handlers)
                if leaves(final, tried=tried) or (caught and leaves(body, tried=tried)):
                    return True
    return False


def goes_on(block: Nodes) -> bool:
    """Whether a loop's body comes to its end or to a `continue`, other than after an exception."""
    return not leaves(block, tried=False) or any(_continues(node) for node in block)


def _continues(node: Node) -> bool:
    match node:
        case Leave(how=how):
            return how == "continue"
        case Loop() | Handler() | Function() | Class():
            return False
    return any(_continues(part) for part in node.parts)
