"""What Anthropic's errors mean: type and details before the status, sentences where nothing else tells."""

from __future__ import annotations

import json
import typing
from datetime import UTC, datetime
from typing import Any

import pytest

from goalmode.domain.signals import ErrorKind
from goalmode.model.classify import classify
from goalmode.model.lint_anthropic import lint
from goalmode.model.retry import HOPELESS
from tests.model.test_lint_anthropic import VIOLATIONS

K = ErrorKind
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

INVALID = "invalid_request_error"


def error(type: str, message: str = "", code: str | None = None) -> dict[str, Any]:
    details = {} if code is None else {"details": {"error_code": code}}
    return {"type": "error", "error": {"type": type, "message": message, **details}, "request_id": "req_1"}


def kind(status: int | None, body: Any) -> ErrorKind:
    return classify(status, json.dumps(body), {}, NOW).kind


ROWS: list[tuple[int | None, dict[str, Any], ErrorKind]] = [
    (429, error("rate_limit_error", "Number of requests exceeded"), K.RATE_LIMIT),
    (429, error("rate_limit_error", code="ramp_limit_exceeded"), K.RATE_LIMIT),
    (429, error("rate_limit_error", code="a_code_of_tomorrow"), K.RATE_LIMIT),
    (429, error("rate_limit_error", code="enforced_spend_limit_reached"), K.QUOTA),
    (429, error("rate_limit_error", code="contract_spend_limit_reached"), K.QUOTA),
    (402, error("billing_error", code="linked_organization_spend_limit_reached"), K.QUOTA),
    (402, error("billing_error", code="linked_organization_billing_unavailable"), K.QUOTA),
    (402, error("billing_error"), K.QUOTA),
    (400, error(INVALID, "Your credit balance is too low to access the Anthropic API."), K.QUOTA),
    (
        400,
        error(
            INVALID,
            "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.",
        ),
        K.QUOTA,
    ),
    (400, error(INVALID, "You have reached your specified workspace API usage limits."), K.QUOTA),
    (529, error("overloaded_error", "Overloaded"), K.OVERLOADED),
    (200, error("overloaded_error", "Overloaded"), K.OVERLOADED),
    (500, error("api_error", "Internal server error"), K.SERVER),
    (200, error("api_error"), K.SERVER),
    (504, error("timeout_error"), K.SERVER),
    (401, error("authentication_error", "invalid x-api-key"), K.AUTH),
    (403, error("permission_error"), K.PERMISSION),
    (400, error(INVALID, code="organization_on_hold"), K.PERMISSION),
    (404, error("not_found_error", "model: claude-y"), K.NOT_FOUND),
    (413, error("request_too_large", "Request exceeds the maximum size"), K.REQUEST_TOO_LARGE),
    (413, error(INVALID, code="request_body_too_large_after_decoding"), K.REQUEST_TOO_LARGE),
    (400, error(INVALID, "prompt is too long: 210000 tokens > 200000 maximum"), K.CONTEXT_OVERFLOW),
    (
        400,
        error(INVALID, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"),
        K.CONTEXT_OVERFLOW,
    ),
    (
        400,
        error(
            INVALID,
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
            "conversation.",
        ),
        K.SIGNATURE,
    ),
    (
        400,
        error(
            INVALID,
            "messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
            "be modified. These blocks must remain as they were in the original response.",
        ),
        K.SIGNATURE,
    ),
    (400, error(INVALID, code="compaction_signature_invalid"), K.SIGNATURE),
    (
        400,
        error(
            INVALID,
            "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        ),
        K.PROTOCOL,
    ),
    (
        400,
        error(
            INVALID,
            "web_search tool use with id srvtoolu_1 was found without a corresponding web_search_tool_result block",
        ),
        K.PROTOCOL,
    ),
    (400, error(INVALID, "max_tokens: 99999 > 8192, which is the maximum allowed"), K.BAD_REQUEST),
    (400, error(INVALID, "temperature: range: 0..1"), K.BAD_REQUEST),
]


@pytest.mark.parametrize(("status", "body", "expected"), ROWS)
def test_an_error_is_read_by_type_and_details(
    status: int | None, body: dict[str, Any], expected: ErrorKind
) -> None:
    """The cause's own code decides, then the type, then known sentences, then the status (B61, B98)."""
    assert kind(status, body) is expected


SEQUENCES = {
    name: VIOLATIONS[name][0]
    for name in (
        *("unanswered call", "one of two answered", "text before the result", "orphan", "a late answer"),
        *(
            "answered twice",
            "id twice in a turn",
            "prefill",
            "two users",
            "the model first",
            "thinking at the end",
        ),
        *(
            "server call without result",
            "server result without call",
            "empty text",
            "blank text",
            "empty user",
        ),
    )
}


@pytest.mark.parametrize("broken", SEQUENCES.values(), ids=SEQUENCES)
def test_a_broken_sequence_is_a_protocol_error(broken: dict[str, Any]) -> None:
    """What the strict stub says about an order of messages is understood as the real provider's words are."""
    assert kind(400, error(INVALID, lint(broken)[0])) is K.PROTOCOL


def test_a_spend_limit_says_when_it_is_over() -> None:
    """The reset that stands in the message alone is known (B100)."""
    said = (
        "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."
    )
    found = classify(400, json.dumps(error(INVALID, said)), {}, NOW)

    assert found.wait.until == datetime(2026, 4, 1, tzinfo=UTC)
    assert found.kind in HOPELESS


def test_the_codes_own_name_is_kept() -> None:
    """What people look up is the most exact name there is."""
    body = error("rate_limit_error", "m", code="enforced_spend_limit_reached")

    assert classify(429, json.dumps(body), {}, NOW).raw_type == "enforced_spend_limit_reached"


def test_the_sdk_knows_no_type_of_error_that_we_do_not() -> None:
    """Every error type of the official client has a kind of its own, or is left to the status on purpose."""
    from anthropic.types.shared.error_type import ErrorType

    by_status = {INVALID, "api_error", "conflict_error"}
    of_other_endpoints = {"memory_precondition_failed_error", "memory_path_conflict_error"}
    left = [
        word
        for word in typing.get_args(ErrorType)
        if word not in by_status | of_other_endpoints and kind(418, error(word)) is K.BAD_REQUEST
    ]

    assert left == []
