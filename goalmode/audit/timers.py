"""Clocks outside of loops: timers that mark an agent's work as done, and timeouts that are told as success."""

from __future__ import annotations

from collections.abc import Iterator

from goalmode.audit.conditions import Meaning, meaning, ways, ways_of
from goalmode.audit.endings import failed, marks_done, says_done
from goalmode.audit.exits import Exit, of_body
from goalmode.audit.findings import Signal
from goalmode.audit.names import Names
from goalmode.audit.replies import presence, reads_reason
from goalmode.audit.rules import Found
from goalmode.audit.tree import Call, Class, Const, Function, If, Loop, Name, Node, Nodes, Switch, Try, walk
from goalmode.audit.units import is_asking
from goalmode.audit.words import DONE, EVENTS, says_agent, snake, words

_TIMERS = frozenset(["setTimeout", "setInterval", "Timer", "call_later"])
_LISTENS = frozenset(["on", "once", "addEventListener", "subscribe", "addListener"])
_EXPLICIT = {Meaning.SAID, Meaning.ENDED, Meaning.REASON}
_CLOCKS = {Meaning.TIME, Meaning.QUIET, Meaning.IDLE, Meaning.FILE}


def judge_timers(body: Nodes) -> Iterator[Found]:
    """What is wrong with the timers and timeouts of a file."""
    functions = {node.name: node for node in walk(*body) if isinstance(node, Function) and node.name}
    for around in _outermost(body):
        names = Names(around.body)
        if not _is_about_agents(around, names) or _has_signal(around, names):
            continue
        for node in walk(*around.body):
            match node:
                case Call(callee=Name(path=(*_, name)), args=args) if name in _TIMERS:
                    for callback in args:
                        yield from _timer(name, _body(callback, functions), names)
                case Try(body=tried, handlers=handlers) if _asks(tried):
                    for handler in handlers:
                        if handler.caught is not None and _is_timeout(handler.caught):
                            yield from _told(handler.body)


def _outermost(body: Nodes) -> Iterator[Function | Class]:
    """Functions and classes that stand in no other."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, Function | Class):
            yield node
        else:
            stack.extend(reversed(node.parts))


def _is_about_agents(around: Function | Class, names: Names) -> bool:
    if says_agent(around.name):
        return True
    for node in walk(*around.body):
        match node:
            case Call() if is_asking(node):
                return True
            case Function(name=name) if says_agent(name):
                return True
            case Name(path=path) if any(map(says_agent, path)) or presence(node, names):
                return True
    return False


def _asks(body: Nodes) -> bool:
    for node in walk(*body):
        match node:
            case Call() if is_asking(node):
                return True
            case Name(path=path) if any(map(says_agent, path)):
                return True
    return False


def _has_signal(around: Function | Class, names: Names) -> bool:
    """Whether an explicit signal stands beside the timer: a terminal reason, an event, a completing tool."""
    for node in walk(*around.body):
        match node:
            case Call(callee=Name(path=(*_, name)), args=(Const(value=str(event)), *_)) if name in _LISTENS:
                if snake(event) in EVENTS or set(words(event)) & DONE:
                    return True
            case If(test=test) | Loop(test=Node() as test):
                both = [*ways_of(test, True, names), *ways_of(test, False, names)]
                if any(meaning(guard, names) in _EXPLICIT for way in both for guard in way):
                    return True
            case Switch(subject=subject, cases=cases):
                values = (value for case in cases for value in case.values)
                told = (snake(str(v.value)) for v in values if isinstance(v, Const))
                if reads_reason(subject, names) or EVENTS.intersection(told):
                    return True
    return False


def _body(callback: Node, functions: dict[str, Function]) -> Nodes:
    """What a timer does: the function that it is given, or its call by name."""
    match callback:
        case Function(body=body):
            return body
        case Name(path=(*_, name)) if name in functions:
            return functions[name].body
        case Name():
            return (Call(callback.line, callback),)
    return ()


def _timer(timer: str, body: Nodes, names: Names) -> Iterator[Found]:
    for exit in (*of_body(body, marks_done), *_returned(body)):
        if exit.how != "flag" or failed(exit):
            continue
        about = {meaning(guard, names) for way in ways(exit, names) for guard in way}
        # What repeats looks at something each time; only a clock or a file is no signal.
        if timer != "setInterval" or about & _CLOCKS:
            signal = Signal.FILE_EXISTENCE if Meaning.FILE in about else Signal.TIMEOUT
            yield exit.line, signal, f"a timer (`{timer}`) marks the work as done"
            return


def _returned(body: Nodes) -> Iterator[Exit]:
    """`() => finish()` returns what it calls."""
    for exit in of_body(body):
        if exit.value is not None and marks_done(exit.value):
            yield Exit(exit.line, "flag", exit.given, (exit.value,))


def _is_timeout(caught: Node) -> bool:
    names = (node.path[-1] for node in walk(caught) if isinstance(node, Name) and node.path)
    return any("timeout" in words(name) for name in names)


def _told(body: Nodes) -> Iterator[Found]:
    for exit in of_body(body, marks_done):
        if exit.how != "raise" and says_done(exit) and not failed(exit):
            yield exit.line, Signal.TIMEOUT, "a time that is up is told as success"
            return
