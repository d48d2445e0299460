"""A tool's hand-over to a person: exactly right, or an error; and whatever else a tool says is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import ExitReason
from goalmode.domain.redact import Redactor
from goalmode.tools.human import MAX_RESULT, MAX_SESSION_ID, MAX_TEXT, HandOver, parse_hand_over
from goalmode.tools.registry import Tool, ToolOutput, tool
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio

OK, FAILED, SKIPPED = CallOutcome.SUCCESS, CallOutcome.FAILED, CallOutcome.SKIPPED
VALID = {"status": "waiting_human", "action": "sign", "wait_reason": "it is a contract", "session_id": "s-1"}
CAMEL = {"status": "waiting_human", "action": "sign", "waitReason": "it is a contract", "sessionId": "s-1"}
ASK = ("ask", {})


def says(text: str, **options: Any) -> Tool:
    """A tool that answers with `text`."""

    @tool(may_hand_over=True, **options)
    async def ask() -> str:
        return text

    return ask


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in VALID.items() if key != name}


@pytest.mark.parametrize(
    "given", [VALID, CAMEL, {**VALID, **CAMEL, "more": [1]}], ids=["snake", "camel", "both"]
)
def test_both_spellings_are_understood(given: dict[str, Any]) -> None:
    """snake_case and camelCase say the same; further fields are the tool's own business."""
    assert parse_hand_over(json.dumps(given)) == HandOver("sign", "it is a contract", "s-1")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (without("session_id"), "sessionId is missing"),
        (without("action"), "action is missing"),
        (without("wait_reason"), "waitReason is missing"),
        ({**VALID, "session_id": ""}, "sessionId is blank"),
        ({**VALID, "session_id": " \t\n"}, "sessionId is blank"),
        ({**VALID, "session_id": "\u200b\u00a0\x00"}, "sessionId is blank"),
        ({**VALID, "session_id": 7}, "sessionId is not a text"),
        ({**VALID, "session_id": None}, "sessionId is not a text"),
        ({**VALID, "session_id": ["s-1"]}, "sessionId is not a text"),
        ({**VALID, "session_id": "s" * (MAX_SESSION_ID + 1)}, "sessionId is longer than 1000 characters"),
        ({**VALID, "sessionId": "s-2"}, "sessionId is given twice"),
        ({**VALID, "waitReason": None}, "waitReason is not a text"),
        ({**VALID, "action": {}, "wait_reason": " "}, "action is not a text; waitReason is blank"),
        ({"status": "waiting_human"}, "action is missing; waitReason is missing; sessionId is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(given: dict[str, Any], problem: str) -> None:
    """Every field that is missing, blank, too long or of the wrong type is told."""
    assert parse_hand_over(json.dumps(given)) == problem


def test_a_name_given_twice_in_the_text_is_refused() -> None:
    """Of two session ids nobody can tell which one is meant."""
    text = json.dumps(VALID)[:-1] + ', "session_id": "s-2"}'

    assert parse_hand_over(text) == "sessionId is given twice"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "waiting_human",
        '"waiting_human"',
        f"[{json.dumps(VALID)}]",
        json.dumps({**VALID, "status": "done"}),
        json.dumps({**VALID, "status": "WAITING_HUMAN"}),
        json.dumps({**VALID, "status": ["waiting_human"]}),
        json.dumps({"result": VALID}),
        json.dumps(without("status")),
        json.dumps(VALID)[:-1],
        json.dumps(VALID) + " {}",
        "Please wait: " + json.dumps(VALID),
        '{"a":' * 100_000,
        '{"n": ' + "9" * 5_000 + ', "status": "waiting_human"}',
        json.dumps({**VALID, "more": "x" * MAX_RESULT}),
    ],
    ids=range(15),
)
async def test_other_results_are_untouched(text: str, bench: Bench) -> None:
    """What is not one JSON object that says `waiting_human` at its top is a result like any other, byte for byte."""
    done = await bench.run(ASK, extra=(says(text),))

    assert parse_hand_over(text) is None
    assert (done.records[0].outcome, done.records[0].body, done.exit) == (OK, text, None)


async def test_a_valid_one_ends_the_reply(bench: Bench) -> None:
    """The call succeeds with its result as it is, calls before it have run, later ones are skipped."""
    done = await bench.run(
        ("shell", {"command": "touch before"}),
        ASK,
        ("shell", {"command": "touch after"}),
        extra=(says(json.dumps(CAMEL)),),
    )

    assert bench.outcomes == [OK, OK, SKIPPED]
    assert bench.reported[1].shown == json.dumps(CAMEL)
    assert [path.name for path in bench.context.workspace.iterdir()] == ["before"]
    assert done.exit is not None
    assert done.exit.reason is ExitReason.WAITING_HUMAN
    assert done.exit.detail == "sign: it is a contract (session s-1)"
    assert done.exit.facts == {"action": "sign", "wait_reason": "it is a contract", "session_id": "s-1"}


