"""A long task settles into long-term memory once, between its ending and its closing, and never changes the ending."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.cost import Price
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, GoalSpec
from goalmode.domain.memory import EARLIEST_TURN, MAX_ATTEMPTS, SETTLEMENT_TURNS, MemoryKind, SettlementState
from goalmode.domain.messages import Reply, Request, ToolResult, Usage, User
from goalmode.domain.profile import Protocol
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError, StoreError
from goalmode.loop import settlement
from goalmode.loop.longterm import INVITATION_TOKENS
from goalmode.orchestrator.goals import create_goal, edit_goal, resume_goal, stop_goal
from goalmode.orchestrator.skip import Skip
from goalmode.state import journal, memory
from goalmode.state.store import Store
from goalmode.testing import call, calls, say
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.builtin.memory import NOTHING
from goalmode.wiring import workshop
from tests.loop.conftest import PROFILE, World
from tests.state.builders import rows

Make = Callable[..., World]

START = datetime(2030, 1, 1, tzinfo=UTC)

CLAIM = call("complete", status="success", summary="Written as wanted.")
NOTHING_TO_KEEP = say("Nothing qualifies.")
FACT = "The tide gauge answers on port 5432."
KEEP = call("remember", kind="environment", text=FACT)
BROKEN = ModelError(ErrorKind.SERVER, "bad gateway", status=502)
REFUSED = say("I would rather not.", stop=StopReason.REFUSAL)
CUT = replace(call("remember", kind="environment", text=FACT), stop=StopReason.MAX_TOKENS)
IGNORED = call("shell", command="echo still at work >> out.txt")


def work(turns: int, first: int = 0) -> list[Reply]:
    """Turns of work, none like another."""
    return [call("shell", command=f"echo {n} >> out.txt") for n in range(first, first + turns)]


def long(make: Make, **more: Any) -> World:
    return make(deliverables=("out.txt",), **more)


def purposes(world: World) -> list[str]:
    return rows(world.store, "SELECT purpose FROM turns ORDER BY id")


ASK = call(
    "complete",
    status="needs_user_input",
    summary="So far.",
    missing_info="which gauge",
    why_no_default="there are two",
)
"""Ends a wakeup whose work is not the point."""


def other(world: World, *steps: Any, objective: str = "Move the gauge.") -> World:
    """Another goal in the same workspace, after a wakeup with these steps."""
    spec = GoalSpec(objective, str(world.workspace))
    made = replace(world, goal=create_goal(world.store, spec), events=[])
    made.wake([*steps, ASK])
    return made


def settled(world: World) -> int:
    """Calls that were made for settlement."""
    return purposes(world).count("settlement")


def stands(store: Store) -> list[str]:
    return [m.text for m in reversed(memory.every(store))]


def prompt(world: World, number: int = -1) -> str:
    """What the model was asked last in a request."""
    last = world.requests[number].messages[-1]
    assert isinstance(last, User), last
    return last.text


def test_turn_14_exits_without_settlement(make: Make) -> None:
    """One turn below the threshold a task ends as it always did."""
    world = long(make)

    ending = world.wake([*work(13), CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "settlement" not in ending.facts
    assert world.now.spent.turns == 14
    assert world.now.settlement is SettlementState.NONE


def test_turn_15_settles_once(make: Make) -> None:
    """At 15 turns the ending is followed by one evaluation; it is charged, and is no turn."""
    world = long(make)

    ending = world.wake([*work(14), CLAIM, NOTHING_TO_KEEP])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["settlement"] == "done"
    assert settled(world) == 1
    assert (world.now.status, world.now.settlement) == (GoalStatus.DONE, SettlementState.DONE)
    assert world.now.spent.turns == 15
    assert world.now.spent.tokens == 16 * 120
    assert "15 or more turns" in prompt(world)
    assert [tool.name for tool in world.requests[-1].tools] == ["remember"]


@pytest.mark.parametrize("turns", [16, 40])
def test_after_turn_15_settles_once(make: Make, turns: int) -> None:
    """Beyond the threshold it is once too, not once for every 15 turns."""
    world = long(make)

    ending = world.wake([*work(turns - 1), CLAIM, KEEP])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert settled(world) == 1
    assert stands(world.store) == [FACT]
    assert world.now.spent.turns == turns


def test_explicit_call_prevents_the_gate(make: Make) -> None:
    """Who has settled of its own accord is not asked again."""
    world = long(make)

    ending = world.wake([*work(13), call("start_long_term_update"), KEEP, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert settled(world) == 0
    assert stands(world.store) == [FACT]
    assert "Remember a fact only if" in world.told(14)
    assert world.now.settlement is SettlementState.STARTED


def test_explicit_call_in_the_reply_that_claims_prevents_the_gate(make: Make) -> None:
    """What the reply itself has started counts."""
    world = long(make)

    ending = world.wake([*work(14), calls(call("start_long_term_update"), CLAIM)])

    assert (ending.reason, settled(world)) == (ExitReason.CURRENT_TASK_DONE, 0)


def test_noop_settlement_changes_no_memory(make: Make) -> None:
    """The evaluation is wanted, not a memory: the store holds what it held, byte for byte."""
    world = long(make)
    other(world, KEEP)
    before = rows(world.store, "SELECT * FROM memories"), rows(world.store, "SELECT * FROM memories_fts")

    world.wake([*work(14), CLAIM, NOTHING_TO_KEEP])

    assert settled(world) == 1
    after = rows(world.store, "SELECT * FROM memories"), rows(world.store, "SELECT * FROM memories_fts")
    assert after == before


def test_an_empty_reply_stores_nothing_and_is_an_answer(make: Make) -> None:
    """A model that ends its turn without a word has nothing to store."""
    world = long(make)

    ending = world.wake([*work(14), CLAIM, say("")])

    assert ending.facts["settlement"] == "done"


def test_no_user_tools_requests_no_settlement(make: Make) -> None:
    """Where the tools are taken away, nothing asks for them, and the model is not told of them."""
    world = long(make, user_tools=False)

    ending = world.wake([*work(19), CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert settled(world) == 0
    offered = {tool.name for tool in world.requests[0].tools}
    assert not offered & {"remember", "recall", "start_long_term_update"}
    assert "remember" not in world.told(0)


def test_autonomous_flow_is_exempt(make: Make) -> None:
    """An unattended flow ends without settlement. The tools are there if it wants them."""
    world = long(make, autonomous=True)

    ending = world.wake([*work(18), KEEP, CLAIM])

    assert (ending.reason, settled(world)) == (ExitReason.CURRENT_TASK_DONE, 0)
    assert stands(world.store) == [FACT]


def test_settlement_cannot_recurse(make: Make) -> None:
    """In settlement neither another one can be started, nor the ending be changed, nor work be done."""
    world = long(make)
    foreign = [
        call("start_long_term_update"),
        call("complete", status="blocked", summary="No.", obstacle="a wall"),
        call("wait", seconds=60, reason="later"),
    ]

    ending = world.wake([*work(14), CLAIM, *foreign])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "there is no tool 'wait'; the valid names are: remember" in ending.facts["settlement_detail"]
    assert settled(world) == MAX_ATTEMPTS
    assert world.now.status is GoalStatus.DONE
    outcomes = rows(world.store, "SELECT outcome FROM tool_calls ORDER BY id DESC LIMIT 3")
    assert outcomes == ["failed"] * 3


_THRESHOLDS = re.compile(
    r"(?:超过|超|大于|多于|more than|over|above|>=?|beyond)\s*1[0-9]\s*(?:轮|turns)|1[0-9]\+"
)


def test_threshold_wording() -> None:
    """One boundary, `>= 15`, worded alike in every template and description, and no other wording of it anywhere."""
    root = Path(__file__).parents[2] / "templates"
    wordings = {"en": f"{SETTLEMENT_TURNS} or more turns", "zh": f"达到 {SETTLEMENT_TURNS} 轮"}
    described = [" ".join(tool.spec.description.split()) for tool in builtin_tools()]
    for lang, wording in wordings.items():
        texts = {file.name: file.read_text("utf-8") for file in sorted((root / lang).rglob("*.j2"))}
        assert {name for name, text in texts.items() if wording in text} == {"settlement.j2", "system.j2"}
        texts |= {tool.name: text for tool, text in zip(builtin_tools(), described, strict=True)}
        for name, text in texts.items():
            plain = text.replace(wordings["en"], "").replace(wordings["zh"], "")
            assert not re.search(rf"\b{SETTLEMENT_TURNS}\b", plain), name
            assert not _THRESHOLDS.search(text), name
    assert [text for text in described if "or more turns" in text] == [
        text for text in described if wordings["en"] in text and f"from turn {EARLIEST_TURN} on" in text
    ]
    assert SETTLEMENT_TURNS == 15


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages_are_asked_alike(make: Make, lang: str) -> None:
    """The gate asks in the goal's language, with the same wording."""
    world = long(make, lang=lang)

    world.wake([*work(14), CLAIM, NOTHING_TO_KEEP])

    assert ("达到 15 轮" if lang == "zh" else "15 or more turns") in prompt(world)


