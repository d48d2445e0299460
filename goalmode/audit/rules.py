"""Which of the ways out of a control loop are guesses?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goalmode.audit.conditions import Meaning, Way, counter, meaning, ways
from goalmode.audit.endings import failed, hands_on, says_done
from goalmode.audit.exits import Exit, goes_on, of_body
from goalmode.audit.findings import Signal
from goalmode.audit.handled import told
from goalmode.audit.replies import presence, reads_reason, reasons
from goalmode.audit.tree import Assign, Const, If, Leave, Name, Node, Op, Switch, walk
from goalmode.audit.units import Unit
from goalmode.audit.words import RESULTS, Reason, words

_HEURISTIC = {Meaning.IDLE, Meaning.QUIET, Meaning.TIME, Meaning.FILE}
_GUESSES = {*_HEURISTIC, Meaning.NO_TOOLS, Meaning.ENDED}
_EXPLICIT = {Meaning.ENDED, Meaning.SAID}
_NO_GUESS = {*_EXPLICIT, Meaning.TOOLS, Meaning.EMPTY}

Found = tuple[int, Signal, str]
"""A line, the signal, and what it is there."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """An exit that is no failure, in one of the ways to it."""

    exit: Exit
    way: Way
    about: frozenset[Meaning]


def judge(unit: Unit) -> Iterator[Found]:
    """What is wrong with one place that may decide whether an agent goes on."""
    _learn_idling(unit)
    known: dict[tuple[int, bool], Meaning] = {}
    reached = [
        one
        for exit in unit.exits
        if exit.how != "raise" and exit.caught is None and not failed(exit) and not _fails_after(exit, unit)
        for way in ways(exit, unit.names)
        if Meaning.STOPPED not in (one := _reached(exit, way, unit, known)).about
    ]
    if not any(one.about & _GUESSES for one in reached) and not _stands_in(unit):
        return
    controls = _controls(unit, reached)
    explicit = any(r.about & _EXPLICIT for r in reached)
    found: dict[tuple[int, Signal], Found] = {}
    for one in reached:
        if controls or (unit.kind == "loop" and unit.is_agents()):
            for line, signal, what in _heuristics(one, unit, reached, explicit=explicit, controls=controls):
                found.setdefault((line, signal), (line, signal, what))
    if controls and not found:
        for line, signal, what in _reasons(unit, reached):
            found.setdefault((line, signal), (line, signal, what))
    yield from found.values()


def _reached(exit: Exit, way: Way, unit: Unit, known: dict[tuple[int, bool], Meaning]) -> _Reached:
    about = set()
    for guard in way:
        key = (id(guard.test), guard.holds)
        if key not in known:
            known[key] = meaning(guard, unit.names)
        about.add(known[key])
    return _Reached(exit, way, frozenset(about))


def _fails_after(exit: Exit, unit: Unit) -> bool:
    """Whether a failure is what follows the loop for an exit that goes there."""
    match unit.after:
        case (Leave() as leave, *_) if exit.how in ("test", "break", "flag"):
            return any(end.how == "raise" or failed(end) for end in of_body((leave,)))
    return False


def _learn_idling(unit: Unit) -> None:
    """Counters that grow only where a reply has no tool calls count idling, whatever they are called."""
    where: dict[tuple[str, ...], list[bool]] = {}
    for node in unit.nodes():
        if isinstance(node, If):
            sign = presence(node.test, unit.names)
            for branch, without in ((node.then, sign < 0), (node.orelse, sign > 0)):
                for part in walk(*branch, functions=False):
                    match part:
                        case Assign(targets=(Name(path=path),), op="+" | "-"):
                            where.setdefault(path, []).append(without)
    unit.names.learn_idling(path for path, without in where.items() if all(without))


def _controls(unit: Unit, reached: list[_Reached]) -> bool:
    """Whether it is an agent's control loop: it asks a model in each round, and can go on after the tools have run."""
    if unit.kind == "decision":
        return any(Meaning.NO_TOOLS in r.about for r in reached)
    if unit.loop is not None and not goes_on(unit.loop.body):
        return False  # it is left in the first round, unless that fails: it tries again, it does not go on
    asks = unit.asks()
    if unit.kind == "recursion" and not asks:
        return False
    for node in unit.nodes():
        if isinstance(node, If | Op | Name | Switch):
            test = node.test if isinstance(node, If) else node.subject if isinstance(node, Switch) else node
            of_reply = presence(test, unit.names) or reads_reason(test, unit.names)
            if of_reply and unit.names.is_new(test, from_call=not asks):
                return True
    return asks and any(r.about & _HEURISTIC for r in reached)


