"""What is put right in a conversation, case by case; what holds for any conversation is in `test_repair_properties`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goalmode.domain.messages import Assistant, Fix, FixKind, Message, System, ToolCall, ToolResult, User
from goalmode.domain.profile import CallIds, ModelProfile, Protocol
from goalmode.model import lint, lint_dialects
from goalmode.model.repair import repair
from goalmode.model.repair.pairs import NO_RESULT
from goalmode.model.rules import ANTHROPIC, CHAT, MISTRAL, RESPONSES, rules_for
from goalmode.model.wire import openai_messages

SYSTEM, USER = System("You work."), User("Go on.")
K = FixKind


def asks(*ids: str, text: str = "", tool: str = "shell", **extra: object) -> Assistant:
    return Assistant(text, tuple(ToolCall(id_, tool, "{}") for id_ in ids), extra)


def result(id_: str, text: str = "") -> ToolResult:
    return ToolResult(id_, "shell", text or f"result of {id_}")


def closed(id_: str, tool: str = "shell") -> ToolResult:
    return ToolResult(id_, tool, NO_RESULT)


CASES: dict[str, tuple[list[Message], list[Message], list[tuple[FixKind, int]]]] = {
    "a call at the end": ([USER, asks("a")], [USER, asks("a"), closed("a")], [(K.CLOSED, 1)]),
    "a control call before the next prompt": (
        [USER, asks("a", tool="complete"), USER],
        [USER, asks("a", tool="complete"), closed("a", "complete"), USER],
        [(K.CLOSED, 1)],
    ),
    "one of two calls": (
        [USER, asks("a", "b"), result("b")],
        [USER, asks("a", "b"), closed("a"), result("b")],
        [(K.CLOSED, 1)],
    ),
    "a result that came late": (
        [USER, asks("a"), User("Well?"), result("a")],
        [USER, asks("a"), result("a"), User("Well?")],
        [(K.MOVED, 3)],
    ),
    "a result of nothing": ([USER, result("x"), USER], [USER, USER], [(K.DROPPED, 1)]),
    "a result before its call": (
        [USER, result("a"), asks("a")],
        [USER, asks("a"), closed("a")],
        [(K.DROPPED, 1), (K.CLOSED, 2)],
    ),
    "a second result": (
        [USER, asks("a"), result("a", "one"), result("a", "two")],
        [USER, asks("a"), result("a", "one")],
        [(K.DROPPED, 3)],
    ),
    "a real result behind a made-up one": (
        [USER, asks("a"), closed("a"), result("a")],
        [USER, asks("a"), result("a")],
        [(K.DROPPED, 2)],
    ),
    "an id used again": (
        [USER, asks("a"), result("a", "one"), asks("a"), result("a", "two")],
        [USER, asks("a"), result("a", "one"), asks("call_2"), result("call_2", "two")],
        [(K.RENAMED, 3)],
    ),
    "an id used twice in one reply": (
        [USER, asks("a", "a"), result("a", "one"), result("a", "two")],
        [USER, asks("a", "call_2"), result("a", "one"), result("call_2", "two")],
        [(K.RENAMED, 1)],
    ),
    "a late result of an id used again": (
        [USER, asks("a"), asks("a"), result("a")],
        [USER, asks("a"), closed("a"), asks("call_2"), result("call_2", "result of a")],
        [(K.CLOSED, 1), (K.RENAMED, 2)],
    ),
    "no id": (
        [USER, asks(""), result("", "one")],
        [USER, asks("call_1"), result("call_1", "one")],
        [(K.RENAMED, 1)],
    ),
    "an empty reply": ([USER, Assistant(" \n"), USER], [USER, USER], [(K.DROPPED, 1)]),
    "an empty word of the user": ([USER, User(""), asks("a"), result("a")], [USER, asks("a"), result("a")],
                                  [(K.DROPPED, 1)]),
    "the model first": (
        [SYSTEM, Assistant("Hi."), USER],
        [SYSTEM, User("…"), Assistant("Hi."), USER],
        [(K.FILLED, 1)],
    ),
    "the model last": ([USER, Assistant("Done.")], [USER, Assistant("Done."), User("…")], [(K.FILLED, 1)]),
    "nothing": ([], [User("…")], [(K.FILLED, 0)]),
    "a system prompt alone": ([SYSTEM], [SYSTEM, User("…")], [(K.FILLED, 1)]),
    "a second system prompt in the middle": (
        [SYSTEM, USER, System("Well."), USER],
        [SYSTEM, System("Well."), USER, USER],
        [(K.MOVED, 2)],
    ),
    "a system prompt in the middle": ([USER, SYSTEM, USER], [SYSTEM, USER, USER], [(K.MOVED, 1)]),
}  # fmt: skip


@pytest.mark.parametrize(("given", "sent", "fixes"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_put_right(
    given: list[Message], sent: list[Message], fixes: list[tuple[FixKind, int]]
) -> None:
    """Each wrong once: what is sent instead, and what is told of it."""
    repaired = repair(given, CHAT)

    assert repaired.messages == tuple(sent)
    assert [(fix.kind, fix.message) for fix in repaired.fixes] == fixes


def test_a_fix_says_why_in_one_line() -> None:
    """Names and ids are the model's: they are cut, and cannot break the line."""
    call = ToolCall("x\ny" + "z" * 90, "rm\x1b[31m" + "o" * 90, "{}")

    [renamed, told] = repair([USER, Assistant("", (call,))], CHAT).fixes

    assert renamed.kind is K.RENAMED
    assert told == Fix(K.CLOSED, 1, told.why)
    assert told.why.startswith("rm\\x1b[31moo")
    assert told.why.endswith("had no result")
    assert len(told.why) < 120
    assert told.why.isprintable()


