"""JSON as the strictest reader takes it: no NaN, no lone surrogate, no NUL; and what fails is a ValueError."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NoReturn

from goalmode.domain.text import sendable


def loads(text: str | bytes) -> Any:
    """Parse strictly.

    Raises:
        ValueError: not JSON, not UTF-8, a number that JSON does not have, or nested too deeply to read.
    """
    try:
        return json.loads(text, parse_constant=_no_such_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(value: object) -> str:
    """Compact JSON text that any reader takes. What cannot be sent is made visible, see `sendable`."""
    return encoded(value).decode()


def encoded(value: object) -> bytes:
    """`dumps` as UTF-8."""
    try:
        data = _compact(value).encode()
    except UnicodeEncodeError:
        return _compact(_cleaned(value)).encode()
    # Text that only speaks of the escape is cleaned in vain, and unchanged.
    return _compact(_cleaned(value)).encode() if b"\\u0000" in data else data


def json_object(text: str) -> str | None:
    """`text` if it is a JSON object, cleaned where it must be; None if it is anything else."""
    return _remembered(text) if len(text) <= REMEMBERED_LENGTH else _json_object(text)


def _json_object(text: str) -> str | None:
    try:
        value = loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    # An escaped NUL or half of a surrogate pair is ASCII until the receiver parses the text.
    try:
        return dumps(value) if _SUSPECT.search(text) else text
    except RecursionError:
        return None


_SUSPECT = re.compile(r"\\u0000|\\ud|[\ud800-\udfff]", re.IGNORECASE)
REMEMBERED_LENGTH = 2_000
_remembered = lru_cache(1_000)(_json_object)
"""A conversation is sent again with every turn; its old arguments are not parsed again."""


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Made once: `json.dumps` makes an encoder of these options at every call."""


def _cleaned(value: object) -> object:
    match value:
        case str():
            return sendable(value)
        case dict():
            return {sendable(str(key)): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value


def _no_such_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