def test_turns_are_counted_across_wakeups(make: Make) -> None:
    """8 + 7 turns are a task of 15; 8 + 6 are not, and handoffs are no turns."""
    for second, expected in ((6, 0), (7, 1)):
        world = long(make, max_turns=8)
        first = world.wake([*work(8), say("saved")])

        ending = world.wake([*work(second - 1, first=8), CLAIM, *[NOTHING_TO_KEEP] * expected])

        assert first.reason is ExitReason.MAX_TURNS_EXCEEDED
        assert ending.reason is ExitReason.CURRENT_TASK_DONE
        assert settled(world) == expected
        assert purposes(world).count("handoff") == 1


def test_reopening_begins_a_new_stretch(make: Make) -> None:
    """A goal that was done and is edited settles again only after 15 turns more."""
    world = long(make)
    world.wake([*work(14), CLAIM, NOTHING_TO_KEEP])

    edit_goal(world.store, world.now, objective="Write more.")
    world.wake([*work(5, first=50), CLAIM])
    assert settled(world) == 1

    edit_goal(world.store, world.now, objective="Write still more.")
    world.wake([*work(14, first=80), CLAIM, NOTHING_TO_KEEP])
    assert settled(world) == 2


@pytest.mark.parametrize(("turn", "accepted"), [(9, False), (10, True)])
def test_the_explicit_call_has_an_earliest_turn(make: Make, turn: int, accepted: bool) -> None:
    """Before turn 10 it is refused and does not count, so that the gate still asks."""
    world = long(make)
    started = [*work(turn - 1), call("start_long_term_update"), *work(14 - turn, first=turn)]

    ending = world.wake([*started, CLAIM, *([] if accepted else [NOTHING_TO_KEEP])])

    answer = [m.text for m in world.requests[turn].messages if isinstance(m, ToolResult)][-1]
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert settled(world) == (0 if accepted else 1)
    assert ("this is turn 9 of the task" in answer) is not accepted
    assert ("Then go on with the goal." in answer) is accepted


