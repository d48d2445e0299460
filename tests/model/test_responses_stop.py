"""How a response ended: the tables, the comparison of status and items, and OpenAI's own lists of words."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.signals import TRANSIENT, ErrorKind, StopReason
from goalmode.model.wire.responses_stop import INCOMPLETE, STATUS, read, reconcile, word

from .test_classify import error, kind
from .test_stop import _flat

S, K = StopReason, ErrorKind

STATUSES = {
    "completed": S.END_TURN,
    "failed": S.PROVIDER_ERROR,
    "cancelled": S.CANCELLED,
    "queued": S.PAUSE,
    "in_progress": S.PAUSE,
}
REASONS = {
    "max_output_tokens": S.MAX_TOKENS,
    "max_messages": S.MAX_TOKENS,
    "content_filter": S.CONTENT_FILTER,
    "steered": S.PAUSE,
}
ERROR_CODES = {
    "server_error": K.SERVER,
    "rate_limit_exceeded": K.RATE_LIMIT,
    "vector_store_timeout": K.SERVER,
    "invalid_prompt": K.POLICY,
    "bio_policy": K.POLICY,
    "misalignment_policy_violation": K.POLICY,
    "image_content_policy_violation": K.POLICY,
    **dict.fromkeys(
        (
            "data_residency_mismatch",
            "invalid_image",
            "invalid_image_format",
            "invalid_base64_image",
            "invalid_image_url",
            "invalid_image_mode",
            "image_too_large",
            "image_too_small",
            "image_parse_error",
            "image_file_too_large",
            "image_file_not_found",
            "unsupported_image_media_type",
            "empty_image_file",
            "failed_to_download_image",
        ),
        K.BAD_REQUEST,
    ),
}


@pytest.mark.parametrize(("status", "stop"), STATUSES.items())
def test_each_status_has_its_meaning(status: str, stop: StopReason) -> None:
    """Every status is read as the table says, whatever reason stands beside it."""
    assert stop == read(status, None) == read(status, "max_output_tokens")


@pytest.mark.parametrize(("reason", "stop"), [*REASONS.items(), (None, S.MISSING), ("banana", S.UNKNOWN)])
def test_each_reason_of_an_incomplete_response_has_its_meaning(reason: str | None, stop: StopReason) -> None:
    """An incomplete response is read by its reason; without one it was cut, and a new one fails closed."""
    assert stop == read("incomplete", reason)


def test_the_tables_hold_these_rows_and_no_other() -> None:
    """A row added to a table is added to the test."""
    assert (set(STATUSES), set(REASONS)) == (set(STATUS), set(INCOMPLETE))


@pytest.mark.parametrize(
    ("status", "stop"), [(None, S.MISSING), ("", S.MISSING), ("banana", S.UNKNOWN), ("stop", S.UNKNOWN)]
)
def test_other_words_fail_closed(status: str | None, stop: StopReason) -> None:
    """No status is a cut; a status of no table is UNKNOWN, never an ordinary ending."""
    assert stop == read(status, None)


@pytest.mark.parametrize(
    ("status", "reason", "kept"),
    [
        ("completed", None, "completed"),
        ("incomplete", "content_filter", "incomplete/content_filter"),
        ("incomplete", None, "incomplete"),
        ("failed", "odd", "failed"),
        (None, None, None),
    ],
)
def test_the_providers_words_are_kept_as_one(
    status: str | None, reason: str | None, kept: str | None
) -> None:
    """Status and reason are stored together."""
    assert kept == word(status, reason)


def _reconcile(stop: StopReason, calls: int = 0, cut: int = 0, refused: bool = False) -> StopReason:
    return reconcile(stop, calls=calls, cut_calls=cut, refused=refused)


@pytest.mark.parametrize(
    ("found", "stop"),
    [
        (_reconcile(S.END_TURN, calls=1), S.TOOL_USE),
        (_reconcile(S.END_TURN), S.END_TURN),
        (_reconcile(S.END_TURN, refused=True), S.REFUSAL),
        (_reconcile(S.END_TURN, calls=1, refused=True), S.REFUSAL),
        (_reconcile(S.END_TURN, calls=2, cut=1), S.MAX_TOKENS),
        (_reconcile(S.PAUSE, calls=1), S.TOOL_USE),
        (_reconcile(S.PAUSE, calls=1, cut=1), S.MAX_TOKENS),
        (_reconcile(S.MAX_TOKENS, calls=1), S.MAX_TOKENS),
        (_reconcile(S.CONTENT_FILTER, calls=1, cut=1), S.CONTENT_FILTER),
        (_reconcile(S.PROVIDER_ERROR, calls=1), S.PROVIDER_ERROR),
        (_reconcile(S.CANCELLED, calls=1, refused=True), S.CANCELLED),
        (_reconcile(S.MISSING, calls=1, refused=True), S.MISSING),
        (_reconcile(S.UNKNOWN, calls=1), S.UNKNOWN),
    ],
)
def test_status_and_items_are_reconciled(found: StopReason, stop: StopReason) -> None:
    """Items decide where the status cannot be right; a call that was never completed is a cut reply."""
    assert stop == found


@given(
    st.one_of(st.none(), st.text(), st.sampled_from([*STATUS, "incomplete"])),
    st.one_of(st.none(), st.text(), st.sampled_from([*INCOMPLETE])),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
)
def test_only_whole_calls_are_ever_run(
    status: str | None, reason: str | None, whole: int, cut: int, refused: bool
) -> None:
    """Whatever comes together, TOOL_USE has calls and all of them whole, and END_TURN has none."""
    stop = reconcile(read(status, reason), calls=whole + cut, cut_calls=cut, refused=refused)

    assert stop is not S.TOOL_USE or (whole and not cut)
    assert stop is not S.END_TURN or not whole + cut
    assert stop not in (S.TOOL_USE, S.END_TURN) or status in (
        "completed",
        "incomplete",
        "queued",
        "in_progress",
    )


def words(annotation: object) -> set[str]:
    return {leaf for leaf in _flat(annotation) if isinstance(leaf, str)}


def test_the_openai_sdk_knows_no_status_that_we_do_not() -> None:
    """The official client's statuses are all in the table: a new one is named here."""
    from openai.types.responses import ResponseStatus

    known = words(ResponseStatus)

    assert known
    assert known - {*STATUS, "incomplete"} == set()


