"""Which terminal reasons does code tell apart, and has everything else a branch of its own?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from goalmode.audit.names import Names
from goalmode.audit.replies import reads_reason, reasons
from goalmode.audit.tree import Call, Case, Const, Function, If, Name, Node, Op, Switch, walk
from goalmode.audit.words import Reason, reason

_TELLING = {Reason.PAUSE, Reason.CUT, Reason.REFUSED, Reason.CONTEXT}
"""Words that mean a terminal reason whatever they are compared with; `stop` may be anything."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a piece of code does with terminal reasons; `calls`: the functions of the same file that it calls."""

    reasons: frozenset[Reason]
    default: bool
    calls: frozenset[str]


def told(nodes: Iterable[Node], names: Names) -> Told:
    found: set[Reason] = set()
    calls: set[str] = set()
    default = False
    for node in nodes:
        match node:
            case Op(op="==" | "!=" | "in"):
                found |= reasons(node, names)
                found |= {kind for text in _sides(node) if (kind := reason(text)) in _TELLING}
            case Call(callee=callee):
                found |= reasons(node, names)
                match callee:
                    case Name(path=(name,) | ("self" | "this", name), base=None):
                        calls.add(name)
            case Case(values=values):
                texts = (text for value in values for text in _sides(value))
                found |= {kind for text in texts if (kind := reason(text)) is not None}
            case Switch(subject=subject, cases=cases) if reads_reason(subject, names):
                default = default or any(not case.values and case.body for case in cases)
            case If(test=test, orelse=orelse) if orelse and reasons(test, names):
                default = default or not (len(orelse) == 1 and isinstance(orelse[0], If))
    return Told(frozenset(found), default, frozenset(calls))


def _sides(node: Node) -> Iterator[str]:
    for part in walk(node, functions=False):
        match part:
            case Const(value=str(text)) if " " not in text:
                yield text
            case Name(path=(_, *_, last)) if last[:1].isupper():
                yield last


class Functions:
    """The functions of a file by their names; the first of a name counts."""

    def __init__(self, body: Iterable[Node]) -> None:
        self._named: dict[str, Function] = {}
        self._told: dict[str, Told] = {}
        for node in walk(*body):
            if isinstance(node, Function) and node.name:
                self._named.setdefault(node.name, node)

    def get(self, name: str) -> Function | None:
        return self._named.get(name)

    def with_helpers(self, own: Told) -> Told:
        """What is told with the functions that are called, and those that they call: each is looked at once."""
        found, default = set(own.reasons), own.default
        names, seen = own.calls, set[str]()
        for _ in range(2):
            tolds = [self._of(name) for name in names - seen if name in self._named]
            seen |= names
            names = frozenset(name for one in tolds for name in one.calls)
            found.update(kind for one in tolds for kind in one.reasons)
            default = default or any(one.default for one in tolds)
        return Told(frozenset(found), default, own.calls)

    def _of(self, name: str) -> Told:
        if name not in self._told:
            body = self._named[name].body
            self._told[name] = told(walk(*body), Names(body))
        return self._told[name]
