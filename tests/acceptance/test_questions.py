"""Rows B122, B124 and B140 where processes matter: who asks, who answers and who steers are not the same one."""

from __future__ import annotations

import threading
from pathlib import Path

from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import eventually
from tests.acceptance.world import Provider, complete, mark

ASKS = steps.tool(
    "complete",
    {
        "status": "needs_user_input",
        "summary": "?",
        "missing_info": "Which colour?",
        "why_no_default": "It is printed.",
        "options": ["blue", "green"],
        "default": "green",
        "default_after_seconds": 3_000,
    },
)


def test_an_edit_and_a_note_while_the_model_is_silent(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """B140: other processes change the objective and add a note in turn 3: the next request of the same wakeup holds
    both, and what the run stores afterwards restores nothing."""
    goal = goalmode.new("Mark with the old word.", workspace, provider.url, "--deliverable", "marks")
    silent = threading.Event()
    provider.script(mark(), mark(), steps.stall(mark(), silent), mark(), complete())

    try:
        run = goalmode.start("run", goal)
        run.until(lambda: len(provider.requests) == 3, "the third request")
        edited = goalmode.process("edit", goal, "--objective", "Mark with the new word.")
        noted = goalmode.process("note", goal, "Never touch the tests.")
    finally:
        silent.set()

    assert (edited.code, noted.code, run.ended()) == (0, 0, 0), run.err
    assert [provider.told(n).count("Mark with the new word.") for n in range(5)] == [0, 0, 0, 1, 1]
    assert [provider.told(n).count("Never touch the tests.") for n in range(5)] == [0, 0, 0, 1, 1]
    shown = goalmode.show(goal)
    assert (shown["objective"], shown["objective_revision"]) == ("Mark with the new word.", 2)
    assert [entry["text"] for entry in shown["inbox"]] == ["revision 2", "Never touch the tests."]
    assert len(shown["wakeups"]) == 1


def test_a_waiting_run_goes_on_with_one_of_two_answers(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """B122, B124: of two answers at once one is taken, the other is told; the run that waits goes on by itself, with
    exactly one wakeup, whose context holds question and answer. The model is silent until both have been told: a goal
    that is done asks nothing any more."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    told = threading.Event()
    provider.script(ASKS, steps.stall(mark(), told), complete())
    run = goalmode.start("run", goal)
    run.until(lambda: goalmode.show(goal)["status"] == "WAITING_USER", "the question")
    asked = len(provider.requests)

    try:
        both = [goalmode.start("answer", goal, "--option", str(n)) for n in (1, 2)]
        codes = [child.ended() for child in both]
    finally:
        told.set()

    assert asked == 1
    assert sorted(codes) == [0, 1]
    taken, refused = both if codes[0] == 0 else reversed(both)
    assert "Q1 is answered" in taken.out
    assert "Q1 was answered already, by the user" in refused.err
    assert run.ended() == 0, run.err
    eventually(lambda: len(provider.requests) == 3, "the last request")
    answer = "blue" if codes[0] == 0 else "green"
    assert f"Which colour?\n  answer: {answer}\n" in provider.told(1)
    assert [w["exit_reason"] for w in goalmode.show(goal)["wakeups"]] == [
        "NEEDS_USER_INPUT",
        "CURRENT_TASK_DONE",
    ]
