"""`update_working_checkpoint` and `verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.redact import Redactor
from goalmode.domain.work import (
    MAX_DONE,
    MAX_FAILED,
    MAX_PENDING,
    ItemStatus,
    StatePatch,
    WorkState,
    apply,
)
from goalmode.errors import BadInput, ToolError
from goalmode.tools.builtin.checkpoint import update_working_checkpoint, verify
from goalmode.tools.registry import ToolContext, ToolOutput
from goalmode.tools.schema import validate

pytestmark = pytest.mark.anyio


async def save(context: ToolContext, **arguments: Any) -> ToolOutput:
    assert validate(update_working_checkpoint.spec.parameters, arguments) == []
    return await update_working_checkpoint.run(context, arguments)


async def test_everything_given_becomes_one_patch(context: ToolContext) -> None:
    """Each field has its place, paths come clean, and the result names the labels for `verify`."""
    output = await save(
        context,
        key_info="k",
        summary="s",
        next_steps=["one", "two"],
        done=["d"],
        pending=["p", "q"],
        failed_approaches=["plain", {"approach": "a", "outcome": "o"}],
        deliverables=["./out/a b.md"],
    )

    assert output.patch == StatePatch(
        key_info="k",
        summary="s",
        next_steps=("one", "two"),
        done=("d",),
        pending=("p", "q"),
        failed={"plain": "", "a": "o"},
        found=("out/a b.md",),
    )
    assert output.text == (
        "saved: key_info (1 characters), summary (1 characters), 2 next steps, done W1, pending W2 W3, "
        "failed W4 W5, 1 deliverables"
    )


@pytest.mark.parametrize("empty", [None, "", "  ", []], ids=str)
async def test_what_is_empty_stays_as_it_was(empty: Any, context: ToolContext) -> None:
    """Many a model fills in every field: null, a blank text and an empty list are no wish to forget."""
    texts = ("key_info",) if isinstance(empty, str | None) else ()
    lists = ("next_steps", "done", "pending", "failed_approaches", "deliverables")
    given = dict.fromkeys((*texts, *(() if isinstance(empty, str) else lists)), empty)

    assert (await save(context, **given, summary="s")).patch == StatePatch(summary="s")


@pytest.mark.parametrize(
    "arguments", [{}, {"key_info": None}, {"done": [], "pending": None}, {"key_info": " "}], ids=str
)
async def test_an_empty_call_is_refused(arguments: dict[str, Any], context: ToolContext) -> None:
    """A call that saves nothing is told what it could save."""
    with pytest.raises(ToolError, match="nothing to save; give at least one of key_info, summary"):
        await save(context, **arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"key_info": "x" * 8_001}, "key_info: 8001 characters are too long, give at most 8000"),
        ({"summary": "x" * 4_001}, "summary: 4001 characters"),
        ({"done": ["ok", "x" * 1_001]}, "done: 1001 characters"),
        ({"failed_approaches": [{"approach": "a", "outcome": "x" * 1_001}]}, "failed_approaches: 1001"),
        ({"pending": ["x"] * 51}, "51 items in one call are too many, give at most 50"),
        ({"next_steps": ["x"] * 21}, "next_steps: 21 are too many"),
        ({"pending": ["  "]}, "pending: it is blank"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_what_is_too_much_is_refused_with_the_bound(
    arguments: dict[str, Any], problem: str, context: ToolContext
) -> None:
    """Nothing is cut in silence: the model is told how much may be saved."""
    with pytest.raises(ToolError, match=problem):
        await save(context, **arguments)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "~/x", "file:///etc/passwd", "C:\\x", "\\\\srv\\s", "a\x00"]
)
async def test_a_deliverable_outside_is_refused(path: str, context: ToolContext) -> None:
    """The model cannot register a path that leads out (B113)."""
    with pytest.raises(BadInput):
        await save(context, deliverables=[path])


async def test_what_is_saved_holds_no_secret_and_can_be_stored(context: ToolContext) -> None:
    """Model text is redacted and made storable before it becomes state (B65, B67)."""
    context = replace(context, redact=Redactor(["hunter2"]))
    output = await save(context, key_info="pass hunter2\x00", done=["\ud83c\udf78 hunter2"])

    assert output.patch == StatePatch(key_info="pass [redacted]␀", done=("\U0001f378 [redacted]",))


async def test_an_approach_that_failed_before_is_flagged(context: ToolContext) -> None:
    """With its label, how often it was tried and what came of it, however it is written now; a new one is not."""
    tried = apply(WorkState(), StatePatch(done=("x",), failed={"Use sed": "broke it"}), wakeup=1)
    tried = apply(tried, StatePatch(failed={"use  SED": ""}), wakeup=2)
    context = replace(context, work=tried)

    output = await save(context, failed_approaches=[{"approach": "USE sed", "outcome": ""}, "awk"])

    assert output.text.splitlines() == [
        "saved: failed W2 W3",
        "W2: tried 3 times already, outcome: broke it; choose another way",
    ]


async def test_an_approach_named_twice_in_one_call_was_tried_once(context: ToolContext) -> None:
    """Its later outcome counts, unless it says nothing."""
    given = [{"approach": "sed", "outcome": "slow"}, {"approach": "SED", "outcome": "crash"}, "sed"]

    output = await save(context, failed_approaches=given)

    assert output.patch == StatePatch(failed={"sed": "crash"})
    assert output.text == "saved: failed W1"


@pytest.mark.parametrize(
    ("name", "limit"),
    [("done", MAX_DONE), ("pending", MAX_PENDING), ("failed_approaches", MAX_FAILED)],
)
async def test_a_full_goal_takes_no_more_items(name: str, limit: int, context: ToolContext) -> None:
    """The error names the list and its bound, nothing of the call is saved, and what is there may be saved again."""
    texts = tuple(f"item {n}" for n in range(limit))
    field = {"failed_approaches": "failed"}.get(name, name)
    given = dict.fromkeys(texts, "") if field == "failed" else texts
    context = replace(context, work=apply(WorkState(), StatePatch(**{field: given}), wakeup=1))

    with pytest.raises(ToolError, match=rf"nothing is saved; {name}: .* at most {limit}"):
        await save(context, key_info="k", **{name: ["one more"]})
    assert (await save(context, **{name: ["ITEM 0"]})).patch is not None


def working(context: ToolContext) -> ToolContext:
    patch = StatePatch(done=("built",), pending=("totals match",), failed={"sed": "broke it"})
    return replace(context, work=apply(WorkState(), patch, wakeup=1))


@pytest.mark.parametrize("item", ["W2", "w2", " W2 ", "totals match"])
async def test_an_item_is_verified_by_label_or_text(item: str, context: ToolContext) -> None:
    """Both ways to name an item lead to the same change."""
    context = working(context)
    output = await verify.run(context, {"item": item, "outcome": "passed", "evidence": "pytest: 3 passed"})

    assert output.text == "W2 passed"
    assert output.patch is not None
    after = apply(context.work, output.patch, wakeup=2).item("W2")
    assert after is not None
    assert (after.status, after.evidence) == (ItemStatus.VERIFIED, "pytest: 3 passed")


async def test_a_failed_verification_leaves_the_item_open(context: ToolContext) -> None:
    """What failed awaits verification again."""
    context = working(context)
    output = await verify.run(context, {"item": "W1", "outcome": "failed", "evidence": "exit 1"})

    assert output.patch is not None
    assert [i.label for i in apply(context.work, output.patch, wakeup=2).pending] == ["W1", "W2"]


@pytest.mark.parametrize(
    ("item", "evidence", "problem"),
    [
        ("W9", "x", "no item 'W9'; awaiting verification: W2: totals match"),
        ("W3", "x", "W3 is a failed approach"),
        ("W2", " ", "evidence: it is blank"),
        ("W2", "x" * 2_001, "evidence: 2001 characters"),
    ],
    ids=lambda value: value[:12],
)
async def test_a_verification_that_cannot_be_is_told(
    item: str, evidence: str, problem: str, context: ToolContext
) -> None:
    """An unknown item lists the open ones; evidence must say something."""
    with pytest.raises(ToolError, match=problem):
        await verify.run(working(context), {"item": item, "outcome": "passed", "evidence": evidence})


async def test_without_open_items_that_is_said(context: ToolContext) -> None:
    """Where nothing is open, the error does not list anything."""
    with pytest.raises(ToolError, match="no item awaits verification"):
        await verify.run(context, {"item": "W1", "outcome": "passed", "evidence": "x"})
