"""Whatever happens in a wakeup, and however it ends: its spans are a tree, all ended, with nothing that was said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
import sqlalchemy as sa

from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason
from goalmode.domain.messages import Request, ToolCall, Usage
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError, StoreError
from goalmode.loop.ports import Event
from goalmode.state import tables as t
from goalmode.telemetry import spans, traced
from goalmode.testing import ScriptedModel, call, calls, say
from goalmode.tools.registry import tool
from goalmode.wiring import run_wakeup
from tests.loop.conftest import Make
from tests.telemetry.conftest import Run, Traces

WRITE = call("write_file", path="a.txt", content="a word that nobody else may read")
DONE = call("complete", status="success", summary="the secret summary", evidence=["a.txt"])
LOOK = call("list_files", path=".")
AGENT = "invoke_agent goalmode"


def test_the_spans_of_a_goal_that_is_done(make: Make, run: Run, traces: Traces) -> None:
    """The wakeup holds each model call and each tool call, with the conventions' names."""
    world = make(deliverables=("a.txt",))
    used = Usage(input=900, cached=600, cache_write=100, output=40)
    write = replace(WRITE, usage=used, model="scripted-2030", stop_raw="tool_calls")

    assert run(world, [write, DONE]).reason is ExitReason.CURRENT_TASK_DONE

    assert traces.tree() == [
        AGENT,
        "  chat scripted",
        "  execute_tool write_file",
        "  chat scripted",
        "  execute_tool complete",
    ]
    uid = world.goal.uid
    assert traces.of("invoke_agent") == [
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "goalmode",
            "gen_ai.conversation.id": uid,
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "scripted",
            "goalmode.wakeup.id": f"{uid}.1",
            "goalmode.fence": 1,
            "goalmode.exit_reason": "CURRENT_TASK_DONE",
        }
    ]
    assert traces.of("chat")[0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted-2030",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.cache_read.input_tokens": 600,
        "gen_ai.usage.cache_creation.input_tokens": 100,
        "gen_ai.usage.output_tokens": 40,
        "goalmode.turn": 1,
        "goalmode.purpose": "work",
    }
    [write_file, _] = traces.of("execute_tool")
    assert write_file.pop("gen_ai.tool.call.id")
    assert write_file == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write_file",
        "gen_ai.tool.type": "function",
        "goalmode.turn": 1,
    }
    assert {span.name.split()[0]: span.kind.name for span in traces.spans} == {
        "invoke_agent": "INTERNAL",
        "chat": "CLIENT",
        "execute_tool": "INTERNAL",
    }


def test_nothing_that_was_said_is_in_a_span(make: Make, run: Run, traces: Traces) -> None:
    """Neither the objective nor arguments, results, prose, or a claim's words; what looks like a key is struck out."""
    world = make("Find the hidden treasure.", deliverables=("a.txt",))
    unknown = replace(LOOK, calls=(ToolCall("c1", "sk-abcdefghijklmnopqrstuvwxyz", '{"path": "treasure"}'),))

    run(world, [replace(WRITE, text="I found the treasure."), unknown, DONE])

    told = "\n".join(span.to_json() for span in traces.spans)
    for text in ("treasure", "nobody else", "a.txt", "secret summary", "sk-abc"):
        assert text not in told
    assert "execute_tool [redacted]" in traces.tree()[4]


def test_calls_that_run_at_once_are_told_apart(make: Make, run: Run, traces: Traces) -> None:
    """Each of several reads has its own span, open while the others are, and a failed one is an error."""
    world = make(max_turns=1)
    missing = call("read_file", path="missing.txt")

    run(world, [calls(LOOK, missing, LOOK), say("")])

    assert traces.tree()[:5] == [
        AGENT,
        "  chat scripted",
        "  execute_tool list_files",
        "  execute_tool read_file ! failed",
        "  execute_tool list_files",
    ]
    tools = [span for span in traces.spans if span.name.startswith("execute_tool")]
    assert len({attributes["gen_ai.tool.call.id"] for attributes in traces.of("execute_tool")}) == 3
    assert max(s.start_time or 0 for s in tools) < min(s.end_time or 0 for s in tools)


