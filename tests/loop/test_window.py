"""The work window inside a wakeup: the checkpoint request, the tooth, and a provider that calls it too long."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from goalmode.context import tokens
from goalmode.context.tokens import Remembered, counter, request_tokens
from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import ContextPolicy
from goalmode.domain.messages import Assistant, Reply, Request, ToolCall, ToolResult, Usage, User
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.work import WorkState
from goalmode.errors import ModelError
from goalmode.inspection.contexts import described, stored_contexts
from goalmode.orchestrator.goals import edit_goal
from goalmode.state import snapshot
from goalmode.testing import call, calls, say
from goalmode.tools.registry import tool

O200K = Remembered(counter("o200k_base"))
pytestmark = [pytest.mark.once, pytest.mark.long]

WINDOW = 7_000
FACT = "The station is Cuxhaven, the gauge stands at 5.04 m."
OBJECTIVE = "Write the report on the tides of 2029."

Make = Callable[..., Any]
Answer = Callable[[Request], Reply]


@tool(effect="read", brief="page")
def look(page: int, words: int = 100) -> str:
    """Read a page."""
    return f"page {page}: {'tide ' * words}"


def read(page: int, **more: int) -> Reply:
    return replace(call("look", page=page, **more), text=f"Prose {page}: I have read it all.")


def asked(request: Request) -> bool:
    last = request.messages[-1]
    return isinstance(last, User) and last.text.startswith("This conversation will soon")


def rendered_anew(request: Request) -> bool:
    return "This wakeup goes on." in request.messages[1].text


def diligent(number: int) -> Answer:
    """Saves the fact at first and a summary whenever it is asked to, and reads on otherwise."""

    def answer(request: Request) -> Reply:
        if number == 0:
            return call("update_working_checkpoint", key_info=FACT, pending=["the totals are right"])
        return call("update_working_checkpoint", summary=f"at {number}") if asked(request) else read(number)

    return answer


def size(request: Request) -> int:
    return request_tokens(O200K, request.messages, request.tools)


def text_of(request: Request) -> str:
    """All that a request says, the calls' arguments included."""
    calls = [c.arguments for m in request.messages if isinstance(m, Assistant) for c in m.calls]
    return "\n".join([*(m.text for m in request.messages), *calls])


def teeth(requests: Sequence[Request]) -> list[int]:
    """The numbers of the requests that begin a conversation anew."""
    return [n for n, (a, b) in enumerate(pairwise(requests), 1) if a.messages[1] != b.messages[1]]


def long_wakeup(make: Make, turns: int = 300, **settings: Any) -> Any:
    world = make(OBJECTIVE, max_turns=turns, work_window=WINDOW, tools=(look,), **settings)
    ending = world.wake([*map(diligent, range(turns)), say("saved")], finished=False)
    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    return world


def test_a_long_wakeup_never_outgrows_its_window(make: Make) -> None:
    """B63: in 300 turns every request fits, holds the objective once and what was saved early, and only ever grows."""
    world = long_wakeup(make)

    requests = world.requests
    begun = teeth(requests)
    assert len(begun) > 20
    assert all(size(r) <= WINDOW for r in requests)
    assert all(text_of(r).count(OBJECTIVE) == 1 for r in requests)
    assert all(FACT in text_of(r) for r in requests[1:])
    assert all("the totals are right" in requests[n].messages[1].text for n in begun)
    for n, (before, after) in enumerate(pairwise(requests), 1):
        if n not in begun:
            assert after.messages[: len(before.messages)] == before.messages
    assert size(requests[-1]) <= 1.5 * size(requests[begun[0]])


