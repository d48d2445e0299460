"""The variables of a loop: what they are set to, and which of them count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from goalmode.audit.tree import Assign, Call, Const, Loop, Name, Node, Op, walk

Path = tuple[str, ...]

_TAKEN = frozenset(
    [
        *(
            "pop",
            "popleft",
            "shift",
            "slice",
            "splice",
            "at",
            "filter",
            "map",
            "find",
            "findLast",
            "some",
            "every",
        ),
        *(
            "any",
            "all",
            "len",
            "list",
            "tuple",
            "sorted",
            "reversed",
            "next",
            "iter",
            "get",
            "keys",
            "values",
            "items",
        ),
        *(
            "join",
            "split",
            "strip",
            "trim",
            "loads",
            "dumps",
            "stringify",
            "enumerate",
            "range",
            "isArray",
            "includes",
        ),
    ]
)
"""What these return was there before."""


Values = Mapping[Path, Sequence[Node]]


def assigned(body: Iterable[Node]) -> Values:
    """What the variables of a function are set to, wherever in it."""
    found: dict[Path, list[Node]] = defaultdict(list)
    for node in walk(*body):
        for path, value in _settings(node):
            found[path].append(value)
    return dict(found)


def _settings(node: Node) -> Iterator[tuple[Path, Node]]:
    match node:
        case Assign(targets=targets, value=value, op=""):
            for target in targets:
                if isinstance(target, Name) and target.base is None and not _is_bump(target.path, value):
                    yield target.path, value
        case Loop(each=each, over=over) if over is not None:
            yield from ((target.path, over) for target in each if isinstance(target, Name))


class Names:
    """The variables that are set in `inside`, the loop, and in the function `around` it."""

    def __init__(self, inside: Iterable[Node], around: Values | None = None) -> None:
        inside = list(inside)
        self._set: Values = around or {}
        self._new = assigned(inside)
        self._idling: set[Path] = set()
        self._bumped: set[Path] = set()
        self._down: set[Path] = set()
        self._added: dict[Path, list[Node]] = defaultdict(list)
        for node in walk(*inside):
            self._learn(node)

    def _learn(self, node: Node) -> None:
        match node:
            case Assign(targets=targets, value=value, op=op):
                for target in targets:
                    if isinstance(target, Name) and target.base is None:
                        if op:
                            self._added[target.path].append(value)
                        if op or _is_bump(target.path, value):
                            self._bumped.add(target.path)
                        if op == "-":
                            self._down.add(target.path)
            case Call(callee=Name(path=(*path, "append" | "extend" | "push"), base=None), args=args):
                self._added[tuple(path)] += args

    def learn_idling(self, paths: Iterable[Path]) -> None:
        """These are counted only where a reply has no tool calls."""
        self._idling.update(paths)

    def value(self, name: Name) -> Node | None:
        """What a variable is set to, if there is one place that does so."""
        if name.base is not None:
            return None
        values = self._new.get(name.path) or self._set.get(name.path) or []
        return values[0] if len(values) == 1 and name.path not in self._bumped else None

    def added(self, name: Name) -> list[Node]:
        """What is put into a list, piece by piece."""
        return self._added.get(name.path, []) if name.base is None else []

    def is_flag(self, path: Path) -> bool:
        """Whether it is only ever set to literals."""
        values = [*self._new.get(path, ()), *self._set.get(path, ())]
        return bool(self._new.get(path)) and all(isinstance(value, Const) for value in values)

    def counts(self, path: Path) -> bool:
        return path in self._bumped

    def counts_down(self, path: Path) -> bool:
        return path in self._down

    def counts_no_tools(self, path: Path) -> bool:
        return path in self._idling

    def is_new(self, node: Node, *, from_call: bool, depth: int = 3) -> bool:
        """Whether something in the node is set anew in each round of the loop; `from_call`: by a call."""
        return any(
            self._fresh(part.path[:length], from_call, depth)
            for part in walk(node)
            if isinstance(part, Name) and part.base is None
            for length in range(1, len(part.path) + 1)
        )

    def _fresh(self, path: Path, from_call: bool, depth: int) -> bool:
        values = self._new.get(path)
        if not values or not depth:
            return False
        if not from_call:
            return True
        return any(_calls(value) or self.is_new(value, from_call=True, depth=depth - 1) for value in values)

    def spelled(self, node: Node, depth: int = 2) -> set[str]:
        """All names and literals in a node, and in what its variables are set to."""
        found: set[str] = set()
        for part in walk(node):
            match part:
                case Const(value=str(text)):
                    found.add(text)
                case Name(path=path):
                    found.update(path)
                    value = self.value(part) if depth else None
                    if value is not None:
                        found |= self.spelled(value, depth - 1)
        return found


def _is_bump(path: Path, value: Node) -> bool:
    """`n = n + 1`."""
    match value:
        case Op(op="BinOp" | "+" | "-", operands=(Name(path=left), Const(value=int() | float()))):
            return left == path
    return False


def _calls(value: Node) -> bool:
    return any(
        isinstance(node, Call)
        and not (isinstance(node.callee, Name) and node.callee.path[-1:] and node.callee.path[-1] in _TAKEN)
        for node in walk(value, functions=False)
    )
