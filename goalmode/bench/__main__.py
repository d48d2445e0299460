"""`python -m goalmode.bench`: measure, print the tables, and fail if something is not what it must be."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from goalmode.bench.measure import Failed
from goalmode.bench.page import document, page
from goalmode.bench.sections import SECTIONS
from goalmode.bench.sizes import FULL, QUICK
from goalmode.bench.table import Results, as_text, targets_grid
from goalmode.bench.targets import BY_KEY, merged, missed
from goalmode.domain.clock import SystemClock


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 1 if a target that was measured is missed, or a measurement failed."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for file in (given.json, given.page):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            parser.error(f"{file}: a file in a directory that exists is needed")
    size, at = QUICK if given.quick else FULL, SystemClock().now()
    results = Results()
    for name in given.only or size.sections:
        _remark(f"measuring: {name}")
        try:
            results += SECTIONS[name](size)
        except Failed as failed:
            _remark(f"{name} could not be measured: {failed}")
            return 1
    return report(results, json_file=given.json, page_file=given.page, at=at, command=_command(given))


def report(
    results: Results, *, json_file: Path | None, page_file: Path | None, at: datetime, command: str
) -> int:
    """Print the tables, write the files that are asked for, and return the exit code."""
    figures = merged(results.figures)
    grids = [*([targets_grid(figures, how=False)] if figures else []), *results.grids]
    _say("\n\n".join(map(as_text, grids)))
    if json_file is not None:
        json_file.write_text(json.dumps(document(results, at, command), indent=2) + "\n", "utf-8")
    if page_file is not None:
        page_file.write_text(page(results, at, command), "utf-8")
    failing = missed(figures)
    for figure in failing:
        _remark(f"missed: {BY_KEY[figure.key].what}")
    return int(bool(failing))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m goalmode.bench",
        description="Measure goalmode beside a floor. The exit code is 1 if something is not what it must be.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="in less than a minute; leaves out what takes long"
    )
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="this part; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables there too, as Markdown")
    return parser


def _command(given: argparse.Namespace) -> str:
    parts = [f" --only {name}" for name in given.only or ()]
    return f"python -m goalmode.bench{' --quick' if given.quick else ''}{''.join(parts)}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _remark(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
