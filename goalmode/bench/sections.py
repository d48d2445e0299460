"""The parts of a run, by name: what is measured in which child processes, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from goalmode.bench.goal_sections import crowd, long, tokens
from goalmode.bench.sizes import Size
from goalmode.bench.table import Results
from goalmode.bench.turn_sections import disk, profile, start, turn

SECTIONS: Mapping[str, Callable[[Size], Results]] = {
    "turn": turn,
    "disk": disk,
    "start": start,
    "long": long,
    "tokens": tokens,
    "crowd": crowd,
    "profile": profile,
}
"""By the name that `--only` takes, in the order in which they are run."""
