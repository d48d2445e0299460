"""On which machines goalmode runs. Nothing else is imported here: elsewhere the rest cannot even be."""

from __future__ import annotations

import os

POSIX_ONLY = (
    "needs Linux or macOS: its locks (flock), its walk of paths (openat) and the end of a command's processes (killpg) "
    "are POSIX; on Windows run it in WSL"
)


def refusal() -> str | None:
    """Why goalmode cannot run on this machine; None where it can."""
    return None if os.name == "posix" else POSIX_ONLY
