"""The recall test: facts that are saved early and asked for late. Of a model that knows nothing but its request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

COUNT = 50
FACTS = "facts"
"""The tool that is given what is still known of them."""

_NAMES = ("otter", "kestrel", "badger", "heron", "marten", "plover", "stoat", "wagtail", "lynx", "dunlin")
_FACT = re.compile(rb"fact (\d\d) is ([a-z]+-\d{4})")


def fact(number: int) -> str:
    """Fact `number`, as it is saved."""
    return f"fact {number:02d} is {_NAMES[number % len(_NAMES)]}-{1000 + number * 7919 % 9000}"


def saved_facts() -> dict[str, Any]:
    """The arguments that save them: half as key information, half as things that are done."""
    half = COUNT // 2
    return {
        "key_info": "; ".join(map(fact, range(half))),
        "done": [fact(number) for number in range(half, COUNT)],
    }


def facts_in(body: bytes) -> set[str]:
    """The facts that can be read in a request."""
    return {f"fact {number.decode()} is {name.decode()}" for number, name in _FACT.findall(body)}


def answer_of(known: Iterable[str]) -> str:
    """The arguments that tell what is still known."""
    return json.dumps({"known": "; ".join(sorted(known))})


def recalled(known: str) -> int:
    """How many of the facts that were saved are told, word by word."""
    return len({fact(number) for number in range(COUNT)} & set(known.split("; ")))
