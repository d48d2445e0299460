"""What holds for every repaired conversation, whatever it was before: the invariants, one test each.

Some are kept before or behind `repair`, and are tested there:

- That a conversation holds only the four kinds of message is the domain's types' doing. What could be anything is what
  was stored: I17 is tested where rows are read (`goalmode.state.said`).
- Neighbours of one role, results before texts, blank texts beside calls, valid names, and the provider's own tools
  (I18, parts of I7 and I9) are the encoders' doing, for any conversation: they are tested on the request as it arrives.
- Results that are complete stay in the order in which they came, which every format takes; where one had to be made
  up, they stand in the order of the calls (I4).
- The user's words are unchanged but for the placeholder, which is none (I12).

`make test` tries 100 conversations for each invariant and format, `make test-long` 500, `pytest -m slow` 20,000.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import Assistant, Fix, FixKind, Message, System, ToolCall, ToolResult, User
from goalmode.errors import StoreUnreadable
from goalmode.model.repair import repair
from goalmode.model.repair.pairs import SYNTHETIC
from goalmode.model.wire.openai_dialects import SILENCE
from goalmode.state import said
from tests.model.histories import FORMATS, Format, History, any_history, is_object, right_history

CONVERSATIONS = st.binary(min_size=40, max_size=160)
CONTROLS = ("complete", "transition")


@dataclass(frozen=True)
class Case:
    """One conversation as it was given and as it is sent; and some places to cut it at."""

    form: Format
    given: tuple[Message, ...]
    resuming: bool
    sent: tuple[Message, ...]
    fixes: tuple[Fix, ...]
    places: Sequence[int]
    cuts: bytes


Check = Callable[[Case], None]
Read = Callable[[bytes, Format], History]


def holds(check: Check) -> Callable[[Format, int], None]:
    """A test of `check` over conversations of any kind, in each format."""
    return _tried(check, any_history)


def holds_of_right_ones(check: Check) -> Callable[[Format, int], None]:
    """A test of `check` over conversations that nothing is wrong with."""
    return _tried(check, right_history)


def _tried(check: Check, read: Read) -> Callable[[Format, int], None]:
    long, slow = pytest.mark.long, pytest.mark.slow

    @pytest.mark.parametrize(
        "histories", [100, pytest.param(500, marks=long), pytest.param(20_000, marks=slow)]
    )
    @pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
    def test(form: Format, histories: int) -> None:
        @settings(max_examples=histories, suppress_health_check=list(HealthCheck), database=None)
        @given(CONVERSATIONS)
        def on(data: bytes) -> None:
            history = read(data, form)
            done = repair(history.messages, form.rules, resuming=history.resuming)
            check(
                Case(
                    form,
                    history.messages,
                    history.resuming,
                    done.messages,
                    done.fixes,
                    done.places,
                    data[-3:],
                )
            )

        on()

    test.__doc__, test.__name__ = check.__doc__, check.__name__
    return test


@holds
def test_i1_nothing_given_is_changed(case: Case) -> None:
    """I1: the conversation that is given is left as it is, what providers want back included."""
    given = list(case.given)
    before, objects = repr(given), [id(m) for m in given]

    repair(given, case.form.rules, resuming=case.resuming)

    assert (repr(given), [id(m) for m in given]) == (before, objects)


@holds
def test_i2_once_is_enough(case: Case) -> None:
    """I2: a repaired conversation needs no repair, and comes back as the same objects."""
    again = repair(case.sent, case.form.rules, resuming=case.resuming)

    assert again.fixes == ()
    assert again.messages is case.sent


@holds_of_right_ones
def test_i3_what_is_right_stays(case: Case) -> None:
    """I3: a conversation that a strict provider takes comes back as the same objects, signatures and all."""
    assert case.form.violations(case.given) == []
    assert case.fixes == ()
    assert case.sent is case.given


@holds
def test_i4_every_call_has_one_result_behind_it(case: Case) -> None:
    """I4: directly behind its reply; in the order of the calls where one was made up; a provider agrees."""
    closed = {fix.message for fix in case.fixes if fix.kind is FixKind.CLOSED}
    for at, call_ids, results in turns(case.sent):
        result_ids = [result.call_id for result in results]
        assert Counter(call_ids) == Counter(result_ids)
        assert call_ids == result_ids or case.places[at] not in closed
    assert case.form.violations(case.sent) == []


@holds
def test_i5_no_result_is_without_its_call(case: Case) -> None:
    """I5: as many results as calls, each of them behind a reply that asked for it."""
    results = sum(isinstance(m, ToolResult) for m in case.sent)

    assert results == sum(len(behind) for _, _, behind in turns(case.sent))
    assert results == len(calls(case.sent))


@holds
def test_i6_ids_are_unique_and_valid(case: Case) -> None:
    """I6: in the whole conversation, and as the format takes them; a rename is on both sides, or I4 would not hold."""
    ids = [call.id for call in calls(case.sent)]

    assert len(set(ids)) == len(ids)
    assert all(case.form.rules.ids.fullmatch(id_) for id_ in ids)


@holds
def test_i7_nobody_says_nothing(case: Case) -> None:
    """I7: no empty message, no empty list of calls, and no blank text block where the format has blocks."""
    for message in case.sent:
        match message:
            case Assistant(text, asked, extra):
                assert text.strip() or asked or (case.form.rules.blocks and extra[case.form.rules.blocks])
            case System(text) | User(text):
                assert text.strip()
    sent = case.form.sent(case.sent)
    assert '"tool_calls":[]' not in json.dumps(sent, separators=(",", ":"))
    assert all(block["text"].strip() for block in text_blocks(sent.get("messages", [])))


@holds
def test_i8_arguments_are_objects(case: Case) -> None:
    """I8: servers parse the arguments of earlier calls again."""
    assert all(is_object(call.arguments) for call in calls(case.sent))


@holds
def test_i9_system_then_user(case: Case) -> None:
    """I9: system prompts first, then the user; and the roles of the request are legal for the format."""
    rest = list(case.sent[len(list(takewhile(_is_system, case.sent))) :])

    assert not any(map(_is_system, rest))
    assert isinstance(rest[0], User)
    assert case.form.violations(case.sent) == []


@holds
def test_i10_no_control_call_is_left_open(case: Case) -> None:
    """I10: `complete` and `transition` have their result like any other call."""
    asked = {call.id for call in calls(case.sent) if call.name in CONTROLS}
    answered = {m.call_id for m in case.sent if isinstance(m, ToolResult)}

    assert asked <= answered


@holds
def test_i11_nothing_is_invented(case: Case) -> None:
    """I11: no word of the model and no success that was not there; what is made up says so, and is told."""
    said = {m.text for m in case.given if isinstance(m, Assistant)} | {SILENCE}
    given_results = Counter(m.text for m in case.given if isinstance(m, ToolResult))
    results = Counter(m.text for m in case.sent if isinstance(m, ToolResult))
    made = sum((results - given_results).values())

    assert all(m.text in said for m in case.sent if isinstance(m, Assistant))
    assert len(calls(case.sent)) == len(calls(case.given))
    assert all(t.startswith(SYNTHETIC) and "not executed" in t for t in results - given_results)
    assert made <= sum(fix.kind is FixKind.CLOSED for fix in case.fixes)


@holds
def test_i12_the_user_is_quoted_in_full(case: Case) -> None:
    """I12: everything the user said, in order, and nothing else."""
    assert user_words(case.sent) == user_words(case.given)


@holds
def test_i13_real_results_stay_with_their_call(case: Case) -> None:
    """I13: a result is of the newest call of its id before it; it is never dropped for less, and never moves on."""
    expected = owed(case.given)
    found = {
        (n, k): next(r.text for r in results if r.call_id == id_)
        for n, (_, call_ids, results) in enumerate(turns(case.sent))
        for k, id_ in enumerate(call_ids)
    }

    assert {place: text for place, text in found.items() if not text.startswith(SYNTHETIC)} == expected


@holds
def test_i14_reasoning_is_whole_or_absent(case: Case) -> None:
    """I14: the same object or nothing; and where it is signed, nothing stands before it that did not then."""
    given_extras = {id(m.extra) for m in case.given if isinstance(m, Assistant)}
    for n, message in enumerate(case.sent):
        if isinstance(message, Assistant) and message.extra:
            assert id(message.extra) in given_extras
            if case.form.rules.bound:
                assert all(a is b for a, b in zip(case.sent[: n + 1], case.given, strict=False))


@holds
def test_i15_any_part_can_be_sent(case: Case) -> None:
    """I15: cut at any place, both parts are conversations that a provider takes once they are repaired."""
    for cut in {place % (len(case.given) + 1) for place in case.cuts}:
        for part in (case.given[:cut], case.given[cut:]):
            assert case.form.violations(repair(part, case.form.rules).messages) == []


@holds
def test_i16_the_model_never_has_the_last_word(case: Case) -> None:
    """I16: the user or a result comes last, unless a paused reply is sent back."""
    if isinstance(case.sent[-1], Assistant):
        assert case.resuming
        assert isinstance(case.given[-1], Assistant)
        assert case.sent[-1].text == case.given[-1].text


@holds
def test_i18_the_providers_own_tools_are_answered(case: Case) -> None:
    """I18: a call of the provider's own tool has its result: but in a paused reply at the end, or beside calls of ours.

    There it may still come, with a later reply.
    """
    sent = case.form.sent(case.sent)["messages"][:-1] if case.form.name == "anthropic" else []
    kinds = [{block["type"] for block in message["content"]} for message in sent]
    blocks = [(n, block) for n, message in enumerate(sent) for block in message["content"]]
    answered = {b["tool_use_id"] for _, b in blocks if b["type"] == "web_search_tool_result"}
    asked = {b["id"] for n, b in blocks if b["type"] == "server_tool_use" and "tool_use" not in kinds[n]}

    assert asked <= answered


rows = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "id", "name", "text", "calls", "arguments", "v"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@pytest.mark.long
@settings(max_examples=500)
@given(st.lists(rows, max_size=4).map(json.dumps) | rows.map(json.dumps) | st.text(max_size=20))
def test_i17_stored_rows_of_any_shape(text: str) -> None:
    """I17: what was stored is a conversation, which can be repaired, or it is refused by name; never a KeyError."""
    try:
        messages = [said.reply_from_json(text), *said.messages_from_json(text)]
    except StoreUnreadable:
        return
    for form in FORMATS:
        assert form.violations(repair(messages, form.rules).messages) == []


def turns(messages: Sequence[Message]) -> Iterator[tuple[int, list[str], list[ToolResult]]]:
    """Of each reply with calls: where it is, the calls' ids, and the results that directly follow."""
    for n, message in enumerate(messages):
        if isinstance(message, Assistant) and message.calls:
            behind = takewhile(_is_result, messages[n + 1 :])
            yield n, ids_of(message), [m for m in behind if isinstance(m, ToolResult)]


