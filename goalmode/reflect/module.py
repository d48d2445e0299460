"""The file for `python agentmain.py --reflect FILE --goal ID`; `goalmode generic-agent path` says where it is.

GenericAgent runs it by its path, and again into the same namespace when it changes, so that nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping

try:
    from goalmode.platforms import refusal

    if why := refusal():
        raise SystemExit(f"goalmode: {why}")
    from goalmode.reflect import session
except ModuleNotFoundError as error:
    import sys

    remedy = f"install it where GenericAgent runs: {sys.executable} -m pip install goalmode"
    raise SystemExit(f"goalmode: {error}: {remedy}") from None

INTERVAL = 5
ONCE = False


def init(arguments: Mapping[str, str]) -> None:
    session.start(arguments)


def check() -> str | None:
    return session.check()


def on_done(result: str) -> None:
    session.done(result)
