"""Repetition: what is one, when the model is told, when it ends the movement, and that nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.calls import CallOutcome, CallRecord, Effect, arguments_digest
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import ToolCall, ToolResult, User
from goalmode.domain.workflow import Movement, Workflow
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.loop.guards.repetition import (
    MAX_PERIOD,
    REMEMBERED,
    STOP_AT,
    WARN_AT,
    Recent,
    Repetition,
    watch,
)
from goalmode.loop.history import History
from goalmode.testing import call, calls, say
from goalmode.tools.registry import tool

Make = Callable[..., Any]

MARK = call("shell", command="echo x >> marks")
LOOK = call("list_files", path=".")
SAVE = call("update_working_checkpoint", key_info="x")


def did(name: str, result: str = "ok", *, effect: Effect = Effect.READ, **changes: Any) -> CallRecord:
    record = CallRecord(0, "c", "tool", effect, CallOutcome.SUCCESS, result, body=result, brief=name)
    return replace(record, arguments_sha=arguments_digest(name), **changes)


def told(records: list[CallRecord]) -> list[tuple[int, int, int]]:
    """One call a reply: (number of the call, period, count) of each time that something is said or ends."""
    recent, found = Recent(), []
    for number, record in enumerate(records, 1):
        recent, seen = watch(recent, [record])
        if seen is not None:
            found.append((number, len(seen.calls), seen.count))
            if seen.ends:
                break
    return found


def shaped(arguments: dict[str, Any], *, backwards: bool) -> Any:
    """A call of the marker whose argument keys stand in one order or the other."""
    pairs = list(arguments.items())
    raw = json.dumps(dict(reversed(pairs) if backwards else pairs), indent=1 if backwards else None)
    return replace(call("shell"), calls=(ToolCall("", "shell", raw),))


@pytest.mark.parametrize("period", range(1, MAX_PERIOD + 1))
def test_equal_calls_are_told_at_the_fifth_and_end_at_the_tenth(period: int) -> None:
    """One by one, and in a cycle of two or three: at exactly five and ten times, and at no other call."""
    names = list(islice(cycle("abc"[:period]), REMEMBERED + 9))

    assert told([did(name) for name in names]) == [
        (period * WARN_AT, period, WARN_AT),
        (period * STOP_AT, period, STOP_AT),
    ]


def test_a_cycle_of_four_is_none() -> None:
    """Longer cycles are work until shown otherwise."""
    assert told([did(name) for name in "abcd" * 20]) == []


@pytest.mark.parametrize(
    "other",
    [
        did("a", "other"),
        did("b"),
        did("a", outcome=CallOutcome.FAILED),
        replace(did("a"), tool="another"),
        did("a", result_sha="other than the body says"),
    ],
    ids=["result", "arguments", "outcome", "tool", "compared result"],
)
def test_what_differs_begins_the_count_anew(other: CallRecord) -> None:
    """Another result, other arguments, another outcome or another tool is no repetition."""
    four = [did("a")] * (WARN_AT - 1)

    assert told([*four, other, *four]) == []
    assert told([*four, other, *four, did("a")]) == [(2 * WARN_AT, 1, WARN_AT)]


def test_a_result_is_compared_without_the_mark_of_the_cache() -> None:
    """What the model is shown of a cached result differs from turn to turn; the result does not."""
    served = [did("a", shown=f"[cached: same result as turn 1]\n{n}") for n in range(WARN_AT)]

    assert told(served) == [(WARN_AT, 1, WARN_AT)]


@pytest.mark.parametrize("between", [Effect.STATE, Effect.CONTROL])
def test_saving_between_two_calls_does_not_hide_that_they_are_the_same(between: Effect) -> None:
    """A checkpoint in new words, or a refused claim, after each of them breaks no repetition."""
    records = [r for n in range(STOP_AT) for r in (did("a"), did(f"words {n}", f"saved {n}", effect=between))]

    assert [count for _, _, count in told(records)] == [WARN_AT, STOP_AT]


def test_saving_the_same_again_and_again_is_a_repetition() -> None:
    """With nothing read or written between, whatever its result says; a read begins the count anew."""
    saves = [did("same", f"tried {n} times", effect=Effect.STATE) for n in range(STOP_AT)]

    assert [count for _, _, count in told(saves)] == [WARN_AT, STOP_AT]
    assert told([*saves[:4], did("a"), *saves[:4]]) == []


@pytest.mark.parametrize("outcome", [CallOutcome.SKIPPED, CallOutcome.DENIED, CallOutcome.INTERRUPTED])
def test_calls_that_did_not_run_are_not_counted(outcome: CallOutcome) -> None:
    """They neither repeat anything nor break a repetition."""
    idle = [did("b", outcome=outcome)]

    assert told(idle * 20) == []
    assert told([*[did("a")] * 4, *idle, did("a")]) == [(6, 1, WARN_AT)]


def test_many_calls_of_one_reply_are_seen_one_by_one() -> None:
    """A run in the middle of a reply counts although the reply goes on with something else; it is then over."""
    history = History().ran([*[did("a")] * WARN_AT, did("b")])

    assert history.repetition == Repetition((history.recent.work[0],), WARN_AT)
    assert history.ran([did("c")]).repetition is None
    assert history.ran([did("a")] * WARN_AT).repetition is not None


def test_a_movement_ends_only_after_the_model_was_told() -> None:
    """Ten equal calls of one reply are told of; whoever goes on with them then has not listened."""
    ten = History().ran([did("a")] * STOP_AT)
    assert ten.repetition is not None
    assert not ten.repetition.ends

    after = ten.ran([did("a")])
    assert after.repetition is not None
    assert after.repetition.ends
    assert ten.ran([did("b")]).repetition is None


def test_what_was_told_of_is_forgotten_when_it_is_broken() -> None:
    """The same repetition later is another one; a second one beside it is told of by itself, once."""
    history = History().ran([did("a")] * WARN_AT).ran([did("b")])
    assert history.ran([did("a")] * STOP_AT).repetition == Repetition((history.recent.work[0],), STOP_AT)

    saves = History().ran([did("a")] * WARN_AT)
    said = []
    for _ in range(STOP_AT - 1):
        saves = saves.ran([did("s", effect=Effect.STATE)])
        said.append(saves.repetition is not None)
    assert said.count(True) == 1
    assert saves.ran([did("s", effect=Effect.STATE)]).repetition.ends  # type: ignore[union-attr]


def test_memory_is_bounded() -> None:
    """However long the wakeup, no more is kept than a repetition can be made of."""
    history = History()
    for number in range(500):
        history = history.ran([did(str(number)), did(str(number), effect=Effect.STATE)])

    assert len(history.recent.work) == REMEMBERED
    assert len(history.recent.saves) <= REMEMBERED


def runs(names: list[str], period: int) -> int:
    """By the book: how often the last `period` names stand there in a row."""
    count = 0
    while (count + 1) * period <= len(names):
        block = names[len(names) - (count + 1) * period : len(names) - count * period]
        if block != names[-period:]:
            break
        count += 1
    return count


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_it_tells_of_repetitions_and_of_nothing_else(names: list[str]) -> None:
    """Against the definition: a threshold is told of at exactly the calls at which a run of blocks reaches it."""
    expected, before = [], 0
    for end in range(1, len(names) + 1):
        count = max(runs(names[:end], period) for period in range(1, MAX_PERIOD + 1))
        expected += [end] if before < WARN_AT <= count or count == STOP_AT else []
        before = count
        if count == STOP_AT:
            break

    assert [number for number, _, _ in told([did(name) for name in names])] == expected


@given(
    st.lists(st.sampled_from("abcdef"), max_size=12),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=MAX_PERIOD, unique=True),
)
def test_it_always_tells_at_five_and_at_ten(before: list[str], block: list[str]) -> None:
    """Whatever was done before: five times a block of up to three calls, and ten times."""
    records = [did(name) for name in [*before, *block * STOP_AT]]
    after = [(number - len(before), count) for number, _, count in told(records) if number > len(before)]

    assert after == [(len(block) * WARN_AT, WARN_AT), (len(block) * STOP_AT, STOP_AT)]


@given(st.lists(st.integers(), max_size=80, unique=True))
def test_polling_with_changing_results_is_none(results: list[int]) -> None:
    """The same call may be made for ever as long as its results differ."""
    assert told([did("poll", str(result)) for result in results]) == []


def test_the_same_call_for_ever_is_told_of_then_ended(make: Make) -> None:
    """B36: the keys stand in changing order, the results are equal: a correction, then NO_PROGRESS within the bound."""
    world = make(max_turns=200)
    arguments = {"command": "echo x >> marks", "timeout_seconds": 60}
    steps = [shaped(arguments, backwards=n % 2 == 1) for n in range(200)]

    ending = world.wake(steps, finished=False)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert ending.facts == {
        "tool": "shell",
        "calls": ["shell: echo x >> marks"],
        "count": STOP_AT,
        "period": 1,
    }
    assert len((world.workspace / "marks").read_text().splitlines()) == STOP_AT < 15
    corrections = [m.text for m in world.requests[-1].messages if isinstance(m, User) and "5 times" in m.text]
    assert len(corrections) == 1
    assert "shell: echo x >> marks" in corrections[0]
    last = world.requests[WARN_AT].messages[-2:]
    assert isinstance(last[0], ToolResult)
    assert last[1] == User(corrections[0])
    assert world.now.status is GoalStatus.ACTIVE


def test_a_cycle_of_calls_is_told_of_then_ended(make: Make) -> None:
    """Writing, looking and saving in turn, with nothing new: the saves are no part of it."""
    world = make(max_turns=200)
    write = call("write_file", path="out.txt", content="x")

    ending = world.wake([write, LOOK, SAVE] * 60, finished=False)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert (ending.facts["count"], ending.facts["period"]) == (STOP_AT, 2)
    assert ending.facts["calls"] == ["list_files: .", "write_file: out.txt"]
    assert world.told().count("The same 2 calls were made 5 times in a row") == 1


def test_a_cycle_whose_results_change_is_none(make: Make) -> None:
    """A file that grows is seen to grow: whether that is of use is not the guard's question."""
    world = make(max_turns=30)

    ending = world.wake([*[MARK, LOOK] * 15, say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED


def test_polling_goes_on_as_long_as_its_results_change(make: Make) -> None:
    """B38: twelve polls of the same job, each with another result, then success: no loop reason, and no hint."""
    polls = iter(range(1, 13))

    @tool(effect="read")
    def poll(job: str) -> str:
        """Ask how far a job is."""
        return f"progress {next(polls)}/12"

    world = make(tools=(poll,), deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("x")
    finish = call("complete", status="success", summary="The job ran.")

    ending = world.wake([call("poll", job="build")] * 12 + [finish])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "times in a row" not in world.told()


def test_equal_side_effects_in_one_reply_each_have_a_result_and_are_bounded(make: Make) -> None:
    """B40: every call that is asked for runs once, repeats are told of, and the tenth in a row is the last."""
    world = make()
    five = calls(*[MARK] * 5)

    ending = world.wake([five, five])

    assert ending.reason is ExitReason.NO_PROGRESS
    assert len((world.workspace / "marks").read_text().splitlines()) == STOP_AT
    results = [m for m in world.requests[1].messages if isinstance(m, ToolResult)]
    assert len({m.call_id for m in results}) == len(results) == 5
    assert "5 times in a row" in world.requests[1].messages[-1].text
    seen = [c["outcome"] for turn in turns(world.store, world.now) for c in turn["calls"]]
    assert seen == ["success"] * 10


def test_of_a_reply_full_of_one_call_ten_run(make: Make) -> None:
    """The others are skipped, each with its result; the model is told, and going on with it then ends the wakeup."""
    world = make()

    ending = world.wake([calls(*[MARK] * 30), MARK])

    assert ending.reason is ExitReason.NO_PROGRESS
    assert len((world.workspace / "marks").read_text().splitlines()) == STOP_AT + 1
    seen = [c["outcome"] for turn in turns(world.store, world.now) for c in turn["calls"]]
    assert seen == ["success"] * STOP_AT + ["skipped"] * 20 + ["success"]
    skipped = [m.text for m in world.requests[1].messages if isinstance(m, ToolResult)][STOP_AT]
    assert skipped == "not executed: this call was made 10 times in a row with the same result"


def test_a_claim_that_stands_beats_a_repetition(make: Make) -> None:
    """The tenth equal call beside a claim that holds ends in success."""
    world = make(deliverables=("marks",))
    claim = call("complete", status="success", summary="Marked.")

    assert world.wake([*[MARK] * 9, calls(MARK, claim)]).reason is ExitReason.CURRENT_TASK_DONE


def test_it_survives_a_conversation_that_begins_anew(make: Make) -> None:
    """The count is the wakeup's, not the conversation's."""
    world = make(max_turns=200, work_window=6_000)
    chatter = call("shell", command="seq 1 900; echo x >> marks")

    ending = world.wake([chatter] * 50, finished=False)

    assert "context_rerendered" in world.kinds()
    assert ending.reason is ExitReason.NO_PROGRESS
    assert len((world.workspace / "marks").read_text().splitlines()) == STOP_AT


TWO = Workflow(
    "two", "a", (Movement("a", "Look.", default_next="b"), Movement("b", "Mend.", default_next="a"))
)


def test_default_next_takes_over_from_a_movement_that_repeats_itself(make: Make) -> None:
    """The other movement begins with a clean count; the same repetition there ends the wakeup."""
    world = make(workflow=TWO, max_turns=200)

    ending = world.wake([MARK] * 100, finished=False)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert world.now.movement == "b"
    assert len((world.workspace / "marks").read_text().splitlines()) == 2 * STOP_AT


def test_wakeups_that_only_repeat_themselves_block_the_goal(make: Make) -> None:
    """The first has one new result; from the second on nothing is new, and three of those are the streak."""
    world = make()
    for _ in range(4):
        world.wake([MARK] * STOP_AT)

    assert world.now.status is GoalStatus.BLOCKED
    assert [w["progress"] for w in show(world.store, world.goal.id)["wakeups"]] == [1, 0, 0, 0]
