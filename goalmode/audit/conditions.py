"""What a condition is about: tool calls, a terminal reason, idling, a clock, a file."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from itertools import islice, product
from typing import TypeGuard

from goalmode.audit.exits import Exit, Guard
from goalmode.audit.names import Names
from goalmode.audit.replies import literals, presence, reasons
from goalmode.audit.tree import Assign, Call, Const, Name, Node, Op, walk
from goalmode.audit.words import (
    CLOCKS,
    DONE,
    EXISTS,
    IDLE,
    LAST,
    ON_PURPOSE,
    SUBJECTS,
    TIMES,
    Reason,
    says_idle,
    words,
)

_MOST = 64
"""So many ways through a condition are told apart; no condition that somebody reads has more."""

_ENDED = frozenset(["returncode", "poll", "exitcode", "alive", "wait"])
_STOPS = frozenset(
    [
        *("abort", "aborted", "aborting", "cancel", "cancelled", "canceled", "stop", "stopped", "stopping"),
        *("interrupted", "killed", "paused", "shutdown", "quit"),
    ]
)
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")

Way = tuple[Guard, ...]


class Meaning(Enum):
    NO_TOOLS = auto()
    TOOLS = auto()
    ENDED = auto()  # the reason is end_turn
    REASON = auto()  # another terminal reason
    SAID = auto()  # an explicit signal of completion: a tool, an event, a process that ended
    IDLE = auto()
    QUIET = auto()  # a clock since something last happened
    TIME = auto()
    FILE = auto()
    EMPTY = auto()  # the reply has no text either
    STOPPED = auto()  # somebody wants it to stop
    OTHER = auto()


def ways(exit: Exit, names: Names) -> list[Way]:
    """The ways in which an exit is reached: for each the conditions that hold together."""
    found: list[Way] = [()]
    for guard in exit.given:
        found = _together(found, ways_of(guard.test, guard.holds, names))
    return found


def _together(these: Iterable[Way], those: Iterable[Way]) -> list[Way]:
    return [(*a, *b) for a, b in islice(product(these, those), _MOST)]


def ways_of(test: Node, holds: bool, names: Names) -> list[Way]:
    """The ways in which a condition holds, or does not."""
    return _ways(test, holds, names, 3)


def _ways(test: Node, holds: bool, names: Names, depth: int) -> list[Way]:
    match test:
        case Op(op="not", operands=(inner,)):
            return _ways(inner, not holds, names, depth)
        case Op(op="and" | "or" as op, operands=operands):
            each = [_ways(operand, holds, names, depth) for operand in operands]
            if (op == "and") is not holds:
                return [way for some in each for way in some][:_MOST]
            found: list[Way] = [()]
            for some in each:
                found = _together(found, some)
            return found
        case Assign(targets=(Node() as target,), value=value):
            return _ways(value if presence(value, names) else target, holds, names, depth)
        case Call(callee=Name(path=("bool" | "Boolean",)), args=(inner,)):
            return _ways(inner, holds, names, depth)
        case Name() if depth and not _is_text(test) and _is_condition(known := names.value(test)):
            return _ways(known, holds, names, depth - 1)
    return [(Guard(test, holds),)]


def _is_condition(value: Node | None) -> TypeGuard[Node]:
    match value:
        case Op(op=op):
            return op in ("not", "and", "or", "in", *_RELATIONS)
        case Call(callee=Name(path=(*_, name))):
            return name in EXISTS or name in ("any", "some", "bool", "Boolean")
    return False


def meaning(guard: Guard, names: Names) -> Meaning:
    """What a single condition is about."""
    test, holds = guard.test, guard.holds
    tools = presence(test, names)
    if tools:
        return Meaning.TOOLS if (tools > 0) is holds else Meaning.NO_TOOLS
    if known := reasons(test, names):
        if Reason.END in known and holds is not _negated(test):
            return Meaning.ENDED
        return Meaning.REASON
    if holds is not _negated(test) and _is_said(test, names):
        return Meaning.SAID
    if holds and _is_stop(test):
        return Meaning.STOPPED
    if not holds and isinstance(test, Name) and _is_text(test):
        return Meaning.EMPTY
    if _is_file(test, names):
        return Meaning.FILE if holds is not _negated(test) else Meaning.OTHER
    if counter(test, names):
        return Meaning.IDLE if _is_full(test, names) is holds else Meaning.OTHER
    return _clock(test, names)


def _is_text(name: Name) -> bool:
    return bool({"text", "content"} & set(words(name.path[-1] if name.path else "")))


def _is_stop(test: Node) -> bool:
    match test:
        case Name(path=(*_, last)) | Call(callee=Name(path=(*_, last))):
            return bool(_STOPS & set(words(last)))
    return False


def _negated(test: Node) -> bool:
    return isinstance(test, Op) and test.op == "!="


def _is_said(test: Node, names: Names) -> bool:
    """Whether somebody says that the work is complete: a tool, an event, a result, the end of a process."""
    match test:
        case Op(op="==" | "!=" | "in" as op, operands=(left, right)):
            sides = ((left, right), (right, left))
            if any(_is_subject(a) and _says_done(b) for a, b in sides):
                return True
            if op == "in":
                return isinstance(left, Const) and _says_done(left)
            return op == "!=" and any(_is_process(side) for side in (left, right))
        case Call(callee=Name(path=(*_, last))) | Name(path=(*_, last)):
            if isinstance(test, Name) and names.is_flag(test.path):
                return False
            return bool(set(words(last)) & (DONE | _ENDED | {"exit", "submitted"}))
    return False


def _is_process(node: Node) -> bool:
    match node:
        case Call(callee=Name(path=(*_, last))) | Name(path=(*_, last)):
            return bool(set(words(last)) & _ENDED)
    return False


def _is_subject(node: Node) -> bool:
    match node:
        case Name(path=(*_, last)) | Call(callee=Name(path=(*_, last))):
            return bool(set(words(last)) & SUBJECTS)
    return False


def _says_done(node: Node) -> bool:
    known = DONE | {"submit", "finalize", "answer", "exit", "idle", "result", "stop", "end"}
    return any(set(words(text)) & known for text in _texts(node))


def _texts(node: Node) -> list[str]:
    found = literals(node)
    return [*found, node.path[-1]] if isinstance(node, Name) and len(node.path) == 1 else found


def _is_file(test: Node, names: Names) -> bool:
    """Whether a condition asks for a file, and not for one by which somebody stops the run."""
    for node in walk(test, functions=False):
        match node:
            case Call(callee=Name(path=(*_, name))) if name in EXISTS and name not in ("access", "stat"):
                return not any(set(words(text)) & ON_PURPOSE for text in names.spelled(node))
            case Call(
                callee=Name(path=("fs" | "fsp" | "os" | "fsPromises" | "promises", *_, "access" | "stat"))
            ):
                return not any(set(words(text)) & ON_PURPOSE for text in names.spelled(node))
    return False


def counter(test: Node, names: Names) -> str:
    """The counter of idling that a condition compares, empty if there is none."""
    match test:
        case Op(op=op, operands=sides) if op in _RELATIONS:
            for side in sides:
                match side:
                    case Name(path=path) | Assign(targets=(Name(path=path),)):
                        if names.counts(path) and (says_idle(path[-1]) or names.counts_no_tools(path)):
                            return ".".join(path)
    return ""


def _is_full(test: Node, names: Names) -> bool:
    """Whether a comparison holds once the counter has come to its bound."""
    match test:
        case Op(op=op, operands=(left, _)):
            grows = bool(counter(Op(test.line, op, (left,)), names))
            path = next((p.path for p in walk(test) if isinstance(p, Name) and names.counts(p.path)), ())
            less = op in ("<", "<=", "!=")
            return less is (grows is names.counts_down(path))
    return False


def _clock(test: Node, names: Names) -> Meaning:
    if not (isinstance(test, Op) and test.op in _RELATIONS) and not isinstance(test, Name | Call):
        return Meaning.OTHER
    spelled, told, since = [], False, False
    for node in walk(test, functions=False):
        match node:
            case Call(callee=Name(path=(*_, name))) if name in CLOCKS:
                told = True
            case Name(path=path) if path:
                spelled.append(path[-1])
                value = names.value(node)
                if value is not None and isinstance(test, Op):
                    told = told or _tells_time(value)
    for name in spelled:
        found = set(words(name))
        told = told or (bool(found & TIMES) and isinstance(test, Op)) or {"timed", "out"} <= found
        since = since or bool(found & IDLE) or ("last" in found and bool(found & LAST))
    if not told:
        return Meaning.OTHER
    return Meaning.QUIET if since else Meaning.TIME


def _tells_time(value: Node) -> bool:
    return any(
        isinstance(node, Call)
        and isinstance(node.callee, Name)
        and node.callee.path[-1:]
        and node.callee.path[-1] in CLOCKS
        for node in walk(value, functions=False)
    )
