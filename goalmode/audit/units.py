"""The places that decide whether an agent goes on: loops, functions that call themselves, `should_continue`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from goalmode.audit.exits import Exit, flattened, of_body, of_loop
from goalmode.audit.handled import Functions
from goalmode.audit.names import Names, Values, assigned
from goalmode.audit.tree import (
    Call,
    Case,
    Class,
    Const,
    Function,
    Handler,
    If,
    Loop,
    Name,
    Node,
    Nodes,
    Try,
    walk,
)
from goalmode.audit.words import ASKING, BY_NAME, MODELS, says_agent, words

_DECIDES = frozenset(
    ["should_continue", "shouldcontinue", "should_stop", "is_done", "is_complete", "is_finished"]
)


_AFTER = 10
"""So many statements behind a loop are still about how it ended."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One such place.

    Attributes:
        kind: in words, for a message. goes_on: whether it can be gone through more than once.
        around: the function that it stands in, itself for a function. owner: names of what it stands in.
        functions: of the same file. after: what follows a loop.
    """

    line: int
    kind: str
    body: Nodes
    loop: Loop | None
    exits: tuple[Exit, ...]
    names: Names
    around: Node | None
    owner: str
    functions: Functions
    after: Nodes = ()

    def nodes(self) -> Iterator[Node]:
        """Everything in it: what a loop goes over is outside of it, its condition is not."""
        own = (self.loop.test,) if self.loop is not None and self.loop.test is not None else ()
        yield from walk(*own, *self.body)

    def asks(self) -> bool:
        """Whether it asks a model, or lets an agent take a step."""
        return any(isinstance(node, Call) and is_asking(node) for node in self.nodes())

    def is_agents(self) -> bool:
        """Whether it is about agents by its names."""
        return any(isinstance(node, Name) and any(map(says_agent, node.path)) for node in self.nodes())


def is_asking(node: Call) -> bool:
    """Whether a call asks a model, by its names."""
    if not isinstance(node.callee, Name) or not node.callee.path:
        return False
    *owner, name = node.callee.path
    found = words(name)
    if name in BY_NAME:
        return name not in ("llm", "model") or owner in ([], ["self"], ["this"])
    if "tool" in found or "tools" in found or not ASKING.intersection(found):
        return False
    spelled = {word for part in (*owner, name) for word in words(part) if part not in ("self", "this")}
    spelled -= ASKING - {"chat", "completion"} if not owner else frozenset()
    return bool(spelled & MODELS) or any(_is_model(arg) for arg in node.args)


def _is_model(arg: Node) -> bool:
    match arg:
        case Name(path=(*_, last)):
            return says_agent(last) or last in ("model", "llm")
        case Const(value=str(text)):
            return text.startswith("http") and bool(MODELS.intersection(words(text)))
    return False


def units(body: Nodes) -> Iterator[Unit]:
    """All of a file, the outermost first."""
    after = {id(loop): following for block in _blocks(body) for loop, following in _loops(block)}
    yield from _inside(body, Functions(body), after)


def _blocks(body: Nodes) -> Iterator[Nodes]:
    """All lists of statements."""
    yield body
    for node in walk(*body):
        match node:
            case If(then=then, orelse=orelse):
                yield then
                yield orelse
            case Try(body=inner, final=final):
                yield inner
                yield final
            case Function() | Class() | Loop() | Case() | Handler():
                yield node.body


def _loops(block: Nodes) -> Iterator[tuple[Loop, Nodes]]:
    flat = list(flattened(block))
    for number, node in enumerate(flat):
        if isinstance(node, Loop):
            yield node, tuple(flat[number + 1 : number + 1 + _AFTER])


def _inside(body: Nodes, functions: Functions, after: dict[int, Nodes]) -> Iterator[Unit]:
    stack: list[tuple[Node, Function | None, tuple[str, ...]]] = [(node, None, ()) for node in reversed(body)]
    known: dict[int, Values] = {}
    while stack:
        node, inside, names = stack.pop()
        match node:
            case Function(name=name):
                yield from _of_function(node, names, functions)
                # A callback belongs to the function that it is written in.
                inside, names = (node, (*names, name)) if name else (inside or node, names)
            case Class(name=name):
                names = (*names, name)
            case Loop():
                if inside is not None and id(inside) not in known:
                    known[id(inside)] = assigned(inside.body)
                values = known.get(id(inside))
                yield _of_loop(node, after.get(id(node), ()), inside, values, names, functions)
        stack.extend((part, inside, names) for part in reversed(node.parts))


def _of_loop(
    loop: Loop,
    after: Nodes,
    around: Function | None,
    values: Values | None,
    owner: tuple[str, ...],
    functions: Functions,
) -> Unit:
    inside = loop.body if loop.test is None else (loop.test, *loop.body)
    return Unit(
        line=loop.line,
        kind="loop",
        body=loop.body,
        loop=loop,
        exits=of_loop(loop),
        names=Names(inside, values),
        around=around,
        owner=".".join(owner),
        functions=functions,
        after=after,
    )


def _of_function(node: Function, owner: tuple[str, ...], functions: Functions) -> Iterator[Unit]:
    decides = "_".join(words(node.name)) in _DECIDES
    if not node.name or not (decides or any(_calls(part, node.name) for part in walk(*node.body))):
        return
    exits = of_body(node.body)
    if not decides:  # it goes on by calling itself
        exits = tuple(
            e for e in exits if e.value is None or not any(_calls(n, node.name) for n in walk(e.value))
        )
        exits = tuple(replace(e, how="return") for e in exits if e.how == "return")
    kind = "decision" if decides else "recursion"
    yield Unit(
        node.line,
        kind,
        node.body,
        None,
        exits,
        Names(node.body),
        node,
        ".".join((*owner, node.name)),
        functions,
    )


def _calls(node: Node, name: str) -> bool:
    match node:
        case Call(callee=Name(path=(own,) | ("self" | "this", own), base=None)):
            return own == name
    return False
