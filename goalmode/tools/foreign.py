"""Paths that mean nothing in a workspace, or something outside of it to a shell, a browser or another system."""

from __future__ import annotations

import re

from goalmode.errors import BadInput

_URL = re.compile(r"(?i)file:|[a-z][a-z0-9+.-]*://")
_DRIVE = re.compile(r"[A-Za-z]:([\\/]|$)")


def refuse_foreign(path: str, given: str) -> None:
    """Raises BadInput, which names the path as it was `given`, and why it is none."""
    if not path.strip():
        raise BadInput("path", given, "it is empty")
    first, _, rest = path.partition("/")
    if first == "~" or (first.startswith("~") and rest):
        raise BadInput("path", given, "`~` is a home directory, which is outside the workspace")
    if _URL.match(path):
        raise BadInput("path", given, "it is a URL, not a path in the workspace")
    if _DRIVE.match(path):
        raise BadInput("path", given, "it names a drive; give a path inside the workspace")
    if path.startswith("\\\\"):
        raise BadInput("path", given, "it names a network share; give a path inside the workspace")
