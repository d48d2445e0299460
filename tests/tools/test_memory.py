"""`remember`, `recall` and `start_long_term_update`, before a memory that answers by a script."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.memory import EARLIEST_TURN, MAX_MEMORY, SETTLEMENT_TURNS, Memory, MemoryKind, Remembered
from goalmode.domain.redact import Redactor
from goalmode.errors import NotAllowed
from goalmode.tools.builtin.memory import MEMORY_TOOLS, NOTHING
from goalmode.tools.registry import ToolContext
from tests.tools.conftest import Bench

SOME = Memory(
    7, MemoryKind.ENVIRONMENT, "port 8080\nsince May", "/w", "abc", 2, 3, datetime(2026, 1, 1, tzinfo=UTC)
)


@dataclass
class FakeMemory:
    """Keeps what it is told; knows one memory."""

    refusal: str = ""
    kept: list[tuple[MemoryKind, str, str]] = field(default_factory=list)

    def remember(self, kind: MemoryKind, text: str, replaces: str) -> Remembered:
        if self.refusal:
            raise NotAllowed(self.refusal)
        self.kept.append((kind, text, replaces))
        return Remembered(replace(SOME, text=text), known=text == SOME.text)

    def recall(self, query: str) -> tuple[Memory, ...]:
        return (SOME,) if "port" in query else ()

    def start_update(self) -> str:
        if self.refusal:
            raise NotAllowed(self.refusal)
        return "What is worth remembering?"


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@dataclass
class Caller:
    """Makes one call at a time."""

    context: ToolContext

    def __call__(self, tool: str, **arguments: Any) -> CallRecord:
        done = anyio.run(lambda: Bench(self.context).run((tool, arguments)))
        return done.records[0]


@pytest.fixture
def call(context: ToolContext, memory: FakeMemory) -> Caller:
    return Caller(replace(context, memory=memory, redact=Redactor(["hunter2-hunter2"])))


def told(record: CallRecord) -> tuple[CallOutcome, str]:
    return record.outcome, record.shown


def test_a_fact_is_kept_as_it_was_said(call: Caller, memory: FakeMemory) -> None:
    """Kind, text and what it replaces go on to the store; the answer names the label."""
    done = call("remember", kind="environment", text=" port 9090 \n", replaces="M3")

    assert told(done) == (CallOutcome.SUCCESS, "stored as M7")
    assert memory.kept == [(MemoryKind.ENVIRONMENT, "port 9090", "M3")]
    assert done.brief == "environment"
    assert not done.substantive
    assert done.patch is None


def test_what_is_known_is_said(call: Caller) -> None:
    """Equal text is not stored twice."""
    done = call("remember", kind="preference", text=SOME.text, replaces=None)

    assert done.shown == "M7 says so already; nothing is stored twice"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * MAX_MEMORY, "stored as M7"),
        ("x" * (MAX_MEMORY + 1), "remember: 1001 characters are too long, give at most 1000"),
        ("  \n", "remember: text is blank"),
    ],
    ids=["longest", "too long", "blank"],
)
def test_a_memory_has_a_bound(call: Caller, memory: FakeMemory, text: str, expected: str) -> None:
    """A text that is too long is refused, never cut; one that is blank is none."""
    assert expected in call("remember", kind="experience", text=text).shown
    assert [text for _, text, _ in memory.kept] == ([text] if "stored as" in expected else [])


def test_a_kind_that_does_not_exist_is_refused(call: Caller, memory: FakeMemory) -> None:
    """The schema's words are the only ones."""
    done = call("remember", kind="secret", text="x")

    assert done.outcome is CallOutcome.FAILED
    assert memory.kept == []


def test_a_refusal_is_an_answer(call: Caller, memory: FakeMemory) -> None:
    """B145: what may not be replaced is told, and nothing else happens."""
    memory.refusal = "another goal wrote M3"

    done = call("remember", kind="experience", text="x", replaces="M3")

    assert told(done) == (CallOutcome.FAILED, "remember: nothing is stored; another goal wrote M3")


def test_secrets_do_not_get_into_memories(call: Caller, memory: FakeMemory) -> None:
    """They are struck out before the store sees them."""
    call("remember", kind="environment", text="the password is hunter2-hunter2")

    assert "hunter2" not in str(memory.kept)


def test_recall_shows_label_kind_source_and_text(call: Caller) -> None:
    """Lines of a memory after its first are indented: no memory can look like two."""
    found = call("recall", query="which port")

    assert found.shown == "M7 [environment, goal abc, 2026-01-01] port 8080\n    since May"
    assert call("recall", query="zebra").shown == ("nothing is remembered that has one of these words")


def test_the_update_is_started_by_the_host(call: Caller, memory: FakeMemory) -> None:
    """The tool passes on the prompt, or why it is too early."""
    assert call("start_long_term_update").shown == "What is worth remembering?"

    memory.refusal = "too early"
    assert told(call("start_long_term_update")) == (
        CallOutcome.FAILED,
        "start_long_term_update: too early",
    )


def test_without_a_memory_the_tools_say_so(context: ToolContext) -> None:
    """A driver that has none gets an answer, not a crash."""
    call = Caller(context)

    for name, arguments in (("remember", {"kind": "environment", "text": "x"}), ("recall", {"query": "x"})):
        assert call(name, **arguments).shown == f"{name}: there is no long-term memory here"


def test_none_of_them_does_the_goals_work() -> None:
    """They are state tools: never substantive, always on offer beside a list of allowed tools."""
    assert {tool.effect for tool in (*MEMORY_TOOLS, NOTHING)} == {Effect.STATE}


def test_the_description_names_the_thresholds() -> None:
    """What the model is told is what the host does."""
    [start] = [tool for tool in MEMORY_TOOLS if tool.name == "start_long_term_update"]
    told = " ".join(start.spec.description.split())

    assert f"{SETTLEMENT_TURNS} or more turns" in told
    assert f"from turn {EARLIEST_TURN} on" in told