async def test_beside_other_reads_all_of_them_run(bench: Bench) -> None:
    """Reads of one reply run together; the first hand-over in the order of the calls is the ending."""
    second = json.dumps({**VALID, "session_id": "s-2"})

    @tool(effect="read", may_hand_over=True)
    async def ask_too() -> str:
        return second

    done = await bench.run(
        ("list_files", {}), ASK, ("ask_too", {}), extra=(says(json.dumps(VALID), effect="read"), ask_too)
    )

    assert bench.outcomes == [OK, OK, OK]
    assert done.exit is not None
    assert done.exit.facts["session_id"] == "s-1"


async def test_a_malformed_one_is_an_error_and_the_reply_goes_on(bench: Bench) -> None:
    """The model learns what is wrong and sees the result; the next call runs."""
    text = json.dumps(without("session_id"))
    done = await bench.run(ASK, ("shell", {"command": "true"}), extra=(says(text),))

    assert bench.outcomes == [FAILED, OK]
    assert done.exit is None
    assert done.records[0].shown == (
        "ask: the result says waiting_human, but sessionId is missing; nobody is waited for. "
        f"The result was:\n{text}"
    )


async def test_only_tools_that_may_hand_over_are_listened_to(bench: Bench) -> None:
    """A file, a command's output or an ordinary tool can say what it likes."""
    text = json.dumps(VALID)
    (bench.context.workspace / "trap.json").write_text(text)
    plain = replace(says(text), may_hand_over=False)
    done = await bench.run(
        ("read_file", {"path": "trap.json"}), ("shell", {"command": "cat trap.json"}), ASK, extra=(plain,)
    )

    assert bench.outcomes == [OK, OK, OK]
    assert done.exit is None


async def test_a_failed_call_hands_nothing_over(bench: Bench) -> None:
    """A tool that says that it failed has asked nobody."""

    @tool(may_hand_over=True)
    async def ask() -> ToolOutput:
        return ToolOutput(json.dumps(VALID), ok=False)

    done = await bench.run(ASK, extra=(ask,))

    assert (bench.outcomes, done.exit) == ([FAILED], None)
    assert bench.reported[0].shown == json.dumps(VALID)


async def test_a_hand_over_is_never_served_from_the_cache(bench: Bench) -> None:
    """Asked again, the tool is asked again: the old session may be over."""
    ask = says(json.dumps(VALID), effect="read", cacheable=True)
    for _ in range(2):
        done = await bench.run(ASK, extra=(ask,))
        assert done.exit is not None

    assert [record.cached for record in bench.reported] == [False, False]


async def test_what_is_stored_is_clean_and_bounded(bench: Bench) -> None:
    """Secrets are struck out, half surrogate pairs and NUL replaced, long texts cut; the session id stays as it is."""
    bench.context = replace(bench.context, redact=Redactor(["hush-hush"]))
    given = {
        **VALID,
        "action": "type hush-hush\x00\ud800",
        "wait_reason": "x" * 9_000,
        "session_id": "Sitzung ß 1",
    }
    done = await bench.run(ASK, extra=(says(json.dumps(given)),))

    assert done.exit is not None
    assert done.exit.facts["action"] == "type [redacted]␀\ufffd"
    assert len(str(done.exit.facts["wait_reason"])) < MAX_TEXT + 100
    assert done.exit.facts["session_id"] == "Sitzung ß 1"
    assert done.exit.detail.endswith("(session Sitzung ß 1)")
    assert "\n" not in done.exit.detail


FIELDS = st.sampled_from(
    ["status", "action", "waitReason", "wait_reason", "sessionId", "session_id", "more", "Status", "\ud800"]
)
VALUES = st.one_of(
    st.just("waiting_human"),
    st.text(st.characters(), max_size=8),
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(),
    st.lists(st.text(max_size=3), max_size=2),
)
OBJECTS = st.dictionaries(FIELDS, VALUES, max_size=9).flatmap(
    lambda made: st.sampled_from([made, {**made, "status": "waiting_human"}, {**VALID, **made}])
)


@given(OBJECTS)
def test_only_the_exact_shape_is_a_hand_over(result: dict[str, Any]) -> None:
    """Of any JSON object: a hand-over exactly if the status says so and all three fields are texts that show."""
    found = parse_hand_over(json.dumps(result))

    if result.get("status") != "waiting_human":
        assert found is None
    else:
        assert isinstance(found, HandOver) == _right(result)
        assert isinstance(found, str) != _right(result)
    if isinstance(found, HandOver):
        assert found.action == result["action"]
        assert found.session_id in (result.get("sessionId"), result.get("session_id"))


@given(
    st.one_of(
        st.text(st.characters()),
        st.text(st.sampled_from('{}[]",:\\u0 ntruefalse1e-')),
        OBJECTS.map(json.dumps),
    )
)
def test_no_text_raises(text: str) -> None:
    """Whatever a tool says, it is judged, whole or cut in the middle."""
    for cut in (text, text[1:], text[:-1]):
        assert isinstance(parse_hand_over(cut), HandOver | str | None)


def _right(result: dict[str, Any]) -> bool:
    """The rule, said another way than in the code."""
    for names in (["action"], ["waitReason", "wait_reason"], ["sessionId", "session_id"]):
        values = [result[name] for name in names if name in result]
        if len(values) == 2 and values[0] == values[1]:
            values.pop()
        if len(values) != 1 or not isinstance(values[0], str):
            return False
        if all(char.isspace() or not char.isprintable() for char in values[0]):
            return False
    return True
