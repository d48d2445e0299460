"""What a provider's error means, and how long it asks to wait."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from goalmode.domain.signals import ErrorKind
from goalmode.model.classify import CODES, classify, find_error
from goalmode.model.waiting import Waiting, moment, waiting

K = ErrorKind
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def kind(status: int | None, error: Any) -> ErrorKind:
    body = error if isinstance(error, str) else json.dumps(error)
    return classify(status, body, {}, NOW).kind


def error(message: str = "", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


ROWS: list[tuple[int | None, Any, ErrorKind]] = [
    # the code before the status
    (429, error(code="insufficient_quota"), K.QUOTA),
    (429, error(type="insufficient_quota", code=None), K.QUOTA),
    (429, error(type="tokens", code="rate_limit_exceeded"), K.RATE_LIMIT),
    (429, error(type="rate_limit_error"), K.RATE_LIMIT),
    (429, error("The engine is overloaded", type="engine_overloaded_error"), K.OVERLOADED),
    (400, error(code="context_length_exceeded"), K.CONTEXT_OVERFLOW),
    (500, error(type="exceed_context_size_error", n_ctx=4096), K.CONTEXT_OVERFLOW),
    (400, error(code="content_filter"), K.POLICY),
    (400, error("string too long", code="string_above_max_length"), K.BAD_REQUEST),
    (
        400,
        {"object": "error", "type": "invalid_request_message_order", "code": "3230", "message": "m"},
        K.PROTOCOL,
    ),
    (400, {"object": "error", "code": 3280, "message": "m"}, K.PROTOCOL),
    (400, error(code="model_not_found"), K.NOT_FOUND),
    (500, error(code="invalid_api_key"), K.AUTH),
    (429, [error("quota for requests per day", status="RESOURCE_EXHAUSTED", code=429)], K.QUOTA),
    (429, [error("quota for requests per minute", status="RESOURCE_EXHAUSTED", code=429)], K.RATE_LIMIT),
    (529, error(type="overloaded_error"), K.OVERLOADED),
    # in a body that came with a 200, or in a stream
    (200, error(code="server_error"), K.SERVER),
    (200, error("Provider returned error", code=429), K.RATE_LIMIT),
    (200, error("Overloaded", type="overloaded_error"), K.OVERLOADED),
    (200, error("Internal error"), K.SERVER),
    (None, error("no", code=402), K.QUOTA),
    (200, error("no", code=401), K.AUTH),
    # sentences
    (400, error("This model's maximum context length is 8192 tokens."), K.CONTEXT_OVERFLOW),
    (
        400,
        error("prompt is too long: 9 tokens > 8 maximum", type="invalid_request_error"),
        K.CONTEXT_OVERFLOW,
    ),
    (
        400,
        error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 3]"),
        K.CONTEXT_OVERFLOW,
    ),
    (400, error("Your request exceeded model token limit : 8192"), K.CONTEXT_OVERFLOW),
    (400, error("Input token length too long"), K.CONTEXT_OVERFLOW),
    (500, error("the request exceeds the available context size", type="server_error"), K.CONTEXT_OVERFLOW),
    (400, error("`inputs` tokens + `max_new_tokens` must be <= 2048"), K.CONTEXT_OVERFLOW),
    (400, error("current length is 9 while limit is 8"), K.CONTEXT_OVERFLOW),
    (400, error("prompt tokens (9) exceed model maximum (8)"), K.CONTEXT_OVERFLOW),
    (400, error("The request was rejected because it was considered high risk"), K.POLICY),
    (400, error("An assistant message with 'tool_calls' must be followed by tool messages"), K.PROTOCOL),
    (400, error("(insufficient tool messages following tool_calls message)"), K.PROTOCOL),
    (400, error("Not the same number of function calls and responses"), K.PROTOCOL),
    (400, error("The reasoning_content in the thinking mode must be passed back to the API."), K.PROTOCOL),
    (400, error("Invalid `signature` in `thinking` block."), K.SIGNATURE),
    (400, error("Your credit balance is too low"), K.QUOTA),
    (502, error("wrapped", metadata={"raw": "maximum context length is 9"}), K.CONTEXT_OVERFLOW),
    # the status, last
    (400, error("bad"), K.BAD_REQUEST),
    (401, "", K.AUTH),
    (402, error("Insufficient Balance"), K.QUOTA),
    (403, "no", K.PERMISSION),
    (404, "no", K.NOT_FOUND),
    (408, "", K.TIMEOUT),
    (409, "", K.SERVER),
    (413, "<html>", K.REQUEST_TOO_LARGE),
    (422, {"detail": [{"msg": "field required"}]}, K.BAD_REQUEST),
    (429, "slow", K.RATE_LIMIT),
    (500, "<html>oops</html>", K.SERVER),
    (502, "", K.SERVER),
    (503, "", K.OVERLOADED),
    (504, error(type="timeout_error"), K.SERVER),
    (529, "", K.OVERLOADED),
    (302, "", K.BAD_REQUEST),
    (418, "", K.BAD_REQUEST),
    (200, "", K.SERVER),
]


@pytest.mark.parametrize(("status", "body", "expected"), ROWS)
def test_an_error_is_read_by_type_before_status(status: int | None, body: Any, expected: ErrorKind) -> None:
    """Code and type decide, then sentences, then vague types, then the status (B61, B98)."""
    assert expected is kind(status, body)


@pytest.mark.parametrize("code", CODES)
def test_every_code_decides_whatever_the_status(code: str) -> None:
    """A code of the table means the same with any status."""
    assert {CODES[code]} == {kind(status, error(code=code.upper())) for status in (200, 400, 429, 500)}


def test_message_and_word_are_kept() -> None:
    """The provider's own words stay for people to read."""
    found = classify(400, json.dumps(error("No.", type="odd_error", code=17)), {}, NOW)

    assert (found.message, found.raw_type) == ("No.", "odd_error")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("plain text", "plain text"),
        (b"\xff\xfe", "��"),
        ('{"error": "just a string"}', "just a string"),
        ('{"detail": "not found"}', "not found"),
        ("[]", "[]"),
        ("7", "7"),
        ('{"error": {}}', '{"error": {}}'),
        ('{"error": {"message": null, "code": []}}', '{"error": {"message": null, "code": []}}'),
    ],
)
def test_bodies_of_any_shape_have_a_message(body: bytes | str, message: str) -> None:
    """No body is too odd to be told about."""
    assert message == classify(500, body, {}, NOW).message


