"""JSON as the strictest reader takes it: no NaN, no lone surrogate, no NUL; and what fails is a ValueError."""

from __future__ import annotations

import json
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
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if is_clean(text) else json.dumps(_cleaned(value), ensure_ascii=False, separators=(",", ":"))


def is_clean(text: str) -> bool:
    """Whether JSON text holds no NUL, written out or escaped, and can be encoded; may be wrong to the safe side."""
    if "\\u0000" in text or "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_object(text: str) -> str | None:
    """`text` if it is a JSON object, cleaned where it must be; None if it is anything else."""
    try:
        value = loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    # An escaped half of a surrogate pair is ASCII until the receiver parses the text.
    return text if is_clean(text) and "\\ud" not in text.lower() else dumps(value)


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
