"""`audit`: where does agent code guess that the agent is done?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from goalmode.audit.findings import ADVICE, RULE, SURFACES, TIER, TITLE, Finding, Report
from goalmode.audit.run import audit as run
from goalmode.audit.sarif import sarif
from goalmode.cli import secrets
from goalmode.cli.options import UTF8
from goalmode.cli.output import say, say_json
from goalmode.domain.text import counted, one_line


@click.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("--json", "form", flag_value="json", help="Print one JSON value.")
@click.option("--sarif", "form", flag_value="sarif", help="Print SARIF 2.1.0.")
@click.option(
    "--tier", metavar="NAME", type=UTF8, default=TIER, show_default=True, help="How grave a finding is."
)
@click.option("--surface", "surfaces", metavar="NAME", type=UTF8, multiple=True, default=SURFACES, show_default=True,
              help="What the findings concern. Repeatable.")  # fmt: skip
def audit(paths: Sequence[Path], form: str | None, tier: str, surfaces: Sequence[str]) -> int:
    """Find loops in agent code that guess when the agent is done, in Python, TypeScript and JavaScript.

    A guess is an idle counter, a clock, a file that is there, a reply that merely asks for no tool, or end_turn without
    the other terminal reasons. PATH is a file or a directory; tests and fixtures under a directory are left out. A
    comment `ax-audit-ignore:comm-no-completion-signal, REASON` in a file suppresses what is found in it.

    The exit code is 1 with findings, 0 without; files that cannot be looked at are named and do not change it.
    """
    secrets.learn(None)  # The code that a finding quotes may hold one.
    report = run(paths)
    match form:
        case "json":
            say_json(_document(report, tier, surfaces))
        case "sarif":
            say_json(sarif(report, version=version("goalmode"), tier=tier, surfaces=surfaces))
        case _:
            _print(report, tier, surfaces)
    return int(bool(report.findings))


def _document(report: Report, tier: str, surfaces: Sequence[str]) -> dict[str, Any]:
    return {
        "rule": RULE,
        "title": TITLE,
        "tier": tier,
        "surfaces": list(surfaces),
        "findings": [_finding(finding) for finding in report.findings],
        "suppressed": [_finding(one.finding) | {"reason": one.reason} for one in report.suppressed],
        "not_looked_at": [asdict(one) for one in report.unread],
        "looked_at": report.looked_at,
        "tests_left_out": report.tests,
        "links_not_followed": report.links,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | asdict(ADVICE[finding.signal])


def _print(report: Report, tier: str, surfaces: Sequence[str]) -> None:
    for finding in report.findings:
        advice = ADVICE[finding.signal]
        say(f"{_place(finding)}: {finding.what}", strong=True)
        say(f"  why: {advice.why}")
        say(f"  fix: {advice.fix}")
    for unread in report.unread:
        say(one_line(f"{unread.path}: {unread.why}"))
    for one in report.suppressed:
        say(one_line(f"{_place(one.finding)}: suppressed: {one.reason or 'no reason is given'}"))
    found = len(report.findings)
    counts = [
        f"{counted(found, 'finding')} ({RULE}, {tier}, {', '.join(surfaces)})" if found else "no findings",
        f"{counted(report.looked_at, 'file')} looked at",
        *_counted(len(report.suppressed), "suppressed"),
        *_counted(len(report.unread), "not looked at as a whole"),
        *_counted(report.tests, "test or fixture left out", "tests and fixtures left out"),
        *_counted(report.links, "link not followed", "links not followed"),
    ]
    say(", ".join(counts))


def _place(finding: Finding) -> str:
    return one_line(f"{finding.path}:{finding.line}: {finding.signal}")


def _counted(number: int, what: str, many: str = "") -> list[str]:
    return [counted(number, what, many or what)] if number else []