def test_the_openai_sdk_knows_no_reason_that_we_do_not() -> None:
    """The official client's reasons of an incomplete response are all in the table: a new one is named here."""
    from openai.types.responses.response import IncompleteDetails

    known = words(IncompleteDetails.model_fields["reason"].annotation)

    assert known
    assert known - set(INCOMPLETE) == set()


def test_the_openai_sdk_knows_no_error_code_that_we_do_not() -> None:
    """The official client's codes of a failed response each have a kind of their own: a new one is named here."""
    from openai.types.responses import ResponseError

    known = words(ResponseError.model_fields["code"].annotation)

    assert known
    assert known - set(ERROR_CODES) == set()


def test_the_openai_sdk_knows_no_state_of_an_item_that_we_do_not() -> None:
    """An item is whole if it is completed; the two other states are not, and there is no fourth."""
    from openai.types.responses import ResponseFunctionToolCall

    known = words(typing.cast(object, ResponseFunctionToolCall.model_fields["status"].annotation))

    assert known == {"in_progress", "completed", "incomplete"}


@pytest.mark.parametrize(("code", "expected"), ERROR_CODES.items())
def test_a_failed_responses_code_decides(code: str, expected: ErrorKind) -> None:
    """Each code of a failed response, which comes with a 200, is transient, a policy, or fatal."""
    found = kind(200, error("Words.", code=code))

    assert found is expected
    assert (found in TRANSIENT) is (expected in (K.SERVER, K.RATE_LIMIT))
