"""How the contexts of two wakeups differ, section by section, in whole items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from goalmode.state.reading import ContextSeen

AROUND = "around"
"""The name under which what stands around the sections is compared: the system prompt, and turns that were kept."""

_SECTION = r"^<{0}(?: [^>\n]*)?>\n(.*?)^</{0}>$"

_OPS = {"equal": ("same",), "delete": ("removed",), "insert": ("added",), "replace": ("removed", "added")}


def difference(
    before: ContextSeen, after: ContextSeen, *, wakeups: tuple[int | None, int | None] = (None, None)
) -> dict[str, Any]:
    """Every section of either context: what it took, and its items in order, each `same`, `removed` or `added`.

    An item is never compared in parts: one that reads differently is removed and added.

    Args:
        wakeups: their numbers.
    """
    old, new = _items(before), _items(after)
    names = [*new, *(name for name in old if name not in new)]
    sizes = _sizes(before), _sizes(after)
    return {
        "wakeups": list(wakeups),
        "tokens": [before.tokens, after.tokens],
        "sections": [
            {
                "name": name,
                "tokens": [size.get(name, {}).get("tokens") for size in sizes],
                "left_out": [size.get(name, {}).get("left_out", 0) for size in sizes],
                "state": _state(old.get(name), new.get(name)),
                "changes": _changes(old.get(name, ()), new.get(name, ())),
            }
            for name in names
        ],
    }


def _state(old: Sequence[str] | None, new: Sequence[str] | None) -> str:
    if old is None or new is None:
        return "added" if old is None else "removed"
    return "same" if old == new else "changed"


def _changes(old: Sequence[str], new: Sequence[str]) -> list[dict[str, Any]]:
    changes = []
    for tag, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        for op in _OPS[tag]:
            changes.append({"op": op, "items": list(new[c:d] if op == "added" else old[a:b])})
    return changes


def _sizes(context: ContextSeen) -> Mapping[str, Mapping[str, Any]]:
    return {str(section["name"]): section for section in context.sections}


def _items(context: ContextSeen) -> dict[str, list[str]]:
    """The items of each section, as rendered; data cannot look like a section's tag (`goalmode.context.escape`)."""
    rest, found = context.text, {}
    for name in _sizes(context):
        # The last one: a replayed conversation may hold those of earlier wakeups.
        *_, match = (None, *re.finditer(_SECTION.format(re.escape(name)), rest, re.DOTALL | re.MULTILINE))
        if match is not None:
            found[name] = _split(match.group(1))
            rest = rest[: match.start()] + rest[match.end() :]
    around = [part.strip("\n") for part in re.split(r"\n{2,}", rest) if part.strip()]
    return {**found, **({AROUND: around} if around else {})}


def _split(body: str) -> list[str]:
    """Lines that begin with a blank belong to the item before them."""
    items: list[str] = []
    for line in body.strip("\n").split("\n"):
        if items and (not line.strip() or line[0] in " \t"):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return [item.rstrip() for item in items]
