"""A wakeup of ours while another loop has the thread: our loop runs beside it, in a thread of its own."""

from __future__ import annotations

import threading
from functools import partial

import anyio

from goalmode.domain.exits import Exit
from goalmode.orchestrator.wake import Wake
from goalmode.reflect.relay import Relay
from goalmode.wiring import Workshop, run_wakeup


class Waking:
    """One wakeup from its first request to its stored ending. It runs from the moment it is made.

    Attributes:
        ending: as stored; None as long as it runs, and where the store could not be written (`problem`).
    """

    def __init__(self, wake: Wake, shop: Workshop, relay: Relay) -> None:
        self.wake, self.shop, self.relay = wake, shop, relay
        self.ending: Exit | None = None
        self.problem: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="goalmode wakeup", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        body = partial(run_wakeup, self.wake, self.relay, sink=self.relay.heard, stop=self.relay.stop)
        try:
            self.ending = anyio.run(body)
        except Exception as error:  # noqa: BLE001 - told by whoever asks for the ending
            self.problem = error
        finally:
            self.relay.end()
