"""One wakeup in a process of its own, which may die by kill -9 at a point of its choice.

python child.py STORE GOAL BASE_URL [DEATH]
"""

from __future__ import annotations

import os
import signal
import sys
from types import ModuleType
from typing import Any

import anyio

import goalmode
from goalmode.domain.clock import SystemClock
from goalmode.state import closing, goals, journal, settlement

DEATHS: dict[str, tuple[ModuleType, str]] = {
    "before intent": (journal, "intent"),
    "before outcome": (journal, "outcome"),
    "before close": (closing, "close"),
    "before settlement ends": (settlement, "finish"),
}
"""The commit that the process does not live to make. The work before it is done."""


def die(*_arguments: Any, **_named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(store_url: str, uid: str, base_url: str, death: str = "") -> None:
    if death in DEATHS:
        home, name = DEATHS[death]
        assert hasattr(home, name)
        setattr(home, name, die)
    profile = goalmode.ModelProfile("openai:stub", "openai", "stub", base_url)
    with goalmode.Store(store_url) as store:
        wake = goalmode.begin_wakeup(store, goals.find(store, uid), profile=profile, only_if_due=False)
        assert isinstance(wake, goalmode.Wake), wake
        model = goalmode.open_model(profile, None, clock=SystemClock())
        ending = anyio.run(goalmode.run_wakeup, wake, model)
        if death == "after close":
            die()
        sys.stdout.write(ending.reason.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