def test_the_earliest_turn_is_one_of_the_stretch(make: Make) -> None:
    """Turns of earlier wakeups count, those before a reopening do not."""
    world = long(make, max_turns=6)
    world.wake([*work(6), say("saved")])
    world.wake([*work(3, first=6), call("start_long_term_update"), CLAIM])
    assert world.now.settlement is SettlementState.STARTED

    edit_goal(world.store, world.now, objective="Write more.")
    world.wake([call("start_long_term_update"), *work(1, first=20), CLAIM])
    assert world.now.settlement is SettlementState.NONE


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (BROKEN, "bad gateway"),
        (REFUSED, "REFUSAL"),
        (CUT, "MAX_TOKENS"),
        (IGNORED, "there is no tool 'shell'"),
        (replace(KEEP, calls=(replace(KEEP.calls[0], arguments='{"kind": "env'),)), "not valid JSON"),
        (replace(say("Let me see."), stop=StopReason.PAUSE), "PAUSE"),
    ],
    ids=["500", "refusal", "cut", "ignored", "bad arguments", "pause"],
)
def test_failing_attempts_are_bounded_and_hold_nothing_up(make: Make, failure: Any, told: str) -> None:
    """B147: a failure is no settlement: it is tried again, three times in all; the ending is what it was."""
    world = long(make)

    ending = world.wake([*work(14), CLAIM, *[failure] * MAX_ATTEMPTS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["settlement"] == "failed"
    assert told.lower() in str(ending.facts["settlement_detail"]).lower()
    assert (world.now.status, world.now.settlement) == (GoalStatus.DONE, SettlementState.FAILED)
    assert rows(world.store, "SELECT settlement_attempts FROM wakeups") == [MAX_ATTEMPTS]
    assert stands(world.store) == []
    assert (world.workspace / "out.txt").read_text().splitlines() == [str(n) for n in range(14)]


@pytest.mark.parametrize("failure", [BROKEN, REFUSED, CUT, IGNORED], ids=["500", "refusal", "cut", "ignored"])
def test_a_failed_attempt_is_tried_again(make: Make, failure: Any) -> None:
    """B147: the next attempt can still succeed, and then it was no failure."""
    world = long(make)

    ending = world.wake([*work(14), CLAIM, failure, KEEP])

    assert ending.facts["settlement"] == "done"
    assert "settlement_detail" not in ending.facts
    assert stands(world.store) == [FACT]


def test_the_next_attempt_is_only_reminded(make: Make) -> None:
    """What is remembered is shown once; where no reply came, the same request goes out again."""
    world = long(make)

    world.wake([*work(14), CLAIM, BROKEN, REFUSED, KEEP])

    first, second, third = world.requests[-3:]
    assert second.messages == first.messages
    assert "attempt 3 of 3" in prompt(world)
    assert "Remember a fact only if" not in prompt(world)
    assert third.messages[: len(second.messages)] == second.messages


def test_calls_beside_a_memory_are_refused_and_it_is_kept(make: Make) -> None:
    """Of a reply that stores and works on, what it stores counts; the rest is answered with an error."""
    world = long(make)

    ending = world.wake([*work(14), CLAIM, calls(KEEP, IGNORED)])

    assert ending.facts["settlement"] == "done"
    assert stands(world.store) == [FACT]
    assert rows(world.store, "SELECT outcome FROM tool_calls ORDER BY id DESC LIMIT 2") == [
        "failed",
        "success",
    ]


def test_a_memory_that_is_refused_can_be_put_right(make: Make) -> None:
    """B145: the newer entry of another goal is kept and shown; ours is stored beside it, in the next attempt."""
    world = long(make)
    other(world, KEEP)
    moved = call("remember", kind="environment", text="It moved to port 6000.", replaces="M1")

    async def meanwhile(request: Request) -> Reply:
        await anyio.to_thread.run_sync(lambda: other(world, moved))
        return CLAIM

    replacing = call("remember", kind="environment", text="It is on 7000.", replaces="M1")
    seen: list[str] = []

    def beside(request: Request) -> Reply:
        seen.extend(m.text for m in request.messages if isinstance(m, ToolResult))
        return call("remember", kind="environment", text="It is on 7000.")

    ending = world.wake([*work(14), meanwhile, replacing, beside])

    assert ending.facts["settlement"] == "done"
    assert "the place of M1 was taken by M2 (It moved to port 6000.)" in seen[-1]
    assert "It moved to port 6000." in prompt(world, -2)
    assert FACT not in prompt(world, -2)
    assert stands(world.store) == ["It moved to port 6000.", "It is on 7000."]


def test_old_memories_are_replaced_and_new_ones_carry_their_source(make: Make) -> None:
    """What the model was shown it may replace; goal, wakeup and turn are kept."""
    world = long(make)
    other(world, KEEP)

    world.wake([*work(14), CLAIM, call("remember", kind="experience", text="7000 now.", replaces="M1")])

    [kept] = memory.every(world.store)
    assert (kept.label, kept.kind, kept.text) == ("M2", MemoryKind.EXPERIENCE, "7000 now.")
    assert (kept.goal, kept.wakeup, kept.turn) == (world.goal.uid, 1, 16)


def test_the_next_goal_in_the_workspace_knows(make: Make) -> None:
    """What was settled stands in the context of a later goal, as a record, where its objective's words find it."""
    world = long(make)
    world.wake([*work(14), CLAIM, KEEP])

    context = other(world, objective="Read the gauge.").told(0)

    assert '<long_term_memory from="agent">' in context
    assert f"M1 [environment, goal {world.goal.uid}, 2030-01-01] {FACT}" in context


@pytest.mark.parametrize(
    ("limits", "used", "seconds", "expected"),
    [
        (Limits(tokens=100_000), 80_000, 0, "done"),
        (Limits(tokens=100_000), 97_000, 0, "tokens limit 100000"),
        (Limits(cost_micro=100_000), 80_000, 0, "done"),
        (Limits(cost_micro=100_000), 97_000, 0, "cost limit $0.10"),
        (Limits(active_seconds=600.0), 100, 539, "done"),
        (Limits(active_seconds=600.0), 100, 541, "active seconds limit 600"),
        (Limits(deadline=START + timedelta(seconds=600)), 100, 541, "deadline limit"),
    ],
)
def test_unaffordable_settlement_is_skipped(
    make: Make, limits: Limits, used: int, seconds: int, expected: str
) -> None:
    """Nothing is sent that the goal's limits do not allow; the ending does not wait for it."""
    profile = replace(PROFILE, price=Price(1_000_000, 1_000_000, 1_000_000, 1_000_000))
    world = long(make, limits=limits, profile=profile)

    def dear(request: Request) -> Reply:
        world.clock.advance(seconds)
        return replace(CLAIM, usage=Usage(input=used))

    ending = world.wake([*work(14), dear, *[NOTHING_TO_KEEP] * (expected == "done")])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    if expected == "done":
        assert ending.facts["settlement"] == "done", ending.facts
        return
    assert (ending.facts["settlement"], settled(world)) == ("skipped", 0)
    assert expected in ending.facts["settlement_detail"]
    assert world.now.settlement is SettlementState.SKIPPED


def test_the_last_turn_of_a_budget_can_be_followed_by_settlement(make: Make) -> None:
    """It is no turn: a limit of turns that is used up does not forbid it."""
    world = long(make, limits=Limits(turns=15))

    ending = world.wake([*work(14), CLAIM, KEEP])

    assert ending.facts["settlement"] == "done"
    assert world.now.spent.turns == 15


def test_a_full_conversation_begins_anew_for_it(make: Make) -> None:
    """Where the prompt does not fit into the work window, the context is rendered anew; no request is larger."""
    window = 7_000
    world = long(make, work_window=window)
    talkative = [replace(one, text="tide " * 60) for one in work(14)]

    ending = world.wake([*talkative, CLAIM, KEEP])
    tokens = [_size(world, request) for request in world.requests]

    assert ending.facts["settlement"] == "done"
    assert max(tokens) <= window


def _size(world: World, request: Request) -> int:
    shop = workshop(world.now, PROFILE)
    return sum(map(shop.count_message, request.messages))


def test_a_window_that_holds_nothing_more_skips_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not even a context that is rendered anew leaves room, there is no settlement, and no overflow either."""
    world = long(make)
    monkeypatch.setattr(settlement, "invitation", lambda run, **_: "word " * 70_000)

    ending = world.wake([*work(14), CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["settlement"] == "skipped"
    assert "leaves no room" in ending.facts["settlement_detail"]


def test_an_invitation_is_never_longer_than_what_is_kept_for_it(make: Make) -> None:
    """However much is remembered, the prompt stays within its tokens and says what it leaves out."""
    world = long(make)
    texts = [f"{n} 潮汐 {'记录表 ' * 240}" for n in range(40)]
    other(world, calls(*(call("remember", kind="preference", text=text) for text in texts)))

    world.wake([*work(14), CLAIM, NOTHING_TO_KEEP])

    shop = workshop(world.now, PROFILE)
    assert shop.count_message(User(prompt(world))) <= INVITATION_TOKENS
    assert re.search(r"\(\d+ more are not shown\.\)", prompt(world))


def test_an_edit_during_settlement_lets_the_work_go_on(make: Make) -> None:
    """A claim that holds for another contract is no ending any more; the new contract is told and checked."""
    world = long(make)

    def edit(request: Request) -> Reply:
        edit_goal(world.store, world.now, objective="Write two.", deliverables=["out.txt", "two.txt"])
        return KEEP

    second = call("write_file", path="two.txt", content="2")
    ending = world.wake([*work(14), CLAIM, edit, CLAIM, second, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "settlement" not in ending.facts
    assert settled(world) == 1
    assert stands(world.store) == [FACT]
    assert "Write two." in world.told(16)
    assert "two.txt" in world.told(17)
    assert rows(world.store, "SELECT pending_exit FROM wakeups") == [None]
    assert [d.sha_verified is not None for d in world.now.deliverables] == [True, True]


@pytest.mark.parametrize("control", [Control.PAUSE, Control.ABORT])
def test_a_stop_during_settlement_does_not_beat_the_claim(make: Make, control: Control) -> None:
    """Accepted claim > user stop: the goal is done, and settlement is cut off."""
    world = long(make)

    async def stopped(request: Request) -> Reply:
        stop_goal(world.store, world.now, control)
        await anyio.sleep_forever()
        raise AssertionError

    ending = world.wake([*work(14), CLAIM, stopped])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert (ending.facts["settlement"], world.now.status) == ("failed", GoalStatus.DONE)
    assert f"{control.value} by the user" in ending.facts["settlement_detail"]
    assert world.now.deliverables[0].sha_verified is not None
    assert isinstance(world.begin(), Skip)


def test_a_signal_or_a_deadline_during_settlement_does_not_change_the_ending(make: Make) -> None:
    """Whatever ends the run, the wakeup is closed with what it had reached."""
    halted: list[Exit] = []
    world = long(make, limits=Limits(active_seconds=1_000.0))

    async def silent(request: Request) -> Reply:
        halted.append(Exit(ExitReason.INTERRUPTED, "the service stops", {"requested": True}))
        await anyio.sleep_forever()
        raise AssertionError

    ending = world.wake([*work(14), CLAIM, silent], stop=lambda: halted[0] if halted else None)
    assert (ending.reason, world.now.status) == (ExitReason.CURRENT_TASK_DONE, GoalStatus.DONE)

    late = long(make, limits=Limits(active_seconds=1_000.0))

    async def slow(request: Request) -> Reply:
        late.clock.advance(2_000)
        await anyio.sleep_forever()
        raise AssertionError

    ending = late.wake([*work(14), CLAIM, slow])
    assert (ending.reason, late.now.status) == (ExitReason.CURRENT_TASK_DONE, GoalStatus.DONE)
    assert "active seconds limit" in ending.facts["settlement_detail"]


@pytest.mark.parametrize("turns", [3, 15])
def test_a_stop_right_behind_an_accepted_claim_is_too_late(
    make: Make, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Once the claim is committed nothing comes between it and its ending, settlement or not."""
    monkeypatch.setattr("goalmode.loop.stop.WATCH_SECONDS", 0)
    world = long(make)
    committed, stopped = threading.Event(), threading.Event()
    outcome = journal.outcome

    def until_stopped(*args: Any, **named: Any) -> None:
        outcome(*args, **named)
        if world.now.spent.turns == turns:
            committed.set()
            stopped.wait(60)

    def stop() -> Exit | None:
        if not committed.is_set():
            return None
        stopped.set()
        return Exit(ExitReason.USER_ABORTED, "stopped", {"control": "pause"})

    monkeypatch.setattr(journal, "outcome", until_stopped)
    ending = world.wake([*work(turns - 1), CLAIM], stop=stop)

    assert (ending.reason, world.now.status) == (ExitReason.CURRENT_TASK_DONE, GoalStatus.DONE)
    assert ending.facts.get("settlement") == ("failed" if turns == 15 else None)


def test_cancelling_the_run_during_settlement_closes_with_the_claim(make: Make) -> None:
    """A caller that cancels gets its cancellation, and the store the ending."""
    from goalmode.testing import ScriptedModel
    from goalmode.wiring import run_wakeup

    world = long(make)

    async def run() -> None:
        with anyio.CancelScope() as scope:

            async def cancel(request: Request) -> Reply:
                scope.cancel()
                await anyio.sleep_forever()
                raise AssertionError

            await run_wakeup(world.begin(), ScriptedModel([*work(14), CLAIM, cancel]))  # type: ignore[arg-type]

    anyio.run(run)

    assert (world.now.status, world.now.settlement) == (GoalStatus.DONE, SettlementState.FAILED)


def test_our_own_failure_in_settlement_is_told_and_changes_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in it ends nothing: the claim stands, and the facts say what went wrong."""

    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(settlement, "invitation", broken)
    world = long(make)

    ending = world.wake([*work(14), CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["settlement_detail"] == "ZeroDivisionError: a bug"


def test_an_edit_and_a_stop_during_settlement_pause_the_goal(make: Make) -> None:
    """Where the claim no longer holds, the stop is what is left."""
    world = long(make)

    async def both(request: Request) -> Reply:
        edit_goal(world.store, world.now, objective="Write two.")
        stop_goal(world.store, world.now, Control.PAUSE)
        await anyio.sleep_forever()
        raise AssertionError

    ending = world.wake([*work(14), CLAIM, both])

    assert (ending.reason, world.now.status) == (ExitReason.USER_ABORTED, GoalStatus.PAUSED)


def test_a_store_that_cannot_be_written_leaves_it_to_recovery(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is closed, and whoever comes next closes with the ending that stands."""
    world = long(make)

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    def no_room(request: Request) -> Reply:
        monkeypatch.setattr("goalmode.state.settlement.finish", full)
        return KEEP

    with pytest.raises(StoreError):
        world.wake([*work(14), CLAIM, no_room])
    monkeypatch.undo()
    rows(world.store, "UPDATE wakeups SET pid_start = 'long ago'")

    assert isinstance(world.begin(), Skip)
    assert world.now.status is GoalStatus.DONE
    assert stands(world.store) == [FACT]


def test_until_budget_goals_settle_at_their_wrap_up_only(make: Make) -> None:
    """Claims that stand do not settle; the wrap-up is followed by it, and the ending is the limit."""
    world = long(make, until_budget=True, limits=Limits(turns=20))

    ending = world.wake([*work(15), CLAIM, *work(3, first=20), say("over"), KEEP])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert (ending.facts["wrap_up"], ending.facts["settlement"]) == ("done", "done")
    assert purposes(world)[-2:] == ["wrap_up", "settlement"]
    assert (world.now.status, world.now.spent.turns) == (GoalStatus.EXHAUSTED, 20)

    resume_goal(world.store, world.now, limits=Limits(turns=40))
    ending = world.wake([*work(19, first=40), say("over")])
    assert "settlement" not in ending.facts
    assert settled(world) == 1


def test_a_short_until_budget_goal_does_not_settle(make: Make) -> None:
    """14 turns, the wrap-up among them, are too few."""
    world = long(make, until_budget=True, limits=Limits(turns=14))

    ending = world.wake([*work(13), say("over")])

    assert (ending.reason, settled(world)) == (ExitReason.GOAL_BUDGET_EXHAUSTED, 0)


def test_other_goals_do_not_settle_when_their_budget_is_spent(make: Make) -> None:
    """Only a claim that stands settles a goal that has an end of its own."""
    world = long(make, limits=Limits(turns=20))

    ending = world.wake([*work(19), say("over")])

    assert (ending.reason, settled(world)) == (ExitReason.GOAL_BUDGET_EXHAUSTED, 0)


def test_the_wrap_up_of_an_until_budget_goal_comes_early_enough(make: Make) -> None:
    """Of a limit of tokens, one call of settlement is left behind the wrap-up, and nothing is overspent."""
    profile = replace(PROFILE, max_output=400)
    limit = 60_000
    world = long(make, until_budget=True, limits=Limits(tokens=limit), profile=profile)

    def honest(step: Reply) -> Callable[[Request], Reply]:
        """What a provider would report: the prompt as long as it is."""

        def answer(request: Request) -> Reply:
            prompt_tokens = _size(world, request) + 2_400
            reply = KEEP if "Only remember runs now" in getattr(request.messages[-1], "text", "") else step
            return replace(reply, usage=Usage(input=prompt_tokens, cached=prompt_tokens // 2, output=200))

        return answer

    ending = world.wake([honest(step) for step in work(60)], finished=False)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert ending.facts["settlement"] == "done", ending.facts
    assert purposes(world)[-2:] == ["wrap_up", "settlement"]
    assert world.now.spent.tokens <= limit


def test_a_user_stop_beats_a_spent_budget_in_settlement(make: Make) -> None:
    """A budget's ending is no claim: the stop is what the user sees."""
    world = long(make, until_budget=True, limits=Limits(turns=15))

    async def stopped(request: Request) -> Reply:
        stop_goal(world.store, world.now, Control.PAUSE)
        await anyio.sleep_forever()
        raise AssertionError

    ending = world.wake([*work(14), say("over"), stopped])

    assert (ending.reason, world.now.status) == (ExitReason.USER_ABORTED, GoalStatus.PAUSED)


def test_a_model_without_native_calls_can_say_that_there_is_nothing(make: Make) -> None:
    """Behind the JSON action protocol every reply is a call: one more tool says that nothing qualifies."""
    world = long(make, profile=replace(PROFILE, protocol=Protocol.JSON))

    ending = world.wake([*work(14), CLAIM, call(NOTHING.name)])

    assert ending.facts["settlement"] == "done"
    assert [tool.name for tool in world.requests[-1].tools] == ["remember", NOTHING.name]
    assert f"call {NOTHING.name}" in prompt(world)
    assert NOTHING.name not in {tool.name for tool in world.requests[0].tools}


def test_memory_calls_are_no_progress_and_save_no_work(make: Make) -> None:
    """Remembering is not the goal's work: the handoff still asks for a checkpoint."""
    world = long(make, max_turns=2)

    ending = world.wake([*work(1), KEEP, say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert purposes(world) == ["work", "work", "handoff"]


def test_a_memory_call_alone_is_an_early_stop(make: Make) -> None:
    """It is not substantive: a wakeup that only remembers gets its recovery prompts, and may not wait."""
    world = long(make, early_turns=0)

    ending = world.wake([KEEP, call("wait", seconds=60, reason="later"), say("Hm."), say("Hm."), say("Hm.")])

    assert ending.reason is ExitReason.EARLY_NO_TOOL


def test_recalling_finds_what_was_kept(make: Make) -> None:
    """`recall` is there all the time."""
    world = long(make)

    world.wake([KEEP, call("recall", query="gauge port"), ASK])

    assert f"M1 [environment, goal {world.goal.uid}, 2030-01-01] {FACT}" in world.told(2)


def test_events_tell_of_settlement(make: Make) -> None:
    """A display can say what is going on after the claim."""
    world = long(make)

    world.wake([*work(14), CLAIM, KEEP])

    told = [e for e in world.events if e.kind in ("settling", "settled")]
    assert [(e.kind, e.data.get("turns"), e.data.get("settlement")) for e in told] == [
        ("settling", 15, None),
        ("settled", None, "done"),
    ]
    assert world.kinds()[-1] == "wakeup_closed"


def test_a_claim_that_ends_its_turn_settles_too(make: Make) -> None:
    """Whatever makes the claim, the ending is the same."""
    from goalmode.domain.workflow import EndTurn, Movement, Workflow

    movement = Movement("pursue", instruction="Work.", end_turn=EndTurn.CLAIM)
    world = make(deliverables=("out.txt",), workflow=Workflow("own", "pursue", (movement,)), requirements=())

    ending = world.wake([*work(14), say("out.txt is written."), KEEP])

    assert (ending.reason, ending.facts["settlement"]) == (ExitReason.CURRENT_TASK_DONE, "done")


def test_a_failing_check_never_settles(make: Make) -> None:
    """Only a claim that stands does."""
    world = make(checks=("false",), max_turns=16)

    ending = world.wake([*work(14), CLAIM, *work(1, first=20), say("saved")])

    assert (ending.reason, settled(world)) == (ExitReason.MAX_TURNS_EXCEEDED, 0)
