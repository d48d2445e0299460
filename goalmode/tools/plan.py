"""Which calls of a reply can run, and what is wrong with those that cannot. Nothing is guessed, mended or emptied."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.messages import ToolCall
from goalmode.domain.text import one_line
from goalmode.tools.registry import Registry, Tool
from goalmode.tools.schema import validate

MAX_CALLS = 64
"""Calls of one reply that are run; those beyond are skipped, each with a result."""

MAX_ARGUMENTS = 2_000_000
"""Bytes of one call's arguments."""

MAX_DEPTH = 64
"""Nesting of one call's arguments."""

MAX_PROBLEM = 1_900
"""Characters of an error result, so that no reply can fill the context with its own mistakes."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One call, either ready to run or with its outcome decided.

    Attributes:
        tool: None where the name is unknown.
        arguments: exactly what the model wrote; None where `problem` says why not.
        problem: the result of a call that is not run; empty if it is to run.
        outcome: of a call that is not run; None if it is to run.
    """

    call: ToolCall
    position: int
    tool: Tool | None
    arguments: dict[str, Any] | None
    problem: str = ""
    outcome: CallOutcome | None = None


def plan(calls: Sequence[ToolCall], registry: Registry, allowed: frozenset[Effect]) -> tuple[Planned, ...]:
    """What to do with each call, in order. `allowed` are the effects on offer in this turn."""
    return tuple(_planned(call, position, registry, allowed) for position, call in enumerate(calls))


def _planned(call: ToolCall, position: int, registry: Registry, allowed: frozenset[Effect]) -> Planned:
    tool = registry.lookup(call.name)

    def refused(outcome: CallOutcome, problem: str) -> Planned:
        return Planned(call, position, tool, None, one_line(problem, MAX_PROBLEM), outcome)

    if position >= MAX_CALLS:
        problem = (
            f"not executed: at most {MAX_CALLS} calls of one reply are run, this was number {position + 1}"
        )
        return refused(CallOutcome.SKIPPED, problem)
    if tool is None:
        valid = ", ".join(t.name for t in registry if t.effect in allowed) or "none"
        return refused(
            CallOutcome.FAILED,
            f"there is no tool {one_line(call.name[:81], 80)!r}; the valid names are: {valid}",
        )
    if tool.effect not in allowed:
        return refused(CallOutcome.DENIED, f"{tool.name}: denied: {_only(allowed)} now")
    # Many servers send no text at all for a tool that needs no arguments.
    nothing = not call.arguments.strip() and not tool.spec.parameters.get("required")
    arguments, problem = parse_arguments("{}" if nothing else call.arguments)
    if arguments is not None and not tool.checks_arguments:
        problem = "; ".join(validate(tool.spec.parameters, arguments))
    if problem:
        advice = "The tool did not run. Send one JSON object that matches its schema."
        return refused(CallOutcome.FAILED, f"{tool.name}: {one_line(problem, 1_200)}. {advice}")
    return Planned(call, position, tool, arguments)


def parse_arguments(text: str) -> tuple[dict[str, Any] | None, str]:
    """The object that `text` is, or None and what is wrong with it.

    Stricter than `json.loads`: no NaN or infinity, no repeated names, bounded size and depth.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_ARGUMENTS:
        return (
            None,
            f"the arguments are {size} bytes long, at most {MAX_ARGUMENTS} are taken; {_preview(text)}",
        )
    try:
        value = json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return (
            None,
            f"the arguments are not valid JSON: {error.msg} at character {error.pos}; {_preview(text)}",
        )
    except RecursionError:
        return None, f"the arguments are nested deeper than {MAX_DEPTH}; {_preview(text)}"
    except ValueError as error:
        return None, f"the arguments are not valid JSON: {error}; {_preview(text)}"
    if not isinstance(value, dict):
        return None, f"the arguments must be a JSON object; {_preview(text)}"
    problem = _too_much(value)
    return (None, f"{problem}; {_preview(text)}") if problem else (value, "")


def _only(allowed: frozenset[Effect]) -> str:
    if not allowed:
        return "no tools are offered"
    return f"only {' and '.join(effect.value for effect in Effect if effect in allowed)} tools are offered"


def _preview(text: str) -> str:
    return f"they begin: {one_line(text[:201], 200)}" if text else "they are empty"


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {one_line(repeated[:81], 80)!r} is given twice in one object")
    return made


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _too_much(value: object) -> str:
    """A number that is none, or nesting beyond the bound; walked level by level, so that no depth can hurt."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below = [v for item in level for v in (item.values() if isinstance(item, dict) else item)]
        if any(isinstance(item, float) and not math.isfinite(item) for item in below):
            return "the arguments hold a number that is too large"
        level = [item for item in below if isinstance(item, dict | list)]
        if not level:
            return ""
    return f"the arguments are nested deeper than {MAX_DEPTH}"
