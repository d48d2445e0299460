"""A goal's workflow: its movements, each with its instruction, its tools and what follows a forced exit from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from goalmode.domain.exits import ExitReason
from goalmode.domain.outside import PREFIX

COMPLETE = "COMPLETE"
"""Treat the forced exit as a claim of success that needs every check and every deliverable."""

ABORT = "ABORT"
"""Close the wakeup with the reason that forced the exit."""

ASK = "ASK"
"""Ask the user what to do."""

MAX_INSTRUCTION = 10_000
"""Longest instruction of a movement, in characters: it is shown whole in every context."""

MAX_MOVEMENTS = 20

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class EndTurn(StrEnum):
    """What a reply without a tool call means that the model has ended by itself."""

    NUDGE = "nudge"
    """It stopped early, or idles: it is told to go on, within bounds."""
    CLAIM = "claim"
    """It claims success, and is checked like a claim."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A phase of the work.

    Attributes:
        name: lower-case; what `transition` calls it.
        instruction: what to do in it, in the words of whoever wrote the workflow. Data, never a template.
        instruction_template: the name of a template below `movements/` that says it instead.
        tools: the reading and writing tools on offer; None for all that the goal allows. Those that save state or
            ask for an ending are always on offer.
        default_next: what follows a forced exit: a movement's name, COMPLETE, ABORT or ASK.
        verifies: it looks for faults and mends none. In a goal that runs until its limits, one that is left without a
            finding raises the bar.
    """

    name: str
    instruction: str = ""
    instruction_template: str = ""
    tools: tuple[str, ...] | None = None
    default_next: str = ABORT
    end_turn: EndTurn = EndTurn.NUDGE
    verifies: bool = False


@dataclass(frozen=True, slots=True)
class Workflow:
    """The movements of a goal. It is stored with the goal: a file that changes later does not change a goal."""

    name: str
    start: str
    movements: tuple[Movement, ...]

    def __getitem__(self, name: str) -> Movement:
        """Raises KeyError: there is no movement of that name."""
        found = next((m for m in self.movements if m.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(movement.name for movement in self.movements)

    def after(self, movement: Movement) -> Movement | None:
        """The movement that `default_next` names; None if it names none."""
        return self[movement.default_next] if movement.default_next in self.names else None


PURSUE = Workflow("pursue", "pursue", (Movement("pursue", instruction_template="pursue"),))
"""What a goal does that names no workflow."""


def overflow_next(default_next: str) -> str:
    """What follows an exit forced by a reply or a conversation that was cut: never success, never a question.

    The model's last words were cut off or written in a context that was no longer whole, so nothing may rest on them:
    COMPLETE and ASK become ABORT; a movement's name stays, since a movement starts freshly rendered.
    """
    return ABORT if default_next in (COMPLETE, ASK) else default_next


CUT = frozenset({ExitReason.OUTPUT_TRUNCATED, ExitReason.CONTEXT_OVERFLOW})
"""Forced exits after which `overflow_next` holds."""

FORCED = CUT | {ExitReason.EARLY_NO_TOOL, ExitReason.NO_PROGRESS}
"""Endings that the host forces on a movement. Every other one is somebody's decision, and stands."""


def forced_next(reason: ExitReason, default_next: str) -> str:
    """What follows a movement that ends for `reason`: a movement's name, COMPLETE, ASK, or ABORT: it ends for that."""
    if reason not in FORCED:
        return ABORT
    return overflow_next(default_next) if reason in CUT else default_next


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake in a workflow. `movement` is its position, None for the workflow as a whole."""

    movement: int | None
    field: str
    value: object
    expected: str


@dataclass(frozen=True, slots=True)
class Known:
    """What movements may name: tools, and templates of instructions. None where that is not known yet."""

    tools: Collection[str] | None = None
    templates: Collection[str] | None = None


def faults(workflow: Workflow, known: Known = Known()) -> Iterator[Fault]:
    """What is wrong with a workflow; what others follow from comes first."""
    names = workflow.names
    if not 1 <= len(names) <= MAX_MOVEMENTS:
        yield Fault(None, "movement", len(names), f"from 1 to {MAX_MOVEMENTS} tables [[movement]]")
    for position, name in enumerate(names):
        if name in names[:position]:
            yield Fault(position, "name", name, "a name that no other movement has")
    for position, movement in enumerate(workflow.movements):
        for field, value, expected in _movement_faults(movement, names, known):
            yield Fault(position, field, value, expected)
    if workflow.start not in names:
        yield Fault(None, "start", workflow.start, f"a movement's name: {', '.join(names)}")


def _movement_faults(
    movement: Movement, names: Collection[str], known: Known
) -> Iterator[tuple[str, object, str]]:
    if not _NAME.fullmatch(movement.name):
        yield "name", movement.name, "lower-case letters, digits, - and _, at most 40, a letter first"
    given, template = movement.instruction, movement.instruction_template
    if bool(given.strip()) == bool(template):
        yield "instruction", given, "a text that is not blank, or an instruction_template; one of them"
    if len(given) > MAX_INSTRUCTION:
        yield "instruction", given, f"at most {MAX_INSTRUCTION:,} characters; it has {len(given):,}"
    if "\x00" in given or any("\ud800" <= char <= "\udfff" for char in given):
        yield "instruction", given, "valid UTF-8 without NUL"
    if template and not _NAME.fullmatch(template):
        yield "instruction_template", template, "the name of a template below movements/, without its ending"
    if template and known.templates is not None and template not in known.templates:
        yield "instruction_template", template, f"one of: {', '.join(known.templates)}"
    of_ours = [tool for tool in movement.tools or () if not tool.startswith(PREFIX)]
    unknown = [tool for tool in of_ours if known.tools is not None and tool not in known.tools]
    if unknown:
        yield "tools", unknown[0], f"names out of: {', '.join(known.tools or ())}"
    if not isinstance(movement.verifies, bool):
        yield "verifies", movement.verifies, "true or false"
    if movement.default_next not in (*names, COMPLETE, ABORT, ASK):
        yield (
            "default_next",
            movement.default_next,
            f"{COMPLETE}, {ABORT}, {ASK} or one of {', '.join(names)}",
        )
