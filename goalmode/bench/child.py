"""One measurement, in the process that was started for it: `python -m goalmode.bench.child NAME JSON`."""

from __future__ import annotations

import json
import sys
from importlib import import_module

MEASUREMENTS = {
    "floor": "goalmode.bench.floors:floor",
    "bare": "goalmode.bench.bare:bare",
    "turns": "goalmode.bench.path:turns",
    "pursue": "goalmode.bench.long:pursue",
    "going_on": "goalmode.bench.long:going_on",
    "resumed": "goalmode.bench.long:resumed",
    "among": "goalmode.bench.crowd:among",
    "together": "goalmode.bench.crowd:together",
    "profiled": "goalmode.bench.profile:profiled",
    "memory": "goalmode.bench.startup:memory",
    "libraries": "goalmode.bench.startup:libraries",
}
"""By name: the function that makes it. It takes what it is given by name and returns figures for JSON."""


def main() -> None:
    """Make the measurement and print its figures as the last line."""
    name, given = sys.argv[1:]
    module, _, function = MEASUREMENTS[name].partition(":")
    figures = getattr(import_module(module), function)(**json.loads(given))
    sys.stdout.write(f"{json.dumps(figures)}\n")


if __name__ == "__main__":
    main()