def _heuristics(
    one: _Reached, unit: Unit, reached: list[_Reached], *, explicit: bool, controls: bool
) -> Iterator[Found]:
    if one.about & _EXPLICIT:
        return
    done = says_done(one.exit)
    if Meaning.IDLE in one.about and (done or not explicit):
        name = next(filter(None, (counter(guard.test, unit.names) for guard in one.way)), "")
        yield (
            one.exit.line,
            Signal.IDLE_COUNT,
            f"`{name}` counts rounds in which nothing happens, and ends {_the(unit)}",
        )
    if one.about & {Meaning.QUIET, Meaning.TIME} and not explicit:
        others = any(not r.about & {Meaning.QUIET, Meaning.TIME} for r in reached)
        if Meaning.QUIET in one.about or done or (controls and not others):
            yield one.exit.line, Signal.TIMEOUT, f"a clock ends {_the(unit)}"
    if Meaning.FILE in one.about and not explicit and (controls or _is_result(one, unit)):
        yield one.exit.line, Signal.FILE_EXISTENCE, f"a file that is there ends {_the(unit)}"


def _the(unit: Unit) -> str:
    return f"the loop of line {unit.line}" if unit.kind == "loop" else f"`{unit.owner.rpartition('.')[2]}`"


def _is_result(one: _Reached, unit: Unit) -> bool:
    """Whether the file that is waited for is something that an agent makes."""
    spelled = {w for guard in one.way for text in unit.names.spelled(guard.test) for w in words(text)}
    return bool(spelled & RESULTS)


def _reasons(unit: Unit, reached: list[_Reached]) -> Iterator[Found]:
    own = told([*unit.nodes(), *walk(*unit.after)], unit.names)
    known = unit.functions.with_helpers(own)
    handled = known.reasons
    if Reason.CUT in handled or len(handled - {Reason.TOOLS, Reason.END}) > 1:
        return
    # The plainest way out says most about the loop.
    for one in sorted(reached, key=lambda one: len(one.way)):
        guesses = Meaning.NO_TOOLS in one.about and not one.about & _NO_GUESS
        ends = unit.kind != "decision" or _ends(one.exit.value)
        if guesses and ends and not hands_on(one.exit, unit.names):
            what = f"a reply without tool calls ends {_the(unit)}, whatever its stop reason"
            yield one.exit.line, Signal.NOT_TOOL_USE, what
            return
    if (stand_in := _stands_in(unit)) is not None:
        what = f"a reply without tool calls stands in {_the(unit)} as a call of its own, whatever its stop reason"
        yield stand_in, Signal.NOT_TOOL_USE, what
        return
    ended = next((r for r in reached if Meaning.ENDED in r.about), None)
    if (
        ended is not None
        and not known.default
        and not _fails_otherwise(unit)
        and not hands_on(ended.exit, unit.names)
    ):
        missing = [kind.value for kind in Reason if kind not in handled | {Reason.TOOLS, Reason.END}]
        yield (
            ended.exit.line,
            Signal.END_TURN_ALONE,
            f"end_turn ends {_the(unit)}; not handled: {', '.join(missing)}",
        )


def _ends(value: Node | None) -> bool:
    """Whether a decision says that the agent is at its end."""
    match value:
        case Const(value=bool()):
            return True
        case Const(value=str(text)) | Name(path=(*_, text)):
            return bool({"end", "done", "stop", "finish", "final"} & set(words(text)))
    return False


def _fails_otherwise(unit: Unit) -> bool:
    """Whether what is no known reason ends as a failure, or with its reason."""
    for exit in unit.exits:
        tells = exit.how == "raise" or failed(exit) or hands_on(exit, unit.names)
        if tells and any(reasons(g.test, unit.names) and g.holds is _negated(g.test) for g in exit.given):
            return True
    return False


def _negated(test: Node) -> bool:
    return isinstance(test, Op) and test.op == "!="


def _stands_in(unit: Unit) -> int | None:
    """The line at which a reply without tool calls is given a call that the model did not make."""
    for node in unit.nodes():
        if isinstance(node, If) and presence(node.test, unit.names) < 0:
            for part in walk(*node.then, functions=False):
                if isinstance(part, Assign) and _is_no_tool(part.value):
                    return part.line
    return None


def _is_no_tool(value: Node) -> bool:
    return any(
        isinstance(part, Const)
        and isinstance(part.value, str)
        and words(part.value)[:2] in (("no", "tool"), ("no", "tools"))
        and " " not in part.value
        for part in walk(value)
    )
