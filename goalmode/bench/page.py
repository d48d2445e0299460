"""A run as a page: the tables with where and when they were made, and what was not reached and why."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from goalmode.bench.history import FOUND
from goalmode.bench.table import Results, as_markdown, targets_grid
from goalmode.bench.targets import BY_KEY, Mark, merged

LIBRARIES = ("goalmode", "sqlalchemy", "aiohttp", "anyio", "tiktoken", "httpx")

_HOW = """\
An absolute time says little on a machine that others share, so a figure is a ratio to something measured beside it, in
the same run and turn by turn. **H** is the least that a turn could cost with httpx: one request, one parsed reply, one
durable commit, a bounded context. **P** is the JSON of a turn's assistant and tool messages. Each measurement is a
process of its own; the provider on loopback is another one, and does no work. Ratios are medians of pairs, with the
least and the greatest."""


def machine() -> Mapping[str, str]:
    """Where a run is made, without any name of the machine."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def document(results: Results, at: datetime, command: str) -> dict[str, Any]:
    """The run for programs."""
    figures = merged(results.figures)
    return {
        "at": at.isoformat(timespec="seconds"),
        "command": command,
        "machine": dict(machine()),
        "figures": [
            {
                **asdict(figure),
                "what": BY_KEY[figure.key].what,
                "unit": BY_KEY[figure.key].unit.strip(),
                "must": BY_KEY[figure.key].must,
                "aim": BY_KEY[figure.key].aim,
                "mark": BY_KEY[figure.key].mark(figure.value).name.lower(),
            }
            for figure in figures
        ],
        "tables": [asdict(grid) for grid in results.grids],
    }


def page(results: Results, at: datetime, command: str) -> str:
    """The run for people, in Markdown."""
    where = machine()
    versions = ", ".join(f"{name} {where[name]}" for name in LIBRARIES)
    parts = [
        "# Benchmarks",
        f"{at:%Y-%m-%d}, `{command}`: {where['python']}, SQLite {where['sqlite']}, {where['system']}, "
        f"{where['cores']} cores ({where['processor']}); {versions}.",
        _HOW,
        as_markdown(targets_grid(merged(results.figures))),
        *map(as_markdown, results.grids),
        as_markdown(FOUND),
        _not_reached(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _not_reached(results: Results) -> str:
    """What is not what it must be, then what falls short of what is aimed at, each with what keeps it from that."""
    lines = []
    for wanted, word in ((Mark.MISSED, "missed"), (Mark.MUST, "not yet what is aimed at")):
        for figure in merged(results.figures):
            target = BY_KEY[figure.key]
            if target.mark(figure.value) is wanted:
                lines.append(f"- {target.what}: {word}. {target.limit}".rstrip())
    return "\n".join(["## What is not reached, and why", "", *lines]) if lines else ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or "unknown"
