"""Ctrl-C once, Ctrl-C twice, SIGTERM: handlers only set a flag that the run asks for; a second Ctrl-C ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason

LAST_WORDS_SECONDS = 2.0
"""How long a process that is to end at once may take for what cannot be left undone."""

_CTRL_C = Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"})


class Interrupts:
    """Inside the `with` block, signals end the run instead of the process.

    Args:
        last_words: called before the process ends at once; it is not waited for longer than `LAST_WORDS_SECONDS`.
        ctrl_c: what a first Ctrl-C asks for.
    """

    def __init__(self, last_words: Callable[[], None], *, ctrl_c: Exit = _CTRL_C) -> None:
        self._last_words, self._on_ctrl_c = last_words, ctrl_c
        self._asked: Exit | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._handle(signal.SIGINT, self._ctrl_c)
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means what it says
                    self._handle(number, self._terminate)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def asked(self) -> Exit | None:
        """The ending that a signal asked for."""
        return self._asked

    def _handle(self, number: int, handler: Callable[[int, FrameType | None], None]) -> None:
        self._before[number] = signal.signal(number, handler)

    def _ctrl_c(self, number: int, frame: FrameType | None) -> None:
        if self._asked is None:
            self._asked = self._on_ctrl_c
        else:
            self.end_at_once()

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self._asked is None:
            name = signal.Signals(number).name
            self._asked = Exit(ExitReason.INTERRUPTED, name, {"requested": True})

    def end_at_once(self, code: int = EXIT_FACTS[ExitReason.USER_ABORTED].exit_code) -> NoReturn:
        """End the process with this exit code, after its last words."""
        # In a thread: whatever the last words wait for, perhaps a lock of the thread that was interrupted, we do not.
        thread = threading.Thread(target=self._speak, daemon=True)
        thread.start()
        thread.join(LAST_WORDS_SECONDS)
        os._exit(code)

    def _speak(self) -> None:
        with suppress(Exception):
            self._last_words()
