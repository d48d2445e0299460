"""Library use in a process of its own, with Python tools that do not want to end.

python tools_child.py STORE GOAL BASE_URL
"""

from __future__ import annotations

import sys
from contextlib import suppress

import anyio

import goalmode
from goalmode import ToolContext, tool
from goalmode.domain.clock import SystemClock
from goalmode.state import goals


@tool
def loops(context: ToolContext) -> str:
    """Loop for ever."""
    (context.workspace / "started").touch()
    while True:
        pass


@tool(timeout_seconds=600)
async def swallows(context: ToolContext) -> str:
    """Wait for ever, and take no notice of the first wish to end it."""
    (context.workspace / "started").touch()
    try:
        await anyio.sleep_forever()
    except BaseException:  # noqa: BLE001 - just what a tool must not do
        (context.workspace / "swallowed").touch()
    await anyio.sleep_forever()
    return ""


def main(store_url: str, uid: str, base_url: str) -> None:
    profile = goalmode.ModelProfile("openai:stub", "openai", "stub", base_url)
    with goalmode.Store(store_url) as store, suppress(KeyboardInterrupt):
        goal = goals.find(store, uid)
        wake = goalmode.begin_wakeup(store, goal, profile=profile, tools=[loops, swallows])
        assert isinstance(wake, goalmode.Wake), wake
        anyio.run(goalmode.run_wakeup, wake, goalmode.open_model(profile, None, clock=SystemClock()))


if __name__ == "__main__":
    main(*sys.argv[1:])
