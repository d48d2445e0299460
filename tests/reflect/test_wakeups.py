"""Wakeups in a checkout of GenericAgent, by its hooks: how they begin, what they are told, how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import GoalStatus
from goalmode.errors import BadInput
from goalmode.inspection import contexts, turns
from goalmode.inspection.show import show
from goalmode.orchestrator.questions import answer_question
from goalmode.reflect import hooks, session
from goalmode.testing.script import CLOSING, PHRASES
from goalmode.workflows.load import shipped
from tests.reflect import upstream
from tests.reflect.conftest import SECONDS, World
from tests.reflect.upstream import Client, Reply, call, checkout

WORK = Reply("Looking.", [call("code_run", script="ls")])
WRITE = Reply("Writing.", [call("file_write", path="a.txt", content="x")])
CLAIM = Reply("Claiming.", [call("complete", status="success", summary="a.txt is there", evidence=["a.txt"])])
SAVE = Reply("Saving.", [call("update_working_checkpoint", key_info="port 8080", pending=["the total"])])
DONE = Reply(CLOSING)
SETTLED = Reply("Nothing is worth keeping.")
LONG_BODY = "!!!Error: HTTP 500: " + "x" * 400


def work(number: int) -> Reply:
    return Reply(f"Step {number}.", [call("code_run", script=f"step {number}")])


def test_a_goal_is_worked_on_and_its_claim_ends_it(make: Any, load: Any) -> None:
    """A claim that the host's checks bear out ends the goal, and with it the process."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world)

    assert loader.step() == f"[goalmode {world.goal.uid} wakeup 1]"
    assert world.reasons() == ["CURRENT_TASK_DONE"]
    assert loader.step() == "/exit"
    assert "is DONE" in world.lines[-1]


@pytest.mark.parametrize(
    ("steps", "settings", "reason", "status"),
    [
        ([DONE, DONE, DONE], {}, "EARLY_NO_TOOL", GoalStatus.ACTIVE),
        ([work(1), work(2), work(3), work(4), DONE, DONE], {}, "YIELDED", GoalStatus.ACTIVE),
        ([work(1), work(2), SAVE], {"max_turns": 3}, "MAX_TURNS_EXCEEDED", GoalStatus.ACTIVE),
        ([work(1), work(2), SAVE], {"max_turns": 2}, "MAX_TURNS_EXCEEDED", GoalStatus.ACTIVE),
        ([Reply("!!!Error: HTTP 500: oops")], {}, "BACKEND_ERROR", GoalStatus.ACTIVE),
        ([Reply(LONG_BODY)], {}, "BACKEND_ERROR", GoalStatus.ACTIVE),
        ([work(1), Reply("!!!Error: ReadTimeout: silence")], {}, "BACKEND_ERROR", GoalStatus.ACTIVE),
        ([Reply("!!!Error: HTTP 401: invalid key")], {}, "BACKEND_ERROR", GoalStatus.BLOCKED),
        ([Reply(""), Reply(" "), Reply("")], {}, "BACKEND_ERROR", GoalStatus.ACTIVE),
        ([Reply("cut [max_tokens !!!]")] * 3, {}, "OUTPUT_TRUNCATED", GoalStatus.ACTIVE),
        ([Reply("", [call("breaks")])], {}, "ENGINE_ERROR", GoalStatus.BLOCKED),
        ([Reply("", [call("ask_user", question="Which?")])], {}, "NEEDS_USER_INPUT", GoalStatus.WAITING_USER),
        (
            [work(1), Reply("", [call("wait", seconds=60, reason="the build")])],
            {}, "YIELDED", GoalStatus.ACTIVE,
        ),
    ],
)  # fmt: skip
def test_each_ending_is_stored_with_its_reason(
    make: Any, load: Any, steps: Any, settings: Any, reason: str, status: GoalStatus
) -> None:
    """What GenericAgent calls done, exited or nothing is told apart; a long error body is no completion."""
    world = make(steps, **settings)
    load(world).step()

    assert world.reasons() == [reason]
    assert world.now.status is status
    assert world.client.steps == []
    assert world.checkout.hooks.errors == []


