"""A workflow out of TOML.

    start = "draft"                    # the first movement, if it is left out

    [[movement]]
    name = "draft"
    instruction = "Write the chapters one by one."   # or instruction_template = "pursue"
    tools = ["read_file", "write_file"]              # all that the goal allows, if it is left out
    default_next = "review"            # a movement, COMPLETE, ABORT (if it is left out) or ASK
    end_turn = "nudge"                 # if it is left out; or claim
    verifies = false                   # if it is left out; true where it only looks for faults

A mistake is told in one line: the file, the line, the field, its value and what would be right.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from goalmode.domain.text import one_line
from goalmode.domain.workflow import EndTurn, Fault, Known, Movement, Workflow, faults
from goalmode.errors import BadInput
from goalmode.workflows.lines import line_of

SHIPPED = ("pursue", "polish")

NOTHING_KNOWN = Known()

MAX_BYTES = 500_000
"""Longest file that is read."""

_TOP: Mapping[str, tuple[type, str]] = {
    "start": (str, "a movement's name, as text"),
    "movement": (list, "tables [[movement]]"),
}
_MOVEMENT: Mapping[str, tuple[type, str]] = {
    "name": (str, "a text"),
    "instruction": (str, "a text"),
    "instruction_template": (str, "a template's name, as text"),
    "tools": (list, "a list of tools' names"),
    "default_next": (str, "a movement's name, COMPLETE, ABORT or ASK, as text"),
    "end_turn": (str, " or ".join(EndTurn)),
    "verifies": (bool, "true or false"),
}


def load_workflow(given: str, known: Known = NOTHING_KNOWN) -> Workflow:
    """The shipped workflow called `given`, or the one in the TOML file of that path.

    Args:
        known: names that movements are held to; what is not known is found out by the first wakeup.

    Raises:
        BadInput: there is no such workflow or file, or something in it is wrong.
    """
    if given in SHIPPED:
        return shipped(given)
    expected = f"one of {', '.join(SHIPPED)}, or a TOML file"
    try:
        with Path(given).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("workflow", given, f"a file of UTF-8 text; byte {error.start} is none") from None
    except OSError as error:
        raise BadInput("workflow", given, f"{expected} that can be read ({error.strerror})") from None
    except ValueError:
        raise BadInput("workflow", given, expected) from None
    if len(data) > MAX_BYTES:
        raise BadInput("workflow", given, f"a file of at most {MAX_BYTES:,} bytes")
    return parse_workflow(text, one_line(Path(given).stem, 80), one_line(given, 200), known)


def shipped(name: str) -> Workflow:
    """One of `SHIPPED`."""
    file = resources.files(__package__).joinpath(f"{name}.toml")
    return parse_workflow(file.read_text("utf-8"), name, file.name)


def parse_workflow(text: str, name: str, source: str, known: Known = NOTHING_KNOWN) -> Workflow:
    """The workflow that `text` describes.

    Args:
        name: it is stored under.
        source: what mistakes are told of, such as a path.
        known: names that movements are held to.

    Raises:
        BadInput: a mistake; only the first is told.
    """
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput("workflow", source, f"valid TOML: {one_line(str(error), 200)}") from None

    def wrong(fault: Fault) -> BadInput:
        line = line_of(text, fault.movement, fault.field)
        return BadInput(f"{source}, line {line}: {fault.field}", fault.value, fault.expected)

    _check(table, _TOP, partial(Fault, None), wrong)
    movements = []
    for position, given in enumerate(table.get("movement", [])):
        fault = partial(Fault, position)
        if not isinstance(given, dict):
            raise wrong(fault("movement", given, "a table [[movement]]"))
        _check(given, _MOVEMENT, fault, wrong)
        movements.append(_movement(given, fault, wrong))
    start = table.get("start", movements[0].name if movements else "")
    made = Workflow(name, start, tuple(movements))
    mistake = next(faults(made, known), None)
    if mistake is not None:
        raise wrong(mistake)
    return made


Wrong = Callable[[Fault], BadInput]
At = Callable[[str, object, str], Fault]


def _check(table: Mapping[str, Any], known: Mapping[str, tuple[type, str]], at: At, wrong: Wrong) -> None:
    """Raises the first unknown key, and the first value of another type than its key has."""
    for key, value in table.items():
        if key not in known:
            raise wrong(at(one_line(key, 80), value, f"no key; the keys are {', '.join(known)}"))
        kind, expected = known[key]
        if not isinstance(value, kind):
            raise wrong(at(key, value, expected))


def _movement(given: Mapping[str, Any], at: At, wrong: Wrong) -> Movement:
    fields = dict(given)
    if "name" not in fields:
        raise wrong(at("name", "", "a name; every movement has one"))
    if "tools" in fields:
        named = [tool for tool in fields["tools"] if not isinstance(tool, str)]
        if named:
            raise wrong(at("tools", named[0], _MOVEMENT["tools"][1]))
        fields["tools"] = tuple(fields["tools"])
    if "end_turn" in fields:
        if fields["end_turn"] not in tuple(EndTurn):
            raise wrong(at("end_turn", fields["end_turn"], _MOVEMENT["end_turn"][1]))
        fields["end_turn"] = EndTurn(fields["end_turn"])
    return Movement(**fields)
