"""A report as SARIF 2.1.0, which code hosts and editors show beside the lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from goalmode.audit.findings import ADVICE, RULE, TIER, TITLE, Finding, Report, Signal

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(report: Report, *, version: str, tier: str, surfaces: Sequence[str]) -> dict[str, Any]:
    """The log: one run, one rule for each signal; suppressed findings are in it, marked as such."""
    level = "error" if tier == TIER else "warning"
    results = [_result(finding, level) for finding in report.findings]
    for one in report.suppressed:
        why = {"kind": "inSource", "justification": one.reason or "no reason is given"}
        results.append(_result(one.finding, level) | {"suppressions": [why]})
    driver = {
        "name": "goalmode audit",
        "version": version,
        "rules": [_rule(s, level, tier, surfaces) for s in Signal],
    }
    notes = [
        {
            "level": "warning",
            "message": {"text": f"{u.path}: {u.why}"},
            "locations": [_location(u.path, None)],
        }
        for u in report.unread
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(signal: Signal, level: str, tier: str, surfaces: Sequence[str]) -> dict[str, Any]:
    advice = ADVICE[signal]
    return {
        "id": f"{RULE}/{signal}",
        "shortDescription": {"text": f"{TITLE}: {signal}"},
        "fullDescription": {"text": advice.why},
        "help": {"text": advice.fix},
        "defaultConfiguration": {"level": level},
        "properties": {"tier": tier, "surfaces": list(surfaces)},
    }


def _result(finding: Finding, level: str) -> dict[str, Any]:
    advice = ADVICE[finding.signal]
    return {
        "ruleId": f"{RULE}/{finding.signal}",
        "ruleIndex": list(Signal).index(finding.signal),
        "level": level,
        "message": {"text": f"{finding.what}: {advice.why}. Fix: {advice.fix}."},
        "locations": [_location(finding.path, finding.line)],
    }


def _location(path: str, line: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    pure = PurePath(path)
    try:
        return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())
    except UnicodeEncodeError:  # a name that is not UTF-8
        return quote(pure.as_posix().encode("utf-8", "surrogateescape"))