def test_the_model_is_asked_to_save_once_a_tooth(make: Make) -> None:
    """The request comes when four fifths are full, in a user's message; it is no turn and stays where it is."""
    world = long_wakeup(make, turns=60)

    requests = world.requests
    asking = [n for n, r in enumerate(requests) if asked(r)]
    begun = teeth(requests)
    assert len(begun) >= 3
    assert all(sum(start <= n < end for n in asking) == 1 for start, end in pairwise([0, *begun]))
    assert all(size(requests[n]) >= WINDOW * 4 // 5 for n in asking)
    assert all(size(requests[n - 1]) < WINDOW * 4 // 5 for n in asking if n not in begun)
    assert world.now.spent.turns == 60


def test_what_follows_a_tooth_is_calls_and_results(make: Make) -> None:
    """A context rendered anew has this wakeup's actions, and behind it whole turns without their prose."""
    world = long_wakeup(make, turns=40)

    first = world.requests[teeth(world.requests)[0]]
    kept = first.messages[2:]
    page = int(first.messages[-1].text.split(":")[0].removeprefix("page "))
    assert rendered_anew(first)
    assert len(kept) >= 4
    assert [type(m) for m in kept] == [Assistant, ToolResult] * (len(kept) // 2)
    assert all(m.text == "" and m.calls and not m.extra for m in kept if isinstance(m, Assistant))
    assert f"look: {page} → ok" in first.messages[1].text
    assert f"Turns left in this wakeup: {40 - page - 1}." in first.messages[1].text


def test_contexts_rendered_anew_are_stored_like_any_other(make: Make) -> None:
    """Each has text, hash, tokens and sections under its number; the first one is what a wakeup is shown with."""
    world = long_wakeup(make, turns=40)

    number, seen = stored_contexts(world.store, world.now, None, later=True)
    told = described(number, seen)
    begun = teeth(world.requests)
    assert len(seen) == 1 + len(begun) > 1
    assert [entry["n"] for entry in told["later"]] == list(range(1, len(seen)))
    for entry, n in zip(told["later"], begun, strict=True):
        assert entry["tokens"] <= size(world.requests[n]) <= WINDOW
        assert entry["text"].startswith(world.requests[n].messages[0].text)
        assert world.requests[n].messages[1].text in entry["text"]
        assert entry["sections"][0]["name"] == "objective"
        assert len(entry["sha256"]) == 64
    assert stored_contexts(world.store, world.now, None)[1] == seen[:1]
    assert told["text"] == seen[0].text
    assert "This wakeup goes on." not in told["text"]


def test_no_item_is_lost_or_moved_by_a_tooth(make: Make) -> None:
    """B150: twelve items in all categories are the same after several teeth, and every stored action has its turn."""
    world = make(OBJECTIVE, max_turns=60, work_window=WINDOW, tools=(look,))
    items = call(
        "update_working_checkpoint",
        key_info=FACT,
        next_steps=["count", "plot"],
        done=[f"done {n}" for n in range(4)],
        pending=[f"open {n}" for n in range(4)],
        failed_approaches=[{"approach": f"tried {n}", "outcome": "no"} for n in range(4)],
    )
    states: list[WorkState] = []

    def keep(event: Any) -> None:
        if event.kind in ("turn", "context_rerendered"):
            seen = snapshot.snapshot(world.store, world.goal.id, now=world.clock.now())
            states.append(seen.work)

    world.wake([items, *(read(n) for n in range(59)), say("saved")], on_event=keep, finished=False)

    assert world.kinds().count("context_rerendered") >= 3
    assert [item.text.split()[0] for item in states[0].items] == ["done"] * 4 + ["open"] * 4 + ["tried"] * 4
    assert all(state == states[0] for state in states)
    actions = snapshot.snapshot(world.store, world.goal.id, now=world.clock.now()).actions
    assert [a.turn for a in actions] == sorted({a.turn for a in actions})


def test_a_result_larger_than_the_window_is_cut(make: Make) -> None:
    """One result that no window could hold is shown head and tail, with its size; the wakeup goes on."""
    world = make(OBJECTIVE, max_turns=3, work_window=5_000, tools=(look,))

    world.wake([read(1, words=60_000), read(2), read(3), say("saved")])

    [result] = [m.text for m in world.requests[1].messages if isinstance(m, ToolResult)]
    assert size(world.requests[1]) <= 5_000
    assert result.startswith("page 1: tide")
    assert "left out of" in result
    assert f"the whole result is {len('page 1: ') + 5 * 60_000} bytes" in result


def test_an_objective_larger_than_the_window_is_cut(make: Make) -> None:
    """The objective is shown head and tail in every context, the first one and those after."""
    world = make(f"begin {'word ' * 30_000} end", max_turns=20, work_window=WINDOW, tools=(look,))

    world.wake([*(read(n) for n in range(20)), say("saved")])

    assert teeth(world.requests)
    assert all(size(r) <= WINDOW for r in world.requests)
    assert all("begin word" in r.messages[1].text for r in world.requests)


def test_a_window_too_small_for_any_context_ends_the_wakeup(make: Make) -> None:
    """A context that cannot be made to fit ends CONTEXT_OVERFLOW, and no request is made."""
    world = make(OBJECTIVE, work_window=1_000)

    ending = world.wake([])

    assert (ending.reason, world.requests) == (ExitReason.CONTEXT_OVERFLOW, [])


def refusal(kind: ErrorKind = ErrorKind.CONTEXT_OVERFLOW) -> ModelError:
    return ModelError(kind, "this model's maximum context length is 8192 tokens", status=400)


FULL = replace(say("cut o", stop=StopReason.CONTEXT_OVERFLOW), calls=(ToolCall("z", "look", '{"page": 9}'),))


@pytest.mark.parametrize(
    "too_long",
    [refusal(), refusal(ErrorKind.REQUEST_TOO_LARGE), FULL],
    ids=["an error", "a body that is too large", "a reply"],
)
def test_a_providers_overflow_gets_one_rebuild(make: Make, too_long: Any) -> None:
    """B64: ten results of 200 kB are refused once; the next request is smaller, whole, and needed no other call."""
    world = make(OBJECTIVE, max_turns=3, tools=(look,))
    batch = calls(*(call("look", page=n, words=40_000) for n in range(10)))

    world.wake([batch, too_long, read(11), read(12), say("saved")], finished=False)

    before, after = world.requests[1], world.requests[2]
    results = [m.text for m in after.messages if isinstance(m, ToolResult) and "page" in m.text]
    assert size(after) < size(before) * 3 / 4
    assert rendered_anew(after)
    assert [text[: len("page n")] for text in results] == [f"page {n}" for n in range(10)]
    assert all("the whole result is 200008 bytes" in text for text in results)


@pytest.mark.parametrize(
    "too_long", [(refusal(), refusal()), (FULL, FULL), (refusal(), FULL)], ids=["errors", "replies", "both"]
)
def test_a_second_overflow_ends_the_wakeup(make: Make, too_long: tuple[Any, Any]) -> None:
    """One rebuild a wakeup, however the provider says it; then CONTEXT_OVERFLOW, never a success."""
    world = make(OBJECTIVE, tools=(look,))

    ending = world.wake([*(read(n, words=2_000) for n in range(4)), *too_long])

    assert ending.reason is ExitReason.CONTEXT_OVERFLOW
    assert len(world.requests) == 6


def test_after_a_refusal_the_window_is_smaller(make: Make) -> None:
    """What the provider refused once is not sent again in this wakeup: the teeth come earlier."""
    world = make(OBJECTIVE, max_turns=40, tools=(look,))
    steps = [*(read(n, words=400) for n in range(10)), refusal(), *(read(n, words=400) for n in range(30))]

    world.wake([*steps, say("saved")], finished=False)

    refused = size(world.requests[10])
    assert len(teeth(world.requests)) >= 3
    assert all(size(r) <= refused * 3 / 4 for r in world.requests[11:])


def test_a_refused_first_request_ends_the_wakeup(make: Make) -> None:
    """B61: a context that must not be smaller is not sent twice."""
    world = make(OBJECTIVE)

    assert world.wake([refusal()]).reason is ExitReason.CONTEXT_OVERFLOW


@pytest.mark.parametrize("too_long", [refusal(), FULL], ids=["an error", "a reply"])
def test_a_refused_handoff_keeps_its_ending(make: Make, too_long: Any) -> None:
    """The last call of a wakeup is not made twice: its ending is known."""
    world = make(OBJECTIVE, max_turns=1, tools=(look,))

    assert world.wake([read(1), too_long]).reason is ExitReason.MAX_TURNS_EXCEEDED


def test_a_paused_turn_goes_back_as_it_is(make: Make) -> None:
    """No checkpoint is asked for behind a paused turn, however full the window; it is asked for after it."""
    world = make(OBJECTIVE, max_turns=30, work_window=WINDOW, tools=(look,))
    paused = say("thinking " * 400, stop=StopReason.PAUSE)

    def answer(number: int) -> Answer:
        def made(request: Request) -> Reply:
            pauses = size(request) > WINDOW * 4 // 5 - 350 and not asked(request)
            return paused if pauses and request.messages[-1] != paused.message() else read(number)

        return made

    world.wake([answer(n) for n in range(40)], finished=False)

    back = next(n for n, r in enumerate(world.requests) if r.messages[-1] == paused.message())
    assert size(world.requests[back]) >= WINDOW * 4 // 5
    assert asked(world.requests[back + 1])


def test_replay_has_no_saw_tooth(make: Make) -> None:
    """The policy for comparison grows to the model's window and ends there; a refusal ends it too."""
    world = make(OBJECTIVE, policy=ContextPolicy.REPLAY, work_window=WINDOW, tools=(look,))
    world.profile = replace(world.profile, window=8_000, max_output=1_000)

    ending = world.wake([read(n) for n in range(80)], finished=False)

    assert ending.reason is ExitReason.CONTEXT_OVERFLOW
    assert teeth(world.requests) == []
    assert not any(map(asked, world.requests))
    assert size(world.requests[-1]) > WINDOW
    assert world.wake([refusal()]).reason is ExitReason.CONTEXT_OVERFLOW


def test_an_edit_is_told_once_whatever_the_window(make: Make) -> None:
    """An edit that fills the window is told by the new context alone, and no later request tells it twice."""
    world = make(OBJECTIVE, max_turns=30, work_window=WINDOW, tools=(look,))
    new = f"Write about storms. {'Mind the gauges. ' * 250}"

    def edit(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 12:
            edit_goal(world.store, world.now, objective=new)

    world.wake([*(read(n) for n in range(30)), say("saved")], on_event=edit)

    after = world.requests[12:]
    assert all(text_of(r).count("Write about storms.") == 1 for r in after)
    assert all(size(r) <= WINDOW for r in after)
    assert len(teeth(after)) >= 2


def test_a_note_seen_in_a_new_context_is_no_news(make: Make) -> None:
    """What a user said during the wakeup and a context rendered anew has shown does not wake the goal again."""
    world = make(OBJECTIVE, max_turns=30, work_window=WINDOW, tools=(look,))
    seen: list[int] = []

    def look_up(event: Any) -> None:
        if event.kind == "context_rerendered":
            with world.store.reading() as connection:
                row = connection.exec_driver_sql("SELECT max(inbox_seen) FROM wakeups").scalar()
            seen.append(int(row or 0))
        elif event.kind == "turn" and event.data["turn"] == 2:
            edit_goal(world.store, world.now, objective="Write about storms.")

    world.wake([*(read(n) for n in range(30)), say("saved")], on_event=look_up)

    assert seen[0] == world.now.inbox_head > 0


def test_a_prompt_that_was_not_answered_survives_a_tooth(make: Make) -> None:
    """A recovery prompt that fills the window is still there when the conversation has begun anew."""
    world = make(OBJECTIVE, max_turns=4, work_window=5_000, tools=(look,))

    world.wake([say("word " * 2_500), read(1), read(2), read(3), say("saved")])

    assert teeth(world.requests) == [1]
    assert "recovery prompt" in world.told(1) or "substantive" in world.told(1)
    assert "word word" not in world.told(1)


def test_an_id_used_before_a_tooth_is_not_used_again(make: Make) -> None:
    """Ids of calls stay unique in a wakeup, also against calls that the conversation no longer holds."""
    world = make(OBJECTIVE, max_turns=40, work_window=WINDOW, tools=(look,))
    same = [
        replace(read(n), calls=(ToolCall(f"c{n % 25}", "look", json.dumps({"page": n})),)) for n in range(40)
    ]

    world.wake([*same, say("saved")])

    with world.store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT call_id FROM tool_calls").scalars().all()
    assert len(rows) == len(set(rows)) == 40
    assert len(teeth(world.requests)) >= 2


def test_the_budget_counts_a_new_conversation_as_uncached(make: Make) -> None:
    """With nearly all input cached, the wrap-up before or after a tooth still comes, once, and within the limit."""
    for limit in (30_000, 41_000, 43_000):
        world = make(OBJECTIVE, work_window=WINDOW, limits=Limits(tokens=limit), tools=(look,))
        world.profile = replace(world.profile, max_output=400)

        def answer(number: int) -> Answer:
            def made(request: Request) -> Reply:
                cached = (
                    0
                    if number == 0 or (rendered_anew(request) and len(request.messages) < 9)
                    else size(request) - 200
                )
                return replace(read(number), usage=Usage(input=size(request), cached=cached, output=600))

            return made

        ending: Exit = world.wake([answer(n) for n in range(400)], finished=False)

        assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
        assert ending.facts["wrap_up"] == "done"
        assert world.now.spent.tokens <= limit


def test_tokens_of_old_messages_are_not_counted_again(make: Make) -> None:
    """Each message is counted once as it comes; at a tooth what is kept is counted once more, with the context."""
    world = make(OBJECTIVE, max_turns=80, work_window=12_000, tools=(look,))
    counted: list[int] = []

    def watch(event: Any) -> None:
        if event.kind == "turn":
            counted.append(len(COUNTED))

    COUNTED.clear()
    world.wake([*(read(n) for n in range(80)), say("saved")], on_event=watch)

    each = sorted(b - a for a, b in pairwise(counted))
    assert each[len(each) // 2] <= 6
    assert each[-3] <= 6


COUNTED: list[int] = []


@pytest.fixture(autouse=True)
def _counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes every text that is counted; what this module counts was bound before."""
    count = tokens.O200k.count

    def noted(self: tokens.O200k, text: str) -> int:
        COUNTED.append(len(text))
        return count(self, text)

    monkeypatch.setattr(tokens.O200k, "count", noted)