@pytest.mark.parametrize(
    ("value", "is_error"),
    [
        ({"error": {"message": "x"}}, True),
        ({"error": "x", "choices": []}, True),
        ({"choices": [{"error": {"code": 502}, "finish_reason": "error"}]}, True),
        ({"object": "error", "message": "x"}, True),
        ({"detail": "x"}, True),
        ([{"error": {}}], True),
        ({"choices": [{"delta": {"content": "x"}}]}, False),
        ({"error": None, "choices": []}, False),
        ({"choices": 7}, False),
        ({"usage": {}}, False),
        ({}, False),
        ([], False),
        (None, False),
    ],
)
def test_an_error_in_a_body_is_found(value: Any, is_error: bool) -> None:
    """Errors hide in a 200, in chunks and in choices; answers are none."""
    assert is_error is (find_error(value) is not None)


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": ""}, None),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 40)}, 40.0),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() + 40) * 1000)}, 40.0),
        ({"ratelimit-reset": "7"}, 7.0),
        ({"x-ratelimit-reset-requests": "1m2s", "x-ratelimit-remaining-requests": "0"}, 62.0),
        ({"x-ratelimit-reset-requests": "1m2s", "x-ratelimit-remaining-requests": "5"}, None),
    ],
)
def test_a_wait_is_read_in_all_its_forms(headers: dict[str, str], after: float | None) -> None:
    """Milliseconds, seconds, dates and resets (B96)."""
    assert after == waiting(headers, {}, NOW).after


@pytest.mark.parametrize(
    "error_",
    [
        {"resets_at": NOW.timestamp() + 5},
        {"resets_in_seconds": 5},
        {"reset_at": "2026-03-01T12:00:05Z"},
        {"details": [{"retryDelay": "5s"}]},
        {"metadata": {"headers": {"X-RateLimit-Reset": str(int(NOW.timestamp() + 5) * 1000)}}},
    ],
)
def test_a_reset_in_the_body_is_found(error_: dict[str, Any]) -> None:
    """A spent quota says in its body when it is there again (B100)."""
    assert waiting({}, error_, NOW) == Waiting(5.0, NOW + timedelta(seconds=5))


def test_the_longer_of_wait_and_reset_counts() -> None:
    """Neither is undercut by the other."""
    assert waiting({"retry-after": "9"}, {"resets_in_seconds": 5}, NOW).until == NOW + timedelta(seconds=9)
    assert waiting({"retry-after": "2"}, {"resets_in_seconds": 50}, NOW).until == NOW + timedelta(seconds=50)


@pytest.mark.parametrize(
    ("said", "meant"), [("true", True), ("false", False), ("TRUE", True), ("maybe", None)]
)
def test_the_servers_own_word_on_retrying_is_read(said: str, meant: bool | None) -> None:
    """`x-should-retry` is true, false, or nothing."""
    assert meant is waiting({"x-should-retry": said}, {}, NOW).should_retry


@pytest.mark.parametrize("said", ["20ms", "6m0s", "1h", "2d3h", "1.5s"])
def test_durations_are_times(said: str) -> None:
    """OpenAI writes durations the way Go does."""
    seconds = {"20ms": 0.02, "6m0s": 360, "1h": 3600, "2d3h": 183600, "1.5s": 1.5}[said]

    assert moment(said, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize("said", [True, [], {}, "tomorrow", "9999999999999", 1e300, "2031-01-01T00:00:00Z"])
def test_what_is_no_time_or_too_far_is_none(said: object) -> None:
    """Nonsense, and moments over a year away, are not waited for."""
    assert moment(said, NOW) is None
