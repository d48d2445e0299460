"""What a provider's error means. Pure: status, body and headers in, a `Failure` out.

The order is the point. Errors arrive with a 200, in the middle of a stream, and behind gateways that change the
status; one status stands for opposite things (429: wait a second, or the account is empty). So: the error's own code
and type, then known sentences, then vague types, and the status last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from goalmode.domain.signals import ErrorKind
from goalmode.model import strict_json
from goalmode.model.waiting import Waiting, waiting

_K = ErrorKind
_MAX_SEARCHED = 4_000
"""Characters of a message in which sentences are looked for: an echoed prompt may hold any of them."""

CODES: Mapping[str, ErrorKind] = MappingProxyType(
    {
        code: kind
        for kind, codes in {
            _K.RATE_LIMIT: "rate_limit_exceeded rate_limit_error slow_down ramp_limit_exceeded too_many_requests",
            _K.OVERLOADED: "overloaded_error engine_overloaded_error unavailable insufficient_system_resource",
            _K.SERVER: "timeout_error vector_store_timeout",
            _K.QUOTA: "insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded "
            "project_spend_limit_exceeded organization_usage_limit_exceeded enforced_spend_limit_reached "
            "contract_spend_limit_reached linked_organization_spend_limit_reached billing_error "
            "billing_hard_limit_reached exceeded_current_quota_error usage_limit_reached "
            "linked_organization_billing_unavailable",
            _K.AUTH: "invalid_api_key authentication_error invalid_authentication_error unauthenticated",
            _K.PERMISSION: "permission_error permission_denied organization_on_hold",
            _K.NOT_FOUND: "model_not_found not_found_error",
            _K.POLICY: "content_filter content_policy content_policy_violation responsibleaipolicyviolation "
            "data_inspection_failed invalid_prompt bio_policy misalignment_policy_violation "
            "image_content_policy_violation",
            _K.CONTEXT_OVERFLOW: "context_length_exceeded exceed_context_size_error model_context_window_exceeded",
            _K.REQUEST_TOO_LARGE: "request_too_large request_body_too_large_after_decoding",
            _K.PROTOCOL: "invalid_request_message_order 3230 invalid_function_call 3280",
            _K.SIGNATURE: "invalid_encrypted_content compaction_signature_invalid",
            _K.BAD_REQUEST: "string_above_max_length data_residency_mismatch invalid_image invalid_image_format "
            "invalid_base64_image invalid_image_url invalid_image_mode image_too_large image_too_small "
            "image_parse_error image_file_too_large image_file_not_found unsupported_image_media_type "
            "empty_image_file failed_to_download_image",
        }.items()
        for code in codes.split()
    }
)
"""Codes and types that settle it, in lower case."""

_SENTENCES: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile("|".join(phrases), re.IGNORECASE | re.DOTALL))
    for kind, phrases in (
        (
            _K.CONTEXT_OVERFLOW,
            (
                r"prompt is too long",
                r"exceed context limit",
                r"maximum context l(?:ength|imit)",
                r"exceeds the context window",
                r"longer than the model's context length",
                r"input tokens exceed the configured limit",
                r"`inputs` tokens \+ `max_new_tokens` must be",
                r"exceeds? the available context size",
                r"context size (?:has been )?exceeded",
                r"maximum input length is.*tokens",
                r"current length is.*while limit is",
                r"prompt tokens \(\d+\) exceed model maximum",
                r"exceeds the maximum number of tokens allowed",
                r"range of input length should be",
                r"input token length too long",
                r"exceeded model token limit",
                r"input is too long",
                r"too many input tokens",
                r"prompt .*(?:too large|has too many tokens)",
            ),
        ),
        (
            _K.SIGNATURE,
            (
                r"invalid `?signature`? in `?thinking`?",
                r"invalid.{0,9} thought signature",
                r"thinking`? blocks .{0,99}cannot be modified",
                r"encrypted content .{0,99} could not be verified",
                r"provided without its required (?:'reasoning'|following) item",
                r"items are not persisted when",
            ),
        ),
        (
            _K.PROTOCOL,
            (
                r"must be followed by tool messages",
                r"insufficient tool messages",
                r"must be a response to a prece+ding message with 'tool_calls'",
                r"duplicate value for 'tool_call_id'",
                r"content or tool_calls must be set",
                r"no tool (?:output|call) found for",
                r"duplicate item found with id",
                r"not the same number of function calls and responses",
                r"unexpected role '\w+' after role",
                r"tool call id was",
                r"`?tool_use`? ids (?:were found without|must be unique)",
                r"unexpected `?tool_use_id`?",
                r"each tool_use must have a single result",
                r"tool use with id .{0,199} was found without a corresponding",
                r"does not support assistant message prefill",
                r"final block in an assistant message cannot be",
                r"expected `?thinking`? or `?redacted_thinking`?, but found",
                r"text content blocks must",
                r"must have non-empty content",
                r"roles must alternate between",
                r"first message must use the",
                r"`?reasoning_content`? (?:in the thinking mode must be passed back|field in the assistant message)",
            ),
        ),
        (_K.POLICY, (r"considered high risk", r"content management policy")),
        (
            _K.QUOTA,
            (
                r"insufficient (?:account )?balance",
                r"exceeded your current quota",
                r"credit balance",
                r"reached your specified .{0,40}usage limits",
            ),
        ),
        (_K.OVERLOADED, (r"\boverloaded\b",)),
    )
)

_VAGUE: Mapping[str, ErrorKind] = MappingProxyType(
    {"server_error": _K.SERVER, "api_error": _K.SERVER, "internal_error": _K.SERVER, "internal": _K.SERVER}
)

_STATUS: Mapping[int, ErrorKind] = MappingProxyType(
    {
        401: _K.AUTH,
        402: _K.QUOTA,
        403: _K.PERMISSION,
        404: _K.NOT_FOUND,
        405: _K.NOT_FOUND,
        408: _K.TIMEOUT,
        409: _K.SERVER,
        413: _K.REQUEST_TOO_LARGE,
        425: _K.SERVER,
        429: _K.RATE_LIMIT,
        503: _K.OVERLOADED,
        529: _K.OVERLOADED,
    }
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, understood. `message` and `raw_type` are the provider's own words, not yet redacted or cut."""

    kind: ErrorKind
    message: str
    raw_type: str | None
    wait: Waiting


