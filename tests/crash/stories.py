"""Goals whose first wakeup makes every kind of commit, and models that pursue them by what they find in the workspace.

A model remembers nothing: what it does next follows from the marks that its tools have left and from the request, so
it works on after any death as it would have without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.budget import Limits
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import Assistant, Reply, Request, Usage
from goalmode.domain.signals import ErrorKind
from goalmode.domain.workflow import Movement, Workflow
from goalmode.errors import ModelError
from goalmode.testing import call, calls
from tests.crash.marks import FILE

FACT = "The gauge stands at 5.04 m."

PAIR = Workflow(
    "pair",
    "first",
    (Movement("first", "Look around.", default_next="second"), Movement("second", "Now work.")),
)

SUCCESS = call("complete", status="success", summary="Written as wanted.")
SAVE = call("update_working_checkpoint", key_info=FACT)


@dataclass(frozen=True)
class Look:
    """What a model sees: the request, and what was done in the workspace."""

    request: Request
    done: frozenset[str]
    asked: int
    """Requests before this one, over all wakeups."""

    @property
    def text(self) -> str:
        """All that the request says."""
        said = [c.arguments for m in self.request.messages if isinstance(m, Assistant) for c in m.calls]
        return "\n".join([*(m.text for m in self.request.messages), *said])

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.request.tools)


Model = Callable[[Look], Reply]


@dataclass(frozen=True)
class Story:
    """A goal, who pursues it, and what comes of it.

    Attributes:
        commits: of the first wakeup, if nobody dies.
        tools: that run in it.
        ends: how that wakeup ends. finally_: how the goal does, with as many wakeups as that takes.
        before: wakeups that are over when the story begins; their model only works.
    """

    model: Model
    commits: tuple[str, ...]
    tools: int
    ends: ExitReason
    finally_: GoalStatus = GoalStatus.DONE
    limits: Limits | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: int = 0


def marks(*words: str) -> Reply:
    return calls(*(call("mark", word=word) for word in words))


def missing(look: Look, *words: str) -> tuple[str, ...]:
    return tuple(word for word in words if word not in look.done)


def works(look: Look) -> Reply:
    """One call, then three in one reply, then it saves, then it claims."""
    if "a" not in look.done:
        return marks("a")
    if left := missing(look, "b", "c", "d"):
        return marks(*left)
    return SUCCESS if FACT in look.text else SAVE


def marks_once(look: Look) -> Reply:
    """One mark, then success; where it may only save or claim, it saves."""
    if "mark" not in look.tools:
        return SAVE
    return SUCCESS if "a" in look.done else marks("a")


def never_ends(look: Look) -> Reply:
    """One mark after the other; where it may only save, it saves."""
    return marks(f"n{len(look.done)}") if "mark" in look.tools else SAVE


def reads_much(look: Look) -> Reply:
    """So much that its conversation begins anew."""
    left = missing(look, *(f"long-{n}" for n in range(5)))
    return marks(left[0]) if left else SUCCESS


def settles(look: Look) -> Reply:
    """Claims at once, and remembers one thing when it is asked to."""
    if look.tools == {"remember"}:
        return call("remember", kind="experience", text=FACT)
    return SUCCESS


def goes_over(look: Look) -> Reply:
    """Goes over to the second movement by itself."""
    if "Now work." not in look.text:
        return call("transition", to="second", reason="There is enough to begin with.")
    return marks_once(look)


def overflows(look: Look) -> Reply:
    """In the first movement, once it has read much, the provider finds everything too long."""
    if "Now work." not in look.text:
        if left := missing(look, *(f"long-{n}" for n in range(5))):
            return marks(left[0])
        raise ModelError(ErrorKind.CONTEXT_OVERFLOW, "prompt is too long")
    return marks_once(look)


def asks(look: Look) -> Reply:
    """Marks, then cannot go on without the user."""
    if "a" not in look.done:
        return marks("a")
    return call(
        "complete",
        status="needs_user_input",
        summary="The datum is missing.",
        missing_info="Which datum?",
        why_no_default="Charts differ.",
    )


def despairs(look: Look) -> Reply:
    """Says again and again that the same thing is in its way."""
    if "a" not in look.done:
        return marks("a")
    return call("complete", status="blocked", summary="No way.", obstacle="no access to the gauge")


def is_cut_off(look: Look) -> Reply:
    """The provider fails in the middle of the first reply."""
    if look.asked == 0:
        raise ModelError(ErrorKind.OVERLOADED, "overloaded", usage=Usage(100, output=7))
    return marks_once(look)


_TURN = ("intent", "outcome")
R = ExitReason

STORIES: dict[str, Story] = {
    "work": Story(
        works,
        ("claim", *_TURN, "intent", "result", "result", "result", "outcome", *_TURN, *_TURN, "close"),
        4,
        R.CURRENT_TASK_DONE,
    ),
    "wrap-up": Story(
        never_ends,
        ("claim", *_TURN, "reserve", *_TURN, "close"),
        1,
        R.GOAL_BUDGET_EXHAUSTED,
        GoalStatus.EXHAUSTED,
        limits=Limits(turns=2),
    ),
    "handoff": Story(
        marks_once,
        ("claim", *_TURN, *_TURN, "close"),
        1,
        R.MAX_TURNS_EXCEEDED,
        settings={"max_turns": 1},
    ),
    "window": Story(
        reads_much,
        ("claim", *_TURN * 3, "begin_anew", *_TURN * 2, "begin_anew", *_TURN, "close"),
        5,
        R.CURRENT_TASK_DONE,
        settings={"work_window": 5_000},
    ),
    "settlement": Story(
        settles,
        ("claim", *_TURN, "hold", "attempt", "intent", "remember", "outcome", "finish", "close"),
        0,
        R.CURRENT_TASK_DONE,
        settings={"max_turns": 14},
        before=1,
    ),
    "transition": Story(
        goes_over,
        ("claim", *_TURN * 3, "close"),
        1,
        R.CURRENT_TASK_DONE,
        settings={"workflow": PAIR},
    ),
    "forced movement": Story(
        overflows,
        ("claim", *_TURN * 5, "begin_anew", "move", "begin_anew", *_TURN * 2, "close"),
        6,
        R.CURRENT_TASK_DONE,
        settings={"workflow": PAIR},
    ),
    "question": Story(asks, ("claim", *_TURN * 2, "close"), 1, R.NEEDS_USER_INPUT, GoalStatus.WAITING_USER),
    "obstacle": Story(
        despairs,
        ("claim", *_TURN, *("intent", "met_obstacle", "outcome") * 2, "close"),
        1,
        R.YIELDED,
        GoalStatus.BLOCKED,
    ),
    "failed call": Story(is_cut_off, ("claim", "failed_call", "close"), 0, R.BACKEND_ERROR),
}

DELIVERABLES = (FILE,)
