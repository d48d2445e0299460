"""MCP servers in a wakeup: opened and closed with it, their tools in its context, their hand-overs its ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

from goalmode.context.tokens import request_tokens
from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import ContextPolicy
from goalmode.domain.outside import Server
from goalmode.domain.workflow import Movement, Workflow
from goalmode.inspection.why import why
from goalmode.loop.ports import Event
from goalmode.orchestrator.goals import edit_goal
from goalmode.orchestrator.questions import answer_question
from goalmode.state import questions
from goalmode.state.invariants import check
from goalmode.testing import call, say
from goalmode.tools import mcp_server
from goalmode.wiring import workshop
from tests.loop.conftest import Make, World
from tests.mcp_servers import in_memory, said, server, tool

LOOK = call("mcp__files__look", path="a.txt")
WORK = call("shell", command="echo 1 > out.txt")
CLAIM = call("complete", status="success", summary="Done.")
WAIT = call("wait", seconds=60, reason="later")


@pytest.fixture
def world(make: Make, monkeypatch: pytest.MonkeyPatch) -> World:
    """A goal with one server, `files`, that has the tools `look` and `put`."""
    made = make(deliverables=("out.txt",))
    made.servers = in_memory(monkeypatch, {"files": server([tool("look"), tool("put")])})
    return made


def names(world: World, number: int = -1) -> list[str]:
    return [spec.name for spec in world.requests[number].tools]


def of_kind(world: World, kind: str) -> list[Event]:
    return [event for event in world.events if event.kind == kind]


def test_the_tools_of_a_server_are_on_offer_and_can_be_called(world: World) -> None:
    """They stand beside the built-in ones, under names that say whose they are; a call is a call like any other."""
    ending = world.wake([LOOK, WORK, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert {"shell", "mcp__files__look", "mcp__files__put"} <= set(names(world))
    assert "look {'path': 'a.txt'}" in world.told(1)
    assert [e.data["tools"] for e in of_kind(world, "server")] == [2]


def test_the_stored_context_is_what_is_sent_with_the_servers_tools(world: World) -> None:
    """The context is rendered again for the tools there are: its tokens count them, and there is one context."""
    world.wake([WORK, CLAIM])

    shop = workshop(world.now, world.profile)
    first = world.requests[0]
    with world.store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT n, tokens FROM contexts").fetchall()
    assert [tuple(row) for row in rows] == [(0, request_tokens(shop.counter, first.messages, first.tools))]
    assert "mcp__files__look" in [spec.name for spec in first.tools]
    assert not check(world.store).findings


def test_the_context_says_what_it_would_say_without_servers(make: Make, world: World) -> None:
    """But for the tools that are sent beside it, nothing tells that it was rendered twice."""
    plain = make(deliverables=("out.txt",))
    for one in (plain, world):
        one.wake([WORK, CLAIM])

    assert plain.told(0).replace(str(plain.workspace), "W") == world.told(0).replace(
        str(world.workspace), "W"
    )


def test_the_context_stays_within_its_bound_whatever_a_server_lists(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what the built-in tools leave of a context is for servers' tools; what does not fit is counted."""
    world = make(deliverables=("out.txt",), context_tokens=6_000)
    many = [tool(f"tool_{n}", description="It does this. " * 60) for n in range(50)]
    world.servers = in_memory(monkeypatch, {"big": server(many)})

    world.wake([WORK, CLAIM])

    [seen] = of_kind(world, "server")
    shop = workshop(world.now, world.profile)
    assert 0 < seen.data["tools"] < 50
    assert seen.data["tools"] + seen.data["left_out"] == 50
    assert "would fill the context" in seen.data["told"]
    assert request_tokens(shop.counter, world.requests[0].messages, world.requests[0].tools) <= 6_000