def classify(status: int | None, body: bytes | str, headers: Mapping[str, str], now: datetime) -> Failure:
    """Understand a failed answer.

    Args:
        status: the HTTP status; 200 or None for an error that came in a body or in the middle of a stream.
        body: the whole text, JSON or not.
        headers: names in lower case.
        now: aware UTC, for dates and resets.
    """
    error, message = _read(body)
    words = [word for said in _named(error) if (word := _word(said))]
    kind = _by_word(words, message) or _by_sentence(message) or _by_vague(words)
    if kind is None:
        kind = _by_status(status if status is not None and not 200 <= status < 300 else _number(error))
    named = [word for word in words if not word.isdecimal()] or words
    return Failure(kind, message, named[0] if named else None, waiting(headers, error, now))


def find_error(value: object) -> object | None:
    """The error inside a parsed body that came with a 200 or in a stream; None if it is an ordinary answer."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) and value else None
    if value.get("error"):
        return value
    if "choices" in value:
        choices = value["choices"] if isinstance(value["choices"], list) else []
        return next(({"error": c["error"]} for c in choices if isinstance(c, dict) and c.get("error")), None)
    return value if value.get("object") == "error" or "detail" in value or "message" in value else None


def _read(body: bytes | str) -> tuple[Mapping[str, Any], str]:
    """The error object, wherever it is, and its text."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value = strict_json.loads(text)
    except ValueError:
        return {}, text.strip()
    if isinstance(value, list):
        value = value[0] if value else {}
    if not isinstance(value, dict):
        return {}, text.strip()
    error = value.get("error", value)
    if not isinstance(error, dict):
        return {**value, "error": None}, str(error)
    return error, "; ".join(_texts(error)) or text.strip()


def _texts(error: Mapping[str, Any]) -> Iterator[str]:
    for key in ("message", "detail", "msg"):
        if (said := error.get(key)) is not None:
            yield said if isinstance(said, str) else strict_json.dumps(said)
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        yield metadata["raw"]  # OpenRouter: what the server behind it said


def _named(error: Mapping[str, Any]) -> Iterator[object]:
    """What the error calls itself, the most exact name first."""
    details = error.get("details")
    if isinstance(details, dict):
        yield details.get("error_code")  # Anthropic
    yield from (error.get(key) for key in ("code", "type", "status"))


def _word(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)


def _number(error: Mapping[str, Any]) -> int | None:
    """A status inside the error itself."""
    for key in ("code", "status", "status_code"):
        word = _word(error.get(key))
        if word.isascii() and word.isdecimal() and 400 <= int(word[:9]) <= 599:
            return int(word)
    return None


def _by_word(words: list[str], message: str) -> ErrorKind | None:
    for word in (w.lower() for w in words):
        if word == "resource_exhausted":
            # Gemini: the same word for "this minute" and for "this day".
            return _K.QUOTA if re.search(r"per ?day", message, re.IGNORECASE) else _K.RATE_LIMIT
        if (kind := CODES.get(word)) is not None:
            return kind
    return None


def _by_sentence(message: str) -> ErrorKind | None:
    searched = message[:_MAX_SEARCHED]
    return next((kind for kind, pattern in _SENTENCES if pattern.search(searched)), None)


def _by_vague(words: list[str]) -> ErrorKind | None:
    return next((kind for word in words if (kind := _VAGUE.get(word.lower())) is not None), None)


def _by_status(status: int | None) -> ErrorKind:
    if status is None or status >= 500:
        return _STATUS.get(status or 500, _K.SERVER)
    return _STATUS.get(status, _K.BAD_REQUEST)