def test_results_in_place_stay_in_their_order() -> None:
    """A claim beside other calls is answered after them, in whatever order it was made: every format takes that."""
    given = (USER, asks("a", "b"), result("b"), result("a"))

    assert repair(given, CHAT).messages is given
    strict = repair(given, CHAT.strictest())
    assert [m.text for m in strict.messages if isinstance(m, ToolResult)] == ["result of a", "result of b"]


@pytest.mark.parametrize("raw", ["", "[1]", "null", '{"a": NaN}', '{"a": ', "[" * 100_000])
def test_arguments_that_are_no_object_are_emptied(raw: str) -> None:
    """Servers parse old arguments again; the result has told the model what was wrong (B78, B137)."""
    repaired = repair([USER, Assistant("", (ToolCall("a", "shell", raw),)), result("a")], CHAT)

    assert repaired.messages[1] == asks("a")
    assert [fix.kind for fix in repaired.fixes] == [K.EMPTIED]


@pytest.mark.parametrize("rules", [RESPONSES, ANTHROPIC])
def test_reasoning_behind_a_change_goes(rules: object) -> None:
    """It is signed over what stood before it: a result that is put in makes it worthless, earlier ones stay."""
    first = asks("a", thinking="signed")
    given = (USER, first, result("a"), asks("b", thinking="b"), asks("c", thinking="c"), result("c"))

    repaired = repair(given, rules)  # type: ignore[arg-type]

    assert repaired.messages[1] is first
    assert repaired.messages[3] is given[3]
    assert repaired.messages[4:] == (closed("b"), asks("c"), result("c"))
    assert [(f.kind, f.message) for f in repaired.fixes] == [(K.CLOSED, 3), (K.STRIPPED, 4)]


def test_closing_the_last_call_appends() -> None:
    """A dangling control call is closed behind everything that was said: no signature is touched."""
    given = (USER, asks("a", thinking="a"), result("a"), asks("b", tool="transition", thinking="b"))

    repaired = repair(given, ANTHROPIC)

    assert all(sent is was for sent, was in zip(repaired.messages, given, strict=False))
    assert repaired.messages[len(given) :] == (closed("b", "transition"),)


def test_unsigned_reasoning_stays_with_its_reply() -> None:
    """What a chat server gave as plain text is bound to nothing, and DeepSeek refuses a call without it."""
    given = (USER, asks("a"), asks("b", reasoning_content="hm"), result("b"))

    assert repair(given, CHAT).messages[3] is given[2]


def test_a_paused_reply_may_end_a_conversation() -> None:
    """It is sent back unchanged; the same reply that was not paused holds nothing that can go back."""
    searching = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]
    paused = Assistant("", (), {"anthropic": searching})

    assert repair((USER, paused), ANTHROPIC, resuming=True).messages == (USER, paused)
    assert repair((USER, paused), ANTHROPIC).messages == (USER,)
    assert repair((USER, Assistant("Hm")), CHAT, resuming=True).messages == (USER, Assistant("Hm"))
    # Without the tool that was interrupted it is a prefill, which newer models refuse.
    assert repair((USER, Assistant("Hm")), ANTHROPIC, resuming=True).fixes[0].kind is K.FILLED


def test_a_search_that_was_never_answered_goes() -> None:
    """A paused reply that was not gone on with goes back as text, and so does all reasoning behind it."""
    searching = [{"type": "text", "text": "Let me see."}]
    searching.append({"type": "server_tool_use", "id": "s", "name": "web_search"})
    paused = Assistant("Let me see.", (), {"anthropic": searching})

    repaired = repair((USER, paused, USER, asks("a", anthropic=[]), result("a")), ANTHROPIC)

    assert repaired.messages[1] == Assistant("Let me see.")
    assert [(f.kind, f.message) for f in repaired.fixes] == [(K.STRIPPED, 1), (K.STRIPPED, 3)]


def test_two_searches_that_were_never_answered_go() -> None:
    """Where the paused reply at the end must go, the one before it is no longer near the end."""
    one, two = (
        Assistant("", (), {"anthropic": [{"type": "server_tool_use", "id": id_, "name": "web_search"}]})
        for id_ in "st"
    )

    assert repair((USER, one, result("gone"), two), ANTHROPIC, resuming=True).messages == (USER,)


def test_mistrals_ids() -> None:
    """Nine letters and digits, on both sides; ids of that kind stay."""
    given = (USER, asks("a1b2c3d4e"), result("a1b2c3d4e"), asks("call_7"), result("call_7", "two"))

    assert repair(given, MISTRAL).messages[3:] == (asks("call00002"), result("call00002", "two"))
    assert repair(given[:3], MISTRAL).fixes == ()


def test_the_strictest_form_is_taken_by_every_chat_server() -> None:
    """Without any of the profile's flags: short ids, one word of the user at a time and none behind a result."""
    given = [USER, User("And quickly."), asks("call_1", "call_2"), result("call_2"), result("call_1"), USER]

    sent = openai_messages.messages(repair(given, CHAT.strictest()).messages)

    assert lint.lint(sent) + lint_dialects.lint_mistral(sent) == []
    assert [m["content"] for m in sent if m["role"] == "user"] == ["Go on.\n\nAnd quickly.", "Go on."]


def test_rules_follow_the_profile() -> None:
    """The wire, the ids that a server takes, and no rules of a wire where calls travel as text."""
    profile = ModelProfile("m", "anthropic", "m", "http://127.0.0.1/v1")

    assert rules_for(profile) == ANTHROPIC
    assert rules_for(replace(profile, wire="openai-responses")) == RESPONSES
    assert rules_for(replace(profile, protocol=Protocol.JSON)) == CHAT
    assert rules_for(replace(profile, wire="openai", call_ids=CallIds.MISTRAL)) == MISTRAL