def test_a_provider_that_fails(make: Make, run: Run, traces: Traces) -> None:
    """The call that came to nothing has the error's kind, and the wakeup its exit reason."""
    world = make()

    run(world, [LOOK, ModelError(ErrorKind.SERVER, "bad gateway at https://u:p@example.org", status=502)])

    assert traces.tree() == [
        f"{AGENT} ! BACKEND_ERROR",
        "  chat scripted",
        "  execute_tool list_files",
        "  chat scripted ! SERVER",
    ]
    [root] = [span for span in traces.spans if span.parent is None]
    assert (root.status.description, root.attributes["goalmode.exit_reason"]) == ("BACKEND_ERROR",) * 2  # type: ignore[index]


def test_a_request_that_was_too_long_is_asked_again(make: Make, run: Run, traces: Traces) -> None:
    """The refused call is an error, the one that follows with a new context is not."""

    @tool(effect="read")
    def tell(words: int) -> str:
        """Tell much."""
        return "tide " * words

    world = make(tools=(tell,), work_window=16_000)
    big = [call("tell", words=700 + n) for n in range(4)]

    run(world, [*big, ModelError(ErrorKind.CONTEXT_OVERFLOW, "too long"), WRITE, DONE])

    assert "context_rerendered" in world.kinds()
    assert traces.tree()[9:] == [
        "  chat scripted ! _OTHER",
        "  chat scripted",
        "  execute_tool write_file",
        "  chat scripted",
        "  execute_tool complete",
    ]


def test_an_early_stop(make: Make, run: Run, traces: Traces) -> None:
    """Recovery calls say what they are for, and the ending is an error."""
    world = make(deliverables=("a.txt",), max_recoveries=1)

    assert run(world, [say("All done."), say("All done.")]).reason is ExitReason.EARLY_NO_TOOL

    assert traces.tree() == [f"{AGENT} ! EARLY_NO_TOOL", "  chat scripted", "  chat scripted"]
    assert [a["goalmode.purpose"] for a in traces.of("chat")] == ["work", "recovery"]


def test_a_run_that_is_cancelled(make: Make, traces: Traces) -> None:
    """The wakeup is told as the user's stop, and the call that was under way as cut off by it."""
    world = make()

    async def wakeup() -> None:
        with anyio.CancelScope() as scope, traced(provider=traces.provider) as sink:

            async def cancel(request: Request) -> Any:
                scope.cancel()
                await anyio.sleep_forever()

            await run_wakeup(world.begin(), ScriptedModel([LOOK, cancel]), sink=sink)

    anyio.run(wakeup)

    assert traces.tree()[0] == AGENT
    assert traces.tree()[-1] == "  chat scripted ! USER_ABORTED"
    assert traces.of("invoke_agent")[0]["goalmode.exit_reason"] == "USER_ABORTED"


def test_our_own_failure(make: Make, run: Run, traces: Traces) -> None:
    """ENGINE_ERROR is the wakeup's error, without its traceback."""
    run(make(), [lambda request: 1 / 0])

    assert traces.tree() == [f"{AGENT} ! ENGINE_ERROR", "  chat scripted ! ENGINE_ERROR"]
    assert "ZeroDivision" not in "".join(span.to_json() for span in traces.spans)


