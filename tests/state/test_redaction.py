"""One choke point: no known secret is in any file of the store, whatever text it came in."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.contract import Requirement
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.messages import Reply, ToolCall, ToolResult, Usage, User
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.domain.redact import MARK, Redactor
from goalmode.domain.signals import StopReason
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.state import answers, bodies, closing, goals, journal, notes, questions, snapshot, wakeups
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult
from goalmode.state.closing import Aftermath
from goalmode.state.goals import Edit
from goalmode.state.locks import LockGate
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.testing import ManualClock, temporary_store
from tests.state.builders import CONTEXT, RESERVE, intent, new_goal, outcome, record, rows
from tests.stores import Stores

CANARY = 'canary-"7f3/x+1'
FORMS = [CANARY, quote(CANARY, safe=""), json.dumps(CANARY)[1:-1], base64.b64encode(CANARY.encode()).decode()]
SAID = " | ".join(FORMS)


@pytest.fixture
def store(tmp_path: Path, new_stores: Stores) -> Iterator[Store]:
    with Store(
        new_stores.new(tmp_path / "store" / "goals.sqlite"), clock=ManualClock(), redact=Redactor([CANARY])
    ) as opened:
        yield opened


def everything(store: Store) -> str:
    """Every value of every row, bodies unpacked, and the bytes of every file beside it."""
    parts = []
    with store.reading() as connection:
        for table in t.SQLModel.metadata.tables.values():
            parts += [repr(tuple(row)) for row in connection.execute(table.select())]
        ids = connection.execute(t.bodies.select().with_only_columns(t.bodies.c.id)).scalars()
        parts += bodies.get(connection, list(ids)).values()
    beside = [] if store.path is None else store.path.parent.rglob("*")
    parts += [p.read_bytes().decode("latin-1") for p in beside if p.is_file()]
    return "\n".join(parts)


def live(store: Store) -> None:
    """A whole life of a goal in which the secret is in every text that comes from outside."""
    now = store.clock.now()
    goal = new_goal(store, f"Use {SAID}.", requirements=(Requirement("R1", SAID),))
    context = replace(CONTEXT, text=SAID, messages=[["user", SAID]])
    claimed = wakeups.claim(store, goal, seq=1, context=context, reserve=RESERVE, counted=True, now=now)
    assert claimed is not None
    said = Reply(
        StopReason.UNKNOWN,
        SAID,
        (ToolCall(f"id-{CANARY}", f"tool-{CANARY}", json.dumps({"command": SAID})),),
        Usage(1, output=1),
        stop_raw=SAID,
        stop_native=SAID,
        stop_detail=SAID,
        model=SAID,
        request_id=SAID,
    )
    turn = intent(store, claimed, said)
    path = store.lock_file(goal.id, claimed.fence)
    with LockGate(path, 1, lambda: wakeups.current_fence(store, goal.id)).enter("c0"):
        pass
    work = apply(
        WorkState(),
        StatePatch(
            key_info=SAID, summary=SAID, next_steps=(SAID,), done=(SAID,), failed={SAID: SAID}, found=(SAID,)
        ),
        wakeup=1,
    )
    outcome(
        store,
        claimed,
        turn,
        record("c0", shown=SAID, body=SAID, brief=SAID),
        messages=[ToolResult("c0", "shell", SAID), User(SAID)],
        work=work,
        checks=[CheckResult("R1", False, 1, tail=SAID)],
    )
    journal.failed_call(
        store,
        claimed,
        seq=2,
        purpose=Purpose.WORK,
        usage=Usage(1),
        detail=SAID,
        active_ms=0,
        started_at=now,
        now=now,
    )
    wakeups.met_obstacle(store, claimed, SAID)
    journal.event(store, goal.id, "note", {SAID: [SAID, {"deep": SAID}]}, now=now)
    goals.edit(store, goal, Edit(1, f"Now {SAID}", (Requirement("R1", SAID),)), now=now)
    notes.add(store, goal, SAID, now=now)
    asking = Asking(QuestionKind.INPUT, SAID, SAID, (SAID,), SAID, session_id=SAID)
    asks = Exit(ExitReason.NEEDS_USER_INPUT, SAID, question=asking)
    with store.writing() as connection:
        questions.ask(store, connection, goal.id, 1, asks, now=now)
    answers.answer(store, goal, 1, SAID, now=now)
    exit = Exit(ExitReason.BACKEND_ERROR, SAID, {"traceback": SAID, "nested": {"error": [SAID]}})
    after = Aftermath(GoalStatus.BLOCKED, SAID, None, "", 0, 0)
    stored, _ = closing.close(store, claimed, exit, after, active_ms=0, now=now, revision=1)
    assert MARK in stored.detail
    assert not [form for form in FORMS if form in repr(stored)]


def test_a_secret_is_in_no_row_body_or_file(store: Store) -> None:
    """B115: objective, contract, context, reply, result, state, checks, errors, tracebacks, answers, events."""
    live(store)
    found = everything(store)

    assert [form for form in FORMS if form in found] == []
    assert found.count(MARK) > 20
    assert goals.get(store, 1).objective.startswith(f"Now {MARK}")


def test_the_redacted_state_is_still_readable(store: Store) -> None:
    """What is left is a goal like any other: JSON stayed JSON."""
    live(store)

    seen = snapshot.snapshot(store, 1, now=store.clock.now())

    assert seen.work.checkpoint.key_info == " | ".join([MARK] * len(FORMS))
    assert seen.last is not None
    assert seen.last.detail == " | ".join([MARK] * len(FORMS))


def test_redaction_comes_before_every_cut(store: Store) -> None:
    """A secret at a cap's edge is not stored in half."""
    goal = new_goal(store)
    claimed = wakeups.claim(
        store, goal, seq=1, context=CONTEXT, reserve=RESERVE, counted=True, now=store.clock.now()
    )
    assert claimed is not None
    edge = "x" * 195 + CANARY
    turn = intent(
        store, claimed, Reply(StopReason.UNKNOWN, calls=(ToolCall("c0", edge, "{}"),), stop_raw=edge)
    )
    outcome(store, claimed, turn, record("c0", brief=edge))

    assert CANARY[:3] not in "".join(
        map(str, rows(store, "SELECT brief, tool, stop_raw FROM tool_calls JOIN turns ON turns.id = turn"))
    )


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=40), min_size=1, max_size=20))
def test_any_text_can_be_stored_and_comes_back(texts: list[str]) -> None:
    """NUL and lone surrogates of a model or a file are made visible; everything else comes back as it was."""
    with temporary_store() as store:
        for text in texts:
            expected = store.clean(text)

            assert goals.get(store, new_goal(store, text).id).objective == expected
            assert expected == text or any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text)


def test_a_number_that_no_json_holds_is_stored_as_none(store: Store) -> None:
    """One database takes NaN and infinity for JSON, the other does not: neither gets them."""
    value = {"a": [float("nan"), float("-inf"), 1.5], "b": True}

    assert store.clean_json(value) == {"a": [None, None, 1.5], "b": True}