def test_a_blank_reply_is_asked_for_again_within_one_call(make: Any, load: Any) -> None:
    """GenericAgent does so by itself, within its bound; it is one turn, and all of it is charged."""
    world = make([Reply(""), Reply(""), WRITE, CLAIM], deliverables=("a.txt",))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]
    assert (world.now.spent.turns, world.now.spent.input_tokens) == (2, 400)


def test_truncations_are_counted_in_a_row_only(make: Any, load: Any) -> None:
    """A good reply between cut ones resets the count (B83)."""
    cut = Reply("cut [max_tokens !!!]")
    world = make([cut, cut, WRITE, cut, CLAIM], deliverables=("a.txt",))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_later_wakeups_keep_their_quota(make: Any, load: Any, tmp_path: Path) -> None:
    """Three wakeups of a model that closes as soon as it has heard enough closing words (B01)."""
    limit, quota = 10, 12

    def closes_after(client: Client) -> Reply:
        heard, number = client.text(), len(client.requests)
        if sum(heard.count(phrase) for phrase in PHRASES) >= limit:
            return DONE
        said = "Sub-item: all done." if number % 4 == 0 else "Working."
        return Reply(said, [call("code_run", script=f"step {number}")])

    world, bare = make([closes_after] * 60, max_turns=quota), checkout(tmp_path / "bare", [closes_after] * 60)
    loader, alone = load(world), []
    for _ in range(3):
        before = len(bare.agent.llmclient.requests)
        bare.agent.put_task("Go on.").get(timeout=SECONDS)
        alone.append(len(bare.agent.llmclient.requests) - before)
        loader.step()

    found = {"GenericAgent alone": alone, "with goalmode": [row["turns"] for row in _wakeups(world)]}
    print("turns in each wakeup:", found)  # noqa: T201 - the two side by side
    assert found == {"GenericAgent alone": [14, 1, 1], "with goalmode": [quota] * 3}
    assert world.reasons() == ["MAX_TURNS_EXCEEDED"] * 3


@pytest.mark.parametrize(
    ("count", "settings", "calls"),
    [
        (14, {}, 0),
        (15, {}, 1),
        (16, {}, 1),
        (15, {"autonomous": True}, 0),
        (15, {"user_tools": False}, 0),
    ],
)
def test_settlement_comes_once_at_15_turns_or_more(
    make: Any, load: Any, count: int, settings: Any, calls: int
) -> None:
    """The gate asks for memories from turn 15 on (>= 15), not at 14, and not of a flow that is exempt."""
    steps = [WRITE, *map(work, range(count - 2)), CLAIM, *[SETTLED] * calls]
    world = make(steps, deliverables=("a.txt",), **settings)
    load(world).step()

    assert (world.reasons(), world.client.steps) == (["CURRENT_TASK_DONE"], [])
    assert len(world.client.requests) == count + calls
    offered = world.client.requests[-1]["tools"]
    assert (offered == ["remember"]) is bool(calls)


def test_without_its_memory_tool_nothing_settles(make: Any, load: Any) -> None:
    """`--no-user-tools` takes the tool out of its list: then there is no long-term memory, and no gate."""
    world = make([WRITE, *map(work, range(13)), CLAIM], deliverables=("a.txt",))
    tools = world.checkout.main.TOOLS_SCHEMA
    tools[:] = [t for t in tools if t["function"]["name"] not in ("ask_user", "start_long_term_update")]
    load(world).step()

    assert (world.reasons(), world.client.steps) == (["CURRENT_TASK_DONE"], [])
    assert not {"remember", "start_long_term_update"} & set(world.client.requests[0]["tools"])


def test_a_question_waits_for_its_answer_and_stands_beside_it(make: Any, load: Any) -> None:
    """`ask_user` makes a question with its candidates; an answer, whenever it comes, wakes the goal."""
    ask = Reply("", [call("ask_user", question="Which port?", candidates=["80", "8080"])])
    world = make([WRITE, ask, CLAIM], deliverables=("a.txt",))
    loader = load(world)
    loader.step()

    assert loader.step() is None
    assert "waits (waiting)" in world.lines[-1]
    answer_question(world.store, world.now, "8080")
    assert loader.step() == f"[goalmode {world.goal.uid} wakeup 2]"
    assert "Which port?" in world.client.text(2)
    assert "8080" in world.client.text(2)