def owed(messages: Sequence[Message]) -> dict[tuple[int, int], str]:
    """(reply, call) -> the text of its real result, found the slow way: from each result backwards."""
    found: dict[tuple[int, int], str] = {}
    asked = [(n, m) for n, m in enumerate(messages) if isinstance(m, Assistant) and m.calls]
    for at, message in enumerate(messages):
        if not isinstance(message, ToolResult) or message.text.startswith(SYNTHETIC):
            continue
        before = [t for t, (n, _) in enumerate(asked) if n < at]
        owner = next((t for t in reversed(before) if message.call_id in ids_of(asked[t][1])), None)
        if owner is not None:
            places = [k for k, id_ in enumerate(ids_of(asked[owner][1])) if id_ == message.call_id]
            free = [k for k in places if (owner, k) not in found]
            if free:
                found[owner, free[0]] = message.text
    return found


def ids_of(reply: Assistant) -> list[str]:
    return [call.id for call in reply.calls]


def calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for m in messages if isinstance(m, Assistant) for call in m.calls]


def user_words(messages: Sequence[Message]) -> str:
    said = (m.text for m in messages if isinstance(m, User))
    return "\n\n".join(text for text in said if text.strip() and text != SILENCE)


def text_blocks(messages: Sequence[dict[str, object]]) -> Iterator[dict[str, str]]:
    for message in messages:
        content = message["content"]
        yield from (b for b in content if b.get("type") == "text") if isinstance(content, list) else ()


def _is_system(message: Message) -> bool:
    return isinstance(message, System)


def _is_result(message: Message) -> bool:
    return isinstance(message, ToolResult)
