"""A blocking function of somebody else's, run beside the event loop in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


async def in_daemon_thread(function: Callable[[], Result]) -> Result:
    """What `function` returns or raises. When cancelled, the thread is abandoned, and the process may end without it.

    A thread of anyio's pool would keep the interpreter from exiting, and its place in the pool, for as long as the
    function does not return; a tool that loops for ever must do neither.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()
    context = copy_context()

    def deliver(result: Result | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def work() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except StopIteration as stop:  # A future cannot hold it.
            error = RuntimeError(f"StopIteration: {stop}")
        except BaseException as raised:  # noqa: BLE001 - delivered to whoever awaits
            error = raised
        with suppress(RuntimeError):  # The loop has closed: nobody waits any more.
            loop.call_soon_threadsafe(deliver, result, error)

    threading.Thread(target=work, name="goalmode tool", daemon=True).start()
    return await done
