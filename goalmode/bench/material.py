"""What is said in a measured turn, every time the same: 200 characters of arguments, 100 of text, a result of 1,600.

The results are pieces of Python's own library, so that they pack and count as what an agent reads does.
"""

from __future__ import annotations

import json
import sysconfig
from functools import cache
from pathlib import Path

ARGUMENTS = 200
"""Characters of a call's arguments, as JSON."""
TEXT = 100
"""Characters of what the model says beside its call."""
RESULT = 1_600
"""Characters of a tool's result."""

LOOK = "look"
"""The tool that reads."""
PUT = "put"
"""The tool that has an effect."""

_SOURCES = ("argparse.py", "typing.py", "tarfile.py", "ast.py")
_STRIDE = 1_601
_SENTENCE = (
    "the parser reads each record once and keeps what it has seen in a table by name so that a later pass can "
    "find it again without asking for more than one page while an index over dates shows which of them are new"
)
_WORDS = _SENTENCE.split()


def text(number: int) -> str:
    """What the model says in turn `number`."""
    return _prose(number, TEXT)


def arguments(number: int) -> str:
    """The arguments of the call of turn `number`, a JSON object."""
    empty = json.dumps({"about": ""}, separators=(",", ":"))
    return json.dumps({"about": _prose(number, ARGUMENTS - len(empty))}, separators=(",", ":"))


def result(number: int) -> str:
    """What the tool returns in turn `number`."""
    source = _library()
    start = number * _STRIDE % (len(source) - RESULT)
    return source[start : start + RESULT]


def payload(number: int) -> int:
    """Bytes of the turn's two messages as JSON: the assistant's and the tool's. P is their mean."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": LOOK, "arguments": arguments(number)},
    }
    said = {"role": "assistant", "content": text(number), "tool_calls": [call]}
    got = {"role": "tool", "tool_call_id": f"call_{number}", "content": result(number)}
    return sum(
        len(json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()) for one in (said, got)
    )


def mean_payload(turns: int = 200) -> float:
    """P, in bytes."""
    return sum(map(payload, range(turns))) / turns


def _prose(number: int, length: int) -> str:
    """Words in an order that `number` makes, `length` characters of them."""
    made, at = f"{number:06d}", number
    while len(made) < length:
        at = (at * 48_271 + 11) % 2_147_483_647
        made += f" {_WORDS[at % len(_WORDS)]}"
    return made[:length]


@cache
def _library() -> str:
    folder = Path(sysconfig.get_path("stdlib"))
    found = [folder / name for name in _SOURCES if (folder / name).is_file()]
    whole = "".join(file.read_text("utf-8") for file in found)
    return whole if len(whole) > 10 * RESULT else " ".join(_prose(n, RESULT) for n in range(200))
