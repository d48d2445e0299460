"""The demo's second act: a question and its answer, a false claim, the missing file, and what is remembered of it all.

The model is a rule behind HTTP on loopback again. It knows nothing but its request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from goalmode.cli.output import say
from goalmode.domain.contract import FileCheck, FileTest, Requirement
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.memory import SETTLEMENT_TURNS, SettlementState
from goalmode.inspection.show import show
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.questions import answer_question
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals, memory
from goalmode.state.store import Store
from goalmode.testing.steps import Step, text, tool

LETTER = "letter.txt"
NOTES = "notes.log"
OPTIONS = ("Dear Ms Li,", "Hello Li,")
CHOSEN = 2
OBJECTIVE = f"Write a letter to Li into {LETTER}. Ask how she is to be addressed."
FACT = f"{NOTES} holds what was found out for the letter, one line for each thing."
_NOTE = f"n=$(cat {NOTES} 2>/dev/null | wc -l); echo thing $((n + 1)) >> {NOTES}; echo things: $((n + 1))"

Wake = Callable[[Store, Goal], Awaitable[Exit | Skip]]


@dataclass(frozen=True, slots=True)
class Act:
    """What the second act came to; `problems` is what it was to show and did not."""

    goal: Goal
    told: tuple[str, ...]
    problems: tuple[str, ...]


def play(store: Store, root: Path, base_url: str, wake: Wake) -> Act:
    """Run the goal, answer its question, run it to its end."""
    goal = _goal(store, root, base_url)
    first = anyio.run(wake, store, goal)
    asked = show(store, goal.id)["questions"]
    if asked:
        answer_question(store, goal, option=CHOSEN)
    second = anyio.run(wake, store, goal)
    goal = goals.get(store, goal.id)
    seen = show(store, goal.id)
    remembered = [m.text for m in memory.every(store, workspace=goal.workspace)]
    rejected = sum(w["rejections"] for w in seen["wakeups"])
    letter = Path(goal.workspace) / LETTER
    told = (
        *(f"{q['id']}: {q['text']} - answered: {q['answer']}" for q in seen["questions"]),
        f"The host rejected {rejected} false claim(s): {LETTER} was not there yet.",
        f"Then {LETTER} was written, and the claim stood: {_reason(second)}.",
        f"The task had {SETTLEMENT_TURNS} or more turns, so it was asked once what is worth remembering: "
        f"{'; '.join(remembered) or 'nothing'}",
    )
    held = {
        "the goal asked its question": _reason(first) == ExitReason.NEEDS_USER_INPUT and len(asked) == 1,
        "a false claim was rejected": rejected == 1,
        "the goal was done in the end": _reason(second) == ExitReason.CURRENT_TASK_DONE,
        "the answer is in the letter": letter.is_file() and OPTIONS[CHOSEN - 1] in letter.read_text("utf-8"),
        "the task was settled": goal.settlement is SettlementState.DONE and remembered == [FACT],
    }
    return Act(goal, told, tuple(f"that {what}" for what, shown in held.items() if not shown))


def tell(act: Act) -> None:
    say()
    say(
        "A third goal asks a question, claims too early, is told what is missing, and settles when it is done:"
    )
    for line in act.told:
        say(f"  {line}")


def model(request: Mapping[str, Any], number: int) -> Step:
    """What the model does. It asks once there are notes enough, and has the answer from its context."""
    offered = {known["function"]["name"] for known in request["tools"]}
    if "shell" not in offered:  # Settlement: only memory is on offer.
        return tool("remember", {"kind": "experience", "text": FACT})
    said = "\n".join(str(message.get("content") or "") for message in request["messages"])
    things = max((int(n) for n in re.findall(r"things: (\d+)", said)), default=0)
    answered = next((o for o in OPTIONS if re.search(rf"answer[^\n]*{re.escape(o)}", said)), "")
    if not answered:
        if things < SETTLEMENT_TURNS:
            return tool("shell", {"command": _NOTE})
        question = {
            "missing_info": "How is Li to be addressed?",
            "why_no_default": "A wrong tone cannot be taken back.",
            "options": list(OPTIONS),
        }
        return tool("complete", {"status": "needs_user_input", "summary": "notes are taken", **question})
    claim = {"status": "success", "summary": f"{LETTER} is written", "evidence": [LETTER]}
    if LETTER in said and "was not accepted" in said and '"path"' not in _arguments(request):
        return tool("write_file", {"path": LETTER, "content": f"{answered}\n\nthe notes are enclosed.\n"})
    return tool("complete", claim) if offered else text("")


def _arguments(request: Mapping[str, Any]) -> str:
    """All arguments of calls so far."""
    return "\n".join(
        call["function"]["arguments"] for m in request["messages"] for call in m.get("tool_calls") or ()
    )


def _goal(store: Store, root: Path, base_url: str) -> Goal:
    workspace = root / "letter"
    workspace.mkdir()
    ends = Requirement(
        "", f"{LETTER} has an enclosure", file=FileCheck(FileTest.CONTAINS, LETTER, "enclosed")
    )
    settings = GoalSettings(model="openai:demo", base_url=base_url, max_turns=SETTLEMENT_TURNS + 5)
    return create_goal(store, GoalSpec(OBJECTIVE, str(workspace), (ends,), (LETTER,), settings=settings))


def _reason(ending: Exit | Skip) -> str:
    return str(ending.reason)
