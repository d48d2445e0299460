"""Asking again: what, how often, and after how long."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.messages import Reply, Request, Usage, User
from goalmode.domain.signals import TRANSIENT, ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.model.retry import HOPELESS, Retrying, worth_retrying
from goalmode.model.scripted import ScriptedModel, Step, UnexpectedModelCall, say
from goalmode.testing.steps import cut, status, text, tool

from .conftest import Asked, FakeClock

K = ErrorKind
OK = say("Done.", usage=Usage(100, 0, 0, 10))


def failed(kind: ErrorKind = K.SERVER, **facts: Any) -> ModelError:
    return ModelError(kind, "no", **facts)


class Case:
    """A scripted model behind retries, on a clock that only counts."""

    def __init__(self, *steps: Step, **options: Any) -> None:
        self.clock, self.model = FakeClock(), ScriptedModel(steps)
        self.told: list[tuple[ErrorKind, float, int]] = []
        self._options = {"rng": random.Random(1), "on_retry": self._tell, **options}

    def _tell(self, error: ModelError, wait: float, attempt: int) -> None:
        self.told.append((error.kind, wait, attempt))

    def run(self, request: Request) -> Reply:
        reply: Reply = anyio.run(Retrying(self.model, self.clock, **self._options).complete, request)
        return reply

    def fail(self, request: Request) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.run(request)
        return caught.value


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
def test_a_transient_error_is_tried_again(request_: Request, kind: ErrorKind) -> None:
    """Each transient kind gets its five attempts, and no sixth."""
    again = Case(*[failed(kind)] * 4, OK)
    too_often = Case(*[failed(kind)] * 5)

    assert again.run(request_).text == "Done."
    assert too_often.fail(request_).kind is kind
    assert [len(again.clock.slept), len(too_often.model.requests)] == [4, 5]


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - TRANSIENT))
def test_any_other_error_is_final(request_: Request, kind: ErrorKind) -> None:
    """Quota, keys, bad requests and all the rest are asked once (B61, B92, B98)."""
    case = Case(failed(kind))

    assert case.fail(request_).kind is kind
    assert (case.clock.slept, case.told) == ([], [])


@pytest.mark.parametrize("kind", ErrorKind)
def test_the_servers_own_verdict_is_honoured(kind: ErrorKind) -> None:
    """`x-should-retry: false` ends it; `true` asks again unless that is hopeless."""
    assert not worth_retrying(failed(kind, should_retry=False))
    assert worth_retrying(failed(kind, should_retry=True)) is (kind not in HOPELESS)


def test_waits_grow_to_a_bound(request_: Request) -> None:
    """Each wait lies between nothing and a ceiling that doubles from 1 s to 60 s."""

    class Highest(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return b

    case = Case(*[failed()] * 9, OK, attempts=10, rng=Highest())
    case.run(request_)

    assert case.clock.slept == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@given(st.integers(0, 2**32))
def test_waits_are_jittered_within_their_ceilings(seed: int) -> None:
    """Full jitter: anything from zero to the ceiling."""
    case = Case(*[failed()] * 4, OK, rng=random.Random(seed))
    case.run(Request((User("Go."),), (), 10))

    assert all(0 <= wait <= ceiling for wait, ceiling in zip(case.clock.slept, [1, 2, 4, 8], strict=True))


def test_what_the_provider_asks_is_the_least(request_: Request) -> None:
    """Retry-After is a minimum for each wait, and told to the listener (B96)."""
    case = Case(failed(K.RATE_LIMIT, retry_after=2.0), failed(K.RATE_LIMIT, retry_after=20.0), OK)
    case.run(request_)

    assert case.clock.slept == [2.0, 20.0]
    assert case.told == [(K.RATE_LIMIT, 2.0, 1), (K.RATE_LIMIT, 20.0, 2)]


def test_a_long_wait_is_left_to_a_later_wakeup(request_: Request) -> None:
    """Beyond five minutes the turn gives up at once, and says when the limit is there again (B100)."""
    case = Case(failed(K.RATE_LIMIT, retry_after=301.0))
    error = case.fail(request_)

    assert case.clock.slept == []
    assert error.reset_at is not None
    assert (error.reset_at - case.clock.now()).total_seconds() == 301


def test_cut_attempts_are_charged_to_the_reply(request_: Request) -> None:
    """What streamed before the cut is part of the turn's cost (B17)."""
    cut_off = failed(K.STREAM_CUT, usage=Usage(90, 0, 0, 3, estimated=True))

    assert Usage(280, 0, 0, 16, estimated=True) == Case(cut_off, cut_off, failed(), OK).run(request_).usage
    assert Usage(100, 0, 0, 10) == Case(failed(), OK).run(request_).usage