def test_a_server_that_is_not_there_is_told_and_the_wakeup_goes_on(world: World) -> None:
    """The model is told which and why, once; who watches and `why` are told too."""
    problem = "$TOKEN is not set; its configuration needs it"
    world.servers = (*world.servers, Server("gone", problem=problem))

    ending = world.wake([LOOK, WORK, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    line = f"MCP server gone: {problem}"
    assert world.told(0).count(line) == 1
    assert [e.data["told"] for e in of_kind(world, "server")] == [
        "MCP server files: 2 tools",
        f"{line}; the wakeup goes on without its tools",
    ]
    assert [s["problem"] for s in why(world.store, world.goal.id)["ending"]["servers"]] == ["", line]


def test_without_a_server_nothing_is_started(make: Make) -> None:
    """A goal without servers has no event of any, and its context is rendered once."""
    world = make(deliverables=("out.txt",))

    world.wake([WORK, CLAIM])

    assert of_kind(world, "server") == []
    assert why(world.store, world.goal.id)["ending"]["servers"] == []


def test_a_wakeup_that_makes_no_call_starts_no_server(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the budget is spent before it begins, nothing is started."""
    world = make(limits=Limits(turns=0))
    world.servers = in_memory(monkeypatch, {"files": server([tool("look")])})

    assert world.wake([]).reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert of_kind(world, "server") == []


def test_servers_have_ended_when_the_ending_is_stored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is stored, another process may begin the next wakeup: nothing of this one runs then."""
    closed: list[str] = []
    close = mcp_server.Connection.close

    async def noted(self: mcp_server.Connection) -> None:
        await close(self)
        closed.append(world.now.status.value if self._client is None else "it runs")

    monkeypatch.setattr(mcp_server.Connection, "close", noted)

    assert world.wake([WORK, CLAIM]).reason is ExitReason.CURRENT_TASK_DONE
    assert closed[0] == "ACTIVE"
    assert set(closed) <= {"ACTIVE", "DONE"}


@pytest.mark.parametrize("policy", ContextPolicy)
def test_each_policy_has_them_in_each_wakeup(
    make: Make, monkeypatch: pytest.MonkeyPatch, policy: ContextPolicy
) -> None:
    """Rebuilt or replayed, the second wakeup begins with the tools too."""
    world = make(deliverables=("out.txt",), policy=policy, max_turns=1)
    world.servers = in_memory(monkeypatch, {"files": server([tool("look")])})

    world.wake([LOOK, say("Nothing to save.")], finished=False)
    world.wake([LOOK, say("Nothing to save.")], finished=False)

    assert "mcp__files__look" in names(world, 0)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (("shell", "mcp__files__look"), ["mcp__files__look"]),
        (("shell", "mcp__files__*"), ["mcp__files__look", "mcp__files__put"]),
        (("shell", "mcp__*"), ["mcp__files__look", "mcp__files__put"]),
        (("shell",), []),
        (("shell", "mcp__other__*"), []),
    ],
)
def test_a_goal_may_allow_some_of_them(
    make: Make, monkeypatch: pytest.MonkeyPatch, allowed: tuple[str, ...], expected: list[str]
) -> None:
    """`--tools` names them like others, or by their beginning; a server that has none of them is not started."""
    world = make(deliverables=("out.txt",))
    edit_goal(world.store, world.now, settings=replace(world.now.settings, tools=allowed))
    world.servers = in_memory(monkeypatch, {"files": server([tool("look"), tool("put")])})

    world.wake([WORK, CLAIM])

    assert [name for name in names(world) if name.startswith("mcp__")] == expected
    assert bool(of_kind(world, "server")) is bool(expected)


def test_a_movement_may_have_some_of_them(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A movement's list of tools holds for them as for others."""
    only = Workflow("w", "look", (Movement("look", "Look.", tools=("shell", "mcp__files__look")),))
    world = make(deliverables=("out.txt",), workflow=only)
    world.servers = in_memory(monkeypatch, {"files": server([tool("look"), tool("put")])})

    world.wake([WORK, CLAIM])

    assert [name for name in names(world) if name.startswith("mcp__")] == ["mcp__files__look"]


def test_a_list_that_changes_is_seen_by_the_next_wakeup(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a wakeup the tools on offer stay, so that a provider's cache holds; a tool that is gone answers so."""
    listed = [tool("old")]

    async def change(context: Any, params: CallToolRequestParams) -> Any:
        listed[:] = [tool("new")]
        await context.session.send_tool_list_changed()
        return said("no such tool", is_error=True)

    made = server(listed, {"old": change})
    world = make(deliverables=("out.txt",))
    world.servers = in_memory(monkeypatch, {"s": made})
    old, new = call("mcp__s__old"), call("mcp__s__new")

    world.wake([old, new, WORK, call("wait", seconds=60, reason="later")])
    assert "there is no tool" in world.told(2)
    assert "mcp__s__old" in names(world)
    world.wake([new, CLAIM])
    assert [name for name in names(world) if name.startswith("mcp__")] == ["mcp__s__new"]


def test_a_stop_is_seen_while_a_server_answers_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a call: the call is interrupted, the ending is the user's."""
    asked = anyio.Event()

    async def hang(context: Any, params: CallToolRequestParams) -> Any:
        asked.set()
        await anyio.sleep_forever()

    world = make()
    world.servers = in_memory(monkeypatch, {"slow": server([tool("hang")], {"hang": hang})})
    stop = Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"})

    ending = world.wake([call("mcp__slow__hang")], stop=lambda: stop if asked.is_set() else None)

    assert ending.reason is ExitReason.USER_ABORTED
    assert world.now.status is GoalStatus.PAUSED
    with world.store.reading() as connection:
        [row] = connection.exec_driver_sql("SELECT outcome, effect FROM tool_calls").fetchall()
    assert tuple(row) == ("interrupted", "write")


def test_a_tool_that_declares_it_hands_over_to_a_person(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool whose output schema has status and session id may answer `waiting_human`: the goal waits for a person."""
    answer = {"status": "waiting_human", "action": "sign", "wait_reason": "a contract", "session_id": "s-1"}
    declares = {"type": "object", "properties": {"status": {}, "session_id": {}, "action": {}}}

    async def ask(context: Any, params: CallToolRequestParams) -> Any:
        return said("please wait", structured_content=answer)

    tools = [tool("ask", output_schema=declares), tool("fetch")]
    world = make()
    world.servers = in_memory(monkeypatch, {"desk": server(tools, {"ask": ask, "fetch": ask})})

    ending = world.wake([call("mcp__desk__fetch"), call("mcp__desk__ask")])

    assert (ending.reason, ending.facts["session_id"]) == (ExitReason.WAITING_HUMAN, "s-1")
    assert world.now.status is GoalStatus.WAITING_USER
    with world.store.reading() as connection:
        [question] = questions.open_of(connection, world.now)
    assert (question.asking.text, question.asking.session_id) == ("sign", "s-1")


FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}

Asks = Callable[[World], list[Any]]


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Asks:
    """Gives a goal a server that asks before it deletes, in the way of either protocol; returns what it was told."""
    done: list[Any] = []

    async def in_the_call(context: Any, params: CallToolRequestParams) -> Any:
        answer = await context.session.elicit_form(_question(params), FORM)
        done.append((answer.action, answer.content))
        return said(f"{answer.action}: {answer.content}")

    async def before_another(context: Any, params: CallToolRequestParams) -> Any:
        if params.input_responses is None:
            form = ElicitRequestFormParams(message=_question(params), requested_schema=FORM)
            return InputRequiredResult(input_requests={"q": ElicitRequest(params=form)}, request_state="s")
        answer = params.input_responses["q"]
        assert (isinstance(answer, ElicitResult), params.request_state) == (True, "s")
        done.append((answer.action, answer.content))
        return said(f"{answer.action}: {answer.content}")

    def give(world: World) -> list[Any]:
        legacy = request.param == "2025-11-25"
        if legacy:
            monkeypatch.setattr(mcp_server, "Client", partial(Client, mode="legacy"))
        answers = {"delete": in_the_call if legacy else before_another}
        world.servers = in_memory(monkeypatch, {"files": server([tool("delete")], answers)})
        return done

    return give


def _question(params: CallToolRequestParams) -> str:
    return f"Delete {(params.arguments or {})['name']}?"


DELETE = call("mcp__files__delete", name="a.txt")


def test_a_question_of_a_server_waits_for_a_person_whose_answer_it_gets(make: Make, asks: Asks) -> None:
    """Asked in the middle of a call, the goal waits; answered, the same call of the next wakeup is told. Once."""
    world = make(deliverables=("out.txt",))
    done = asks(world)

    first = world.wake([DELETE])

    assert first.reason is ExitReason.WAITING_HUMAN
    assert "Delete a.txt?" in first.detail
    assert ("accept", {"sure": True}) not in done
    answer_question(world.store, world.now, "yes")

    again = world.wake([DELETE, DELETE])

    assert done.count(("accept", {"sure": True})) == 1
    assert "accept: {'sure': True}" in world.told(1)
    assert again.reason is ExitReason.WAITING_HUMAN


def test_an_answer_is_for_the_same_call_only(make: Make, asks: Asks) -> None:
    """A yes to one file is no yes to another."""
    world = make()
    done = asks(world)
    world.wake([DELETE])
    answer_question(world.store, world.now, "yes")

    assert world.wake([call("mcp__files__delete", name="b.txt")]).reason is ExitReason.WAITING_HUMAN
    assert not [one for one in done if one[0] == "accept"]


def test_an_answer_is_not_kept_for_a_later_wakeup(make: Make, asks: Asks) -> None:
    """A wakeup that does not ask again leaves the answer behind."""
    world = make(max_turns=1)
    done = asks(world)
    world.wake([DELETE])
    answer_question(world.store, world.now, "yes")
    world.wake([WORK, say("Nothing to save.")], finished=False)

    assert world.wake([DELETE]).reason is ExitReason.WAITING_HUMAN
    assert not [one for one in done if one[0] == "accept"]


def test_a_person_may_decline(make: Make, asks: Asks) -> None:
    """`decline` is told as such, and the call's result is one like any other."""
    world = make(deliverables=("out.txt",))
    done = asks(world)
    world.wake([DELETE])
    answer_question(world.store, world.now, "decline")

    assert world.wake([DELETE, WORK, CLAIM]).reason is ExitReason.CURRENT_TASK_DONE
    assert done[-1] == ("decline", None)