def test_what_was_saved_is_in_the_next_context_and_nothing_of_the_conversation(make: Any, load: Any) -> None:
    """A checkpoint is captured as it happens; all that GenericAgent carries from task to task is gone."""
    world = make([WORK, SAVE, Reply("Final delivery, all done."), Reply("All done."), WRITE], max_turns=4)
    loader = load(world)
    loader.step()
    world.clock.advance(3600)
    loader.step()

    second = world.client.text(4)
    assert "port 8080" in second
    assert "the total" in second
    assert "Final delivery" not in second
    assert "an earlier conversation" not in second
    assert [m["role"] for m in world.client.requests[4]["history"]] == ["system", "user"]


def test_the_task_is_a_short_marker_however_long_the_objective(make: Any, load: Any) -> None:
    """A prompt above 2,000 characters would reach the model as the name of a file."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",), objective="Write a.txt. " + "Mind the gap. " * 1000)

    assert len(str(load(world).step())) < 100
    assert world.client.text(0).count("Mind the gap.") > 300


def test_what_a_plugin_adds_stays(make: Any, load: Any) -> None:
    """Plugins append to the opening message before our hook comes; their words follow the context."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",))

    def plugin(ctx: Any) -> None:
        ctx["messages"][1]["content"] += "\n[PROJECT MODE: x]"

    world.checkout.hooks.registry["agent_before"].insert(0, plugin)
    load(world).step()

    opening = world.client.requests[0]["history"][1]["content"]
    assert opening.endswith("</time_and_budgets>\n[PROJECT MODE: x]")