def test_cut_attempts_are_charged_to_the_last_error(request_: Request) -> None:
    """When every attempt fails, the error holds the sum; nothing where nothing ever streamed."""
    cut_off = failed(K.STREAM_CUT, usage=Usage(90, 0, 0, 3))

    assert (
        Usage(180, 0, 0, 6)
        == Case(cut_off, failed(), failed(K.STREAM_CUT, usage=Usage(90, 0, 0, 3)), attempts=3)
        .fail(request_)
        .usage
    )
    assert Case(*[failed()] * 5).fail(request_).usage is None
    assert Usage(90, 0, 0, 3) == Case(cut_off, failed(K.AUTH)).fail(request_).usage


@pytest.mark.parametrize("stop", [StopReason.PROVIDER_ERROR, StopReason.CANCELLED, StopReason.MISSING])
def test_a_reply_that_failed_is_asked_for_again(request_: Request, stop: StopReason) -> None:
    """An ending that is the provider's failure gets the same attempts, then stands as it is."""
    broken = say("Half", stop=stop, usage=Usage(50, 0, 0, 5))

    assert Usage(150, 0, 0, 15) == Case(broken, OK).run(request_).usage
    last = Case(*[broken] * 5)
    assert (stop, "Half", Usage(250, 0, 0, 25)) == (
        (reply := last.run(request_)).stop,
        reply.text,
        reply.usage,
    )


@pytest.mark.parametrize("stop", sorted(set(StopReason) - {"PROVIDER_ERROR", "CANCELLED", "MISSING"}))
def test_any_other_ending_is_an_answer(request_: Request, stop: StopReason) -> None:
    """Refusals, truncation and unknown words are not asked for again."""
    assert Case(say("x", stop=stop)).run(request_).stop is stop


def test_an_error_that_is_no_models_is_not_caught(request_: Request) -> None:
    """A fault of ours goes up at once."""
    case = Case()

    with pytest.raises(UnexpectedModelCall):
        case.run(request_)


def test_nothing_is_printed_on_a_retry(request_: Request, capfd: pytest.CaptureFixture[str]) -> None:
    """stamina's log line does not reach a terminal that nobody asked to log to."""
    logger = logging.getLogger("stamina")
    handlers = logging.root.handlers[:]
    logging.root.handlers.clear()
    try:
        Case(failed(), OK).run(request_)
    finally:
        logging.root.handlers[:] = handlers

    assert capfd.readouterr() == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)


def test_staminas_switch_is_honoured(request_: Request) -> None:
    """A program that turns stamina off gets one attempt, with its cost."""
    stamina.set_active(False)
    try:
        error = Case(failed(K.STREAM_CUT, usage=Usage(9))).fail(request_)
    finally:
        stamina.set_active(True)

    assert error.usage == Usage(9)


def test_a_cut_stream_is_asked_for_again(ask: Callable[..., Asked], clock: FakeClock) -> None:
    """Cut once: the second answer counts, the first one's half call is gone (B17, B87)."""
    half = cut(tool("shell", {"command": "make"}), after_chars=5)
    asked = ask([half, text("Whole.")], wrap=lambda model: Retrying(model, clock))

    assert (asked.reply.text, asked.reply.calls) == ("Whole.", ())
    assert asked.reply.usage.estimated
    assert asked.stub.requests[0].raw == asked.stub.requests[1].raw


def test_a_stream_cut_for_ever_is_an_error(ask: Callable[..., Asked], clock: FakeClock) -> None:
    """Cut every time: five requests, then the error with the sum of their cost (B87)."""
    half = cut(text("The answer is"), after_chars=5)
    asked = ask([half], forever=True, wrap=lambda model: Retrying(model, clock))

    assert (asked.error.kind, len(asked.stub.requests)) == (K.STREAM_CUT, 5)
    assert asked.error.usage is not None
    assert asked.error.usage.output == 10


def test_a_throttled_request_waits_as_told(ask: Callable[..., Asked], clock: FakeClock) -> None:
    """Two 429 with Retry-After 2 are waited out, and cost nothing (B96)."""
    slow = status(429, "slow down", {"retry-after": "2"})
    asked = ask([slow, slow, text("Hi.")], wrap=lambda model: Retrying(model, clock))

    assert clock.slept == [2.0, 2.0]
    assert not asked.reply.usage.estimated


def test_a_spent_quota_is_asked_once(ask: Callable[..., Asked], clock: FakeClock) -> None:
    """An exhausted account is told from a short limit by its code (B98)."""
    spent = status(429, {"error": {"code": "insufficient_quota", "message": "Pay."}})
    asked = ask([spent], forever=True, wrap=lambda model: Retrying(model, clock))

    assert (asked.error.kind, len(asked.stub.requests)) == (K.QUOTA, 1)
