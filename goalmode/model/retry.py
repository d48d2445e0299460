"""Asking again when a provider stumbles, within one turn.

stamina counts the attempts, tells its hooks and honours its test switches; it is asked once the first attempt has
failed. The waiting is ours: stamina can only sleep in real time, while every wait here goes through the clock that is
passed in, and is at least what the provider asked.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import anyio
import stamina

from goalmode.domain.clock import Clock
from goalmode.domain.messages import NO_USAGE, Reply, Request, Usage
from goalmode.domain.signals import TRANSIENT, ErrorKind, StopReason
from goalmode.errors import ModelError, charge, charged
from goalmode.model.port import Model, close

ATTEMPTS = 5
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
LONGEST_ASKED_WAIT = 300.0
"""Seconds. A provider that asks for more is asked again by a later wakeup, not by this turn."""

HOPELESS = frozenset(
    {
        ErrorKind.QUOTA,
        ErrorKind.AUTH,
        ErrorKind.PERMISSION,
        ErrorKind.POLICY,
        ErrorKind.CONTEXT_OVERFLOW,
        ErrorKind.REQUEST_TOO_LARGE,
        ErrorKind.PROTOCOL,
        ErrorKind.SIGNATURE,
    }
)
"""The same request cannot do better, whatever the server's `x-should-retry` says."""

_FAILED_STOPS = frozenset({StopReason.PROVIDER_ERROR, StopReason.CANCELLED, StopReason.MISSING})

OnRetry = Callable[[ModelError, float, int], None]
"""Called before each wait with the error, the seconds to wait and the number of the attempt that failed, from 1."""

# Without a handler Python prints a library's warnings on stderr. Handlers of the program's own still get them.
logging.getLogger("stamina").addHandler(logging.NullHandler())
_log = logging.getLogger("goalmode.model")
_log.addHandler(logging.NullHandler())


class _FailedReply(ModelError):
    """A reply whose ending is a failure of the provider: worth the same second attempt as an error."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        said = f"the reply ended with {reply.stop_raw or reply.stop.value}"
        super().__init__(ErrorKind.SERVER, said, status=reply.http_status, usage=reply.usage)


@dataclass(slots=True)
class _Attempts:
    """What one call has been through so far."""

    rng: random.Random
    failed: int = 0
    last: ModelError | None = None
    wait: float = 0.0
    usage: Usage | None = None

    def add(self, error: ModelError) -> None:
        self.last = error
        self.failed += 1
        if error.usage is not None:
            self.usage = error.usage if self.usage is None else self.usage + error.usage

    def again(self, error: Exception) -> bool:
        """Whether the call is worth another attempt; sets the wait before it."""
        if not isinstance(error, ModelError) or not worth_retrying(error):
            return False
        asked = error.retry_after or 0.0
        if asked > LONGEST_ASKED_WAIT:
            return False
        ceiling = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self.failed - 1))
        self.wait = max(asked, self.rng.uniform(0.0, ceiling))
        return True


class Retrying:
    """A model that is asked again, up to `attempts` times in all, while its errors are transient.

    What cut attempts cost is in the final reply's usage, or in the final error's. A reply that ended in a failure of
    the provider is asked for again too, and returned as it is when the attempts are spent.
    """

    def __init__(
        self,
        inner: Model,
        clock: Clock,
        *,
        attempts: int = ATTEMPTS,
        on_retry: OnRetry | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._inner, self._clock, self._attempts = inner, clock, attempts
        self._on_retry, self._rng = on_retry, rng or random.Random()

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`."""
        so_far = _Attempts(self._rng)
        try:
            return await self._attempt_all(request, so_far)
        except _FailedReply as failed:
            return replace(failed.reply, usage=so_far.usage or failed.reply.usage)
        except ModelError as error:
            error.usage = so_far.usage
            if error.reset_at is None and error.retry_after:
                error.reset_at = self._clock.now() + timedelta(seconds=error.retry_after)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if so_far.usage is not None:
                charge(cancelled, so_far.usage + (charged(cancelled) or NO_USAGE))
            raise

    async def aclose(self) -> None:
        """Close the connections of the model that is asked."""
        await close(self._inner)

    async def _attempt_all(self, request: Request, so_far: _Attempts) -> Reply:
        try:
            return await self._attempt(request, so_far)
        except ModelError as error:
            first = error
        async for attempt in stamina.retry_context(
            on=so_far.again, attempts=self._attempts, timeout=None, wait_initial=0.0, wait_jitter=0.0
        ):
            with attempt:
                if attempt.num == 1:
                    raise first
                await self._pause(so_far)
                return await self._attempt(request, so_far)
        raise AssertionError("stamina ends with a result or an error")

    async def _attempt(self, request: Request, so_far: _Attempts) -> Reply:
        try:
            reply = await self._inner.complete(request)
            if reply.stop in _FAILED_STOPS:
                raise _FailedReply(reply)
        except ModelError as error:
            so_far.add(error)
            raise
        return reply if so_far.usage is None else replace(reply, usage=so_far.usage + reply.usage)

    async def _pause(self, so_far: _Attempts) -> None:
        error = so_far.last
        assert error is not None, "nobody waits before the first attempt"
        _log.warning("asking again in %.1f s, after attempt %d: %s", so_far.wait, so_far.failed, error)
        if self._on_retry is not None:
            self._on_retry(error, so_far.wait, so_far.failed)
        await self._clock.sleep(so_far.wait)


def worth_retrying(error: ModelError) -> bool:
    """Whether the same request may succeed a little later."""
    if error.should_retry is None or error.kind in HOPELESS:
        return error.kind in TRANSIENT
    return error.should_retry