def test_its_order_to_ask_the_user_and_its_summaries_are_left_out(
    make: Any, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At turn 175 it orders the model to ask, which would end an unattended goal; its history repeats closing words."""
    monkeypatch.setattr(upstream, "ASK_TURN", 3)
    world = make([*map(work, range(6)), SAVE], max_turns=6)
    load(world).step()

    assert world.reasons() == ["MAX_TURNS_EXCEEDED"]
    assert not any(mark in world.client.text() for mark in ("[DANGER]", "<history>"))
    assert "Current turn: 3" in world.client.text()


def test_a_call_that_is_not_allowed_does_not_run(make: Any, load: Any, tmp_path: Path) -> None:
    """Without a shell there is no `code_run`; a call of it all the same is answered, and the next one runs."""
    world = make([WORK, WRITE, CLAIM], deliverables=("a.txt",), tools=("read_file", "write_file"))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]
    assert "code_run" not in world.client.requests[0]["tools"]
    result = world.client.requests[1]["history"][3]["tool_results"][0]["content"]
    assert "code_run" in result
    assert "ran ls" not in world.client.text()


def test_a_rejected_claim_tells_what_is_missing(make: Any, load: Any) -> None:
    """The model reads our answer where its call's result stands, and goes on."""
    world = make([CLAIM, WRITE, CLAIM], deliverables=("a.txt",))
    load(world).step()

    result = world.client.requests[1]["history"][3]["tool_results"][0]["content"]
    assert "a.txt" in result
    assert "does not exist" in result
    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_a_claim_comes_after_its_siblings(make: Any, load: Any) -> None:
    """As in our own loop: what a reply writes beside its claim is there when it is checked."""
    both = Reply("", [*CLAIM.calls, *WRITE.calls])
    world = make([both], deliverables=("a.txt",))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_reads_of_one_reply_all_get_their_results(make: Any, load: Any) -> None:
    """Our loop wants them at the same time, its loop runs them one by one."""
    reads = Reply("", [call("file_read", path=f"{n}.txt") for n in range(4)])
    world = make([reads, WRITE, CLAIM], deliverables=("a.txt",))
    for n in range(4):
        (world.workspace / f"{n}.txt").write_text(f"text {n}")
    load(world).step()

    results = world.client.requests[1]["history"][3]["tool_results"]
    assert [result["content"] for result in results] == [f"text {n}" for n in range(4)]
    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_a_goal_until_its_budget_goes_through_its_movements(make: Any, load: Any) -> None:
    """A claim that stands leads on to the next movement, whose instruction follows in the same conversation."""
    steps = [WRITE, CLAIM, WORK, Reply("", [call("transition", to="improve", reason="a fault")]), WORK]
    world = make(
        [*steps, SAVE], deliverables=("a.txt",), until_budget=True, workflow=shipped("polish"), max_turns=5
    )
    load(world).step()

    assert world.reasons() == ["MAX_TURNS_EXCEEDED"]
    assert world.now.movement == "improve"
    told = world.client.requests[2]["history"][-1]
    assert "transition to verify" in told["tool_results"][0]["content"]
    assert "in the movement verify" in told["content"]


def test_its_turns_are_journaled_like_ours(make: Any, load: Any) -> None:
    """Tools, arguments, outcomes and the tokens that it noted; shown by the same pages."""
    failing = Reply("", [call("file_read", path="b.txt"), *WORK.calls])
    world = make([failing, WRITE, CLAIM], deliverables=("a.txt",))
    load(world).step()

    found = turns.turns(world.store, world.now, full=True)
    assert [[(c["tool"], c["outcome"]) for c in turn["calls"]] for turn in found] == [
        [("file_read", "failed"), ("code_run", "success")],
        [("file_write", "success")],
        [("complete", "success")],
    ]
    assert world.now.spent.tokens == 3 * (100 - 40 + 10)
    assert show(world.store, world.goal.id)["status"] == "DONE"
    assert "CURRENT_TASK_DONE" in str(world.why())
    _, shown = contexts.stored_contexts(world.store, world.now, None, later=False)
    assert shown[0].text.rstrip("\n").endswith(world.client.requests[0]["history"][1]["content"].strip())


def test_a_conversation_that_fills_its_window_begins_anew(make: Any, load: Any) -> None:
    """Before GenericAgent would cut its head, the context: that is rendered again, the last turns behind it."""
    big = [Reply("Reading.", [call("code_run", script=f"{n} " + "x y z " * 500)]) for n in range(12)]
    world = make([*big, WRITE, CLAIM], deliverables=("a.txt",), work_window=14_000, context_tokens=7_000)
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]
    lengths = [len(request["history"]) for request in world.client.requests]
    anew = [n for n in range(1, len(lengths)) if lengths[n] == 2]
    assert anew
    opening = world.client.requests[anew[0]]["history"]
    assert opening[0]["content"].startswith("You are GenericAgent.")
    assert "Write a.txt." in opening[1]["content"]
    assert "x y z" in opening[1]["content"]