def test_a_store_that_fails(make: Make, run: Run, traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wakeup that is not closed has no exit reason; its spans end with what ended the run."""
    world = make()
    wake = world.begin()

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(wake, "intent", full)

    with pytest.raises(StoreError):
        run(world, [LOOK], wake=wake)

    assert traces.tree() == [f"{AGENT} ! StoreError", "  chat scripted ! StoreError"]
    assert "goalmode.exit_reason" not in traces.of("invoke_agent")[0]


def test_an_owner_that_was_fenced(make: Make, run: Run, traces: Traces) -> None:
    """Once another process has the goal, the old one's spans end without an ending of the goal's."""
    world = make()
    wake = world.begin()
    with world.store.writing() as connection:
        connection.execute(sa.update(t.wakeups).values(fence=99))

    run(world, [LOOK], wake=wake)

    assert traces.tree()[0] == f"{AGENT} ! _OTHER"
    assert "goalmode.exit_reason" not in traces.of("invoke_agent")[0]


def test_a_tool_that_is_stopped(make: Make, run: Run, traces: Traces) -> None:
    """A stop while calls wait their turn: what ran, and what did not run."""
    world, stopped = make(), []

    def after_one(event: Event) -> None:
        if event.kind == "tool":
            stopped.append(Exit(ExitReason.INTERRUPTED, "SIGTERM", {"requested": True}))

    run(
        world,
        [calls(WRITE, WRITE)],
        sink=after_one,
        stop=lambda: stopped[0] if stopped else None,
    )

    assert traces.tree() == [
        AGENT,
        "  chat scripted",
        "  execute_tool write_file",
        "  execute_tool write_file ! skipped",
    ]


def test_wakeups_that_run_at_once_have_a_trace_each(traces: Traces) -> None:
    """One sink may be told of several."""
    started = {"fence": 1, "model": "m", "wire": "openai-responses"}
    asking = {"turn": 1, "purpose": "work"}
    closed = {"exit_reason": "YIELDED", "facts": {}}

    with traced(provider=traces.provider) as sink:
        for kind, data in [("wakeup_started", started), ("asking", asking), ("wakeup_closed", closed)]:
            for goal in ("one", "two"):
                sink(Event(kind, {"goal": goal, "wakeup": 3, **data}))

    assert traces.tree() == [AGENT, "  chat m ! YIELDED"] * 2
    assert {a["goalmode.wakeup.id"] for a in traces.of("invoke_agent")} == {"one.3", "two.3"}
    assert {a["gen_ai.provider.name"] for a in traces.of("chat")} == {"openai"}


def test_a_wakeup_is_a_part_of_what_its_program_traces(make: Make, run: Run, traces: Traces) -> None:
    """The span that is current as it begins is its parent."""
    tracer = traces.provider.get_tracer("a program")

    with tracer.start_as_current_span("night shift"):
        run(make(deliverables=("a.txt",)), [WRITE, DONE])

    assert traces.tree()[:3] == ["night shift", f"  {AGENT}", "    chat scripted"]


def test_which_endings_are_errors() -> None:
    """Bad endings and failures are; success, waiting, and what a user or a limit decided are not."""
    assert set(EXIT_FACTS) - spans.FAILED == {
        ExitReason.CURRENT_TASK_DONE,
        ExitReason.MAX_TURNS_EXCEEDED,
        ExitReason.YIELDED,
        ExitReason.NEEDS_USER_INPUT,
        ExitReason.WAITING_HUMAN,
        ExitReason.TASK_BLOCKED,
        ExitReason.GOAL_BUDGET_EXHAUSTED,
        ExitReason.USER_ABORTED,
    }


def test_what_a_span_shows_is_short_and_sendable(traces: Traces) -> None:
    """A name from outside is cut, on one line, and holds nothing that no exporter could encode."""
    name = "tool\n\ud800" + "x" * 500

    with traced(provider=traces.provider) as sink:
        whose = {"goal": "g", "wakeup": 1}
        sink(Event("wakeup_started", {**whose, "fence": 1, "model": "m", "wire": "openai"}))
        told = {"turn": 1, "call_id": "c", "tool": name, "outcome": "denied"}
        sink(Event("tool", {**whose, **told}))

    [shown] = [a["gen_ai.tool.name"] for a in traces.of("execute_tool")]
    assert (len(shown), "\n" in shown) == (spans.LONGEST, False)
    assert shown.encode()


def test_the_stop_reason_stands_where_a_provider_sent_no_word(make: Make, run: Run, traces: Traces) -> None:
    """A reply without the provider's own word has ours."""
    cut = replace(say("Half", stop=StopReason.MISSING), stop_raw=None)
    run(make(deliverables=("a.txt",), max_recoveries=0), [cut, WRITE, DONE])

    assert traces.of("chat")[0]["gen_ai.response.finish_reasons"] == ("MISSING",)
