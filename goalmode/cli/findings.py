"""What a look at an installation found, printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from goalmode.cli.columns import aligned
from goalmode.cli.options import Common
from goalmode.cli.output import say, say_json
from goalmode.domain.finding import Finding, State


def told(found: Sequence[Finding], common: Common) -> int:
    """Print them; returns the exit code, 1 if anything is broken."""
    if common.json:
        say_json([asdict(finding) for finding in found])
    else:
        for line in aligned([[f.name, f.state.value, f.detail] for f in found]):
            say(line)
    return int(any(finding.state is State.BROKEN for finding in found))