def test_a_goal_works_in_its_own_workspace(make: Any, load: Any, tmp_path: Path) -> None:
    """Relative paths are the workspace's, and what GenericAgent's prompts say of places follows."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",), workspace=str(tmp_path / "elsewhere"))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]
    assert (tmp_path / "elsewhere" / "a.txt").read_text() == "x"


def test_a_spent_limit_makes_no_task_and_then_ends_the_process(make: Any, load: Any) -> None:
    """No call is affordable: the goal is exhausted without GenericAgent having been asked."""
    world = make([], limits=Limits(turns=0))
    loader = load(world)

    assert (loader.step(), world.reasons()) == (None, ["GOAL_BUDGET_EXHAUSTED"])
    assert loader.step() == "/exit"
    assert world.now.status is GoalStatus.EXHAUSTED


def test_the_last_affordable_turn_wraps_up(make: Any, load: Any) -> None:
    """Only tools that save are offered in it, and what it calls besides does not run."""
    world = make([WORK, Reply("", [*WORK.calls, *SAVE.calls])], limits=Limits(turns=2))
    load(world).step()

    assert world.reasons() == ["GOAL_BUDGET_EXHAUSTED"]
    assert "code_run" not in world.client.requests[1]["tools"]
    assert "update_working_checkpoint" in world.client.requests[1]["tools"]
    assert world.now.spent.turns == 2


def test_an_unreadable_call_is_asked_for_again(make: Any, load: Any) -> None:
    """What GenericAgent's parser calls `bad_json` is a malformed call, corrected within the bound (B78)."""
    world = make([Reply("", [call("bad_json", msg="no JSON")]), WRITE, CLAIM], deliverables=("a.txt",))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_a_tool_that_nobody_has_is_answered(make: Any, load: Any) -> None:
    world = make([Reply("", [call("teleport")]), WRITE, CLAIM], deliverables=("a.txt",))
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_its_own_bound_is_an_ending_too(make: Any, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should its loop stop before ours wants it to, the wakeup does not wait for it for ever."""
    monkeypatch.setattr(hooks, "MARGIN", -3)
    world = make([WORK, WORK], max_turns=5)
    load(world).step()

    assert world.reasons() == ["MAX_TURNS_EXCEEDED"]
    assert "GenericAgent allows no more than 2 turns" in str(world.why())


@pytest.mark.parametrize("wanted", [{"sandbox": "bwrap"}, {"sandbox": "landlock"}, {"network": False}])
def test_a_goal_that_wants_a_sandbox_is_not_run_without_one(
    make: Any, load: Any, wanted: dict[str, Any]
) -> None:
    """Its tools run in its own process, so that there is none; a goal that names none is recorded so."""
    world = make([], **wanted)
    load(world)

    with pytest.raises(BadInput, match="in GenericAgent: it has no sandbox"):
        session._session.check()
    assert world.reasons() == []
    plain = make([WRITE, CLAIM], sandbox="auto")
    load(plain).step()
    assert [w["sandbox"] for w in show(plain.store, plain.goal.id)["wakeups"]] == ["none"]


def test_a_broken_hook_ends_the_wakeup_for_that_reason(make: Any, load: Any) -> None:
    """GenericAgent would swallow it and run on with half a context."""
    world = make([WRITE])
    world.checkout.agent.llmclient.backend = None
    load(world).step()

    assert world.reasons() == ["ENGINE_ERROR"]
    assert "AttributeError" in str(world.why())


@pytest.mark.parametrize(
    ("event", "requests"),
    [("agent_before", 0), ("turn_before", 1), ("llm_after", 1), ("tool_before", 1), ("turn_after", 1)],
)
def test_once_a_hook_has_failed_no_tool_runs_any_more(
    make: Any, load: Any, monkeypatch: pytest.MonkeyPatch, event: str, requests: int
) -> None:
    """What a hook raises is swallowed, and its loop goes on with what it has: it finds nothing more to do."""
    later = Reply("", [call("file_write", path="b.txt", content="x")])
    world = make([WRITE, later, CLAIM], deliverables=("a.txt",))

    def fails(*_: Any) -> None:
        raise ValueError("the hook is broken")

    monkeypatch.setattr(hooks.Task, event, fails)
    loader = load(world)
    loader.step()

    assert (world.reasons(), world.now.status) == (["ENGINE_ERROR"], GoalStatus.BLOCKED)
    assert "the hook is broken" in str(world.why())
    assert len(world.client.requests) == requests
    assert (world.workspace / "a.txt").exists() is (event == "turn_after")
    assert not (world.workspace / "b.txt").exists()
    assert loader.step() is None


def test_a_hook_that_fails_at_the_end_does_not_change_the_ending(
    make: Any, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored by then stands."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",))

    def fails(*_: Any) -> None:
        raise ValueError("the hook is broken")

    monkeypatch.setattr(hooks.Task, "agent_after", fails)
    loader = load(world)
    loader.step()

    assert (world.reasons(), loader.step()) == (["CURRENT_TASK_DONE"], "/exit")


def test_a_checkout_whose_hooks_are_silent_is_told(make: Any, load: Any) -> None:
    """It runs the marker as any task: the goal is blocked at once, and says where to look."""
    world = make([Reply("Which goal?")])
    world.checkout.hooks.registry.clear()
    loader = load(world)
    loader.step()

    assert (world.reasons(), world.now.status) == (["ENGINE_ERROR"], GoalStatus.BLOCKED)
    assert "generic-agent doctor" in str(world.why())
    assert loader.step() is None


def _wakeups(world: World) -> list[dict[str, Any]]:
    return sorted(show(world.store, world.goal.id)["wakeups"], key=lambda row: row["seq"])
