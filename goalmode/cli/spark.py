"""Numbers as a line of blocks: what was high and what was low, at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.:-=+*#"


def spark(values: Sequence[float], *, blocks: bool = True, width: int = 60) -> str:
    """One mark a value, from the lowest for 0 to the highest for the largest; where there are more values than `width`
    has places, one mark for the largest of several.

    Args:
        blocks: False where the encoding has no block characters.
    """
    marks = BLOCKS if blocks else ASCII
    shown = _in_groups(values, max(1, width))
    top = max(shown, default=0)
    if top <= 0:
        return marks[0] * len(shown)
    # What is not 0 is never drawn like 0.
    return "".join(
        marks[0 if value <= 0 else max(1, round(value / top * (len(marks) - 1)))] for value in shown
    )


def _in_groups(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    bounds = [len(values) * place // width for place in range(width + 1)]
    return [max(values[start:end]) for start, end in pairwise(bounds)]
