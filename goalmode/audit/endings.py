"""What is said where a loop ends: that the work is done, that it failed, or why the model stopped."""

from __future__ import annotations

from collections.abc import Iterator

from goalmode.audit.exits import Exit
from goalmode.audit.names import Names
from goalmode.audit.replies import reads_reason
from goalmode.audit.tree import Assign, Call, Const, If, Name, Node, Nodes, walk
from goalmode.audit.words import DONE, FAILED, OF_WORK, RUNNING, STATUS, words

_LOGS = frozenset(
    ["log", "logger", "logging", "console", "print", "debug", "warn", "_log", "_logger", "trace"]
)


def failed(exit: Exit) -> bool:
    """Whether it is told as something else than success."""
    found = _statuses(exit)
    return bool(found & FAILED) and not found & DONE


def says_done(exit: Exit) -> bool:
    """Whether it is told as success."""
    return bool(_statuses(exit) & DONE) or any(marks_done(node) for node in _near(exit.before))


def hands_on(exit: Exit, names: Names) -> bool:
    """Whether the model's own reason goes with it."""
    nodes = list(_near(exit.before, If))
    if exit.value is not None:
        nodes.append(exit.value)
    return any(reads_reason(part, names) for node in nodes for part in walk(node) if isinstance(part, Name))


def marks_done(node: Node) -> bool:
    """Whether a statement marks work as done: `done = True`, `running = False`, `finish()`, `set_status("done")`."""
    match node:
        case Assign(targets=(Name(path=(*owner, name)),), value=Const(value=bool(value)), op=""):
            # A variable of its own called `running` may be anybody's.
            return bool(set(words(name)) & DONE if value else owner and set(words(name)) & RUNNING)
        case Assign(targets=(Name(path=(*_, name)),), value=Const() | Name() as value, op=""):
            return bool({"status", "state"} & set(words(name)) and _status(value) & DONE)
        case Call(callee=Name(path=(*_, name)), args=args):
            found = set(words(name))
            if found & FAILED or name in _LOGS:
                return False
            if "set" in found and args and isinstance(args[0], Const) and isinstance(args[0].value, bool):
                return bool(found & (DONE if args[0].value else RUNNING))
            if found & {"set", "update", "emit", "resolve", "mark", "dispatch", "report"}:
                return any(_status(arg) & DONE and not _status(arg) & FAILED for arg in args) or bool(
                    "mark" in found and found & DONE
                )
            return bool(found & DONE) and found <= DONE | OF_WORK
    return False


def _near(before: Nodes, *more: type[Node]) -> Iterator[Node]:
    for node in before:
        match node:
            case Call(callee=callee):
                if not any(isinstance(p, Name) and set(p.path) & _LOGS for p in walk(callee)):
                    yield node
            case Assign():
                yield node
            case _ if isinstance(node, more):
                yield node


def _statuses(exit: Exit) -> set[str]:
    found: set[str] = set()
    if exit.value is not None:
        found |= _status(exit.value)
    for node in _near(exit.before):
        match node:
            case Assign(targets=(Name(path=(*_, name)),), value=Const(value=True)):
                found |= set(words(name))
            case Assign(value=value) if not any(isinstance(part, Call) for part in walk(value)):
                found |= _status(value)
            case Call(callee=Name(path=(*_, name)), args=args):
                found |= set(words(name)) | {word for arg in args for word in _status(arg)}
    return found


def _status(value: Node) -> set[str]:
    """The words of a status in a value; what a sentence says is only told to somebody."""
    found: set[str] = set()
    for part in walk(value, functions=False):
        match part:
            case Const(value=str(text)) if STATUS.fullmatch(text):
                found |= set(words(text))
            case Name(path=(*_, name)):
                found |= set(words(name))
    return found
