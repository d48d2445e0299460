"""One audit: files are read, parsed, judged and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from string import whitespace

from goalmode.audit import files, python
from goalmode.audit.findings import RULE, Finding, Report, Signal, Suppressed, Unread
from goalmode.audit.rules import Found, judge
from goalmode.audit.timers import judge_timers
from goalmode.audit.tree import IGNORE, NotParsed, Source
from goalmode.audit.units import units

_IGNORED = re.compile(rf"{IGNORE}:{RULE}(?![\w-])[\s,;:—–-]*(?P<reason>.*)", re.DOTALL)
_RELEVANT = re.compile(
    r"(?i)tool|function_?call|agent|llm|assistant|claude|codex|copilot|openai|anthropic|gemini|gpt|completion"
    r"|stop_?reason|finish_?reason|orchestrator|swarm|crew|model"
)
"""No rule finds anything in a file without one of these."""

_TIMED = re.compile("setTimeout|setInterval|Timer|call_later|Timeout")

EXTRA = "not looked at: TypeScript and JavaScript need the extra audit: pip install 'goalmode[audit]'"


def audit(roots: Sequence[Path]) -> Report:
    """Look at all sources under `roots`. Whatever is in a file, it costs that file at most."""
    findings: list[Finding] = []
    suppressed: list[Suppressed] = []
    unread: list[Unread] = []
    looked_at = tests = links = without = 0
    script = _script_parser()
    for place in files.walk(roots):
        if place.is_link or place.is_test:
            links, tests = links + place.is_link, tests + (place.is_test and not place.is_link)
            continue
        if place.problem:
            unread.append(Unread(place.shown, f"cannot be read ({place.problem})"))
            continue
        if place.path.suffix.lower() in files.SCRIPT and script is None:
            without += 1
            continue
        try:
            text = files.read(place.path)
            source = _parsed(text, place.path.suffix.lower(), script)
            found = [Finding(place.shown, *one) for one in _judged(source, text)]
        except (NotParsed, ValueError) as error:
            unread.append(Unread(place.shown, str(error)))
            continue
        except OSError as error:
            unread.append(Unread(place.shown, f"cannot be read ({error.strerror})"))
            continue
        except RecursionError:
            unread.append(Unread(place.shown, "nested too deeply"))
            continue
        looked_at += 1
        if source.broken is not None:
            unread.append(Unread(place.shown, f"line {source.broken} does not parse; the rest was looked at"))
        reason = _reason(source)
        if reason is None:
            findings += found
        else:
            suppressed += [Suppressed(finding, reason) for finding in found]
    if without:
        unread.append(Unread(f"{without} file{'s' * (without != 1)}", EXTRA))
    by_place = sorted(suppressed, key=lambda one: one.finding)
    return Report(tuple(sorted(findings)), tuple(by_place), tuple(unread), looked_at, tests, links)


Parse = Callable[[str, str], Source]


def _script_parser() -> Parse | None:
    try:
        from goalmode.audit import typescript
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("tree_sitter"):
            raise
        return None
    return typescript.parse


def _parsed(text: str, ending: str, script: Parse | None) -> Source:
    if ending in files.PYTHON:
        return python.parse(text)
    if script is None or ending not in files.SCRIPT:
        raise NotParsed("is neither Python nor TypeScript nor JavaScript")
    return script(text, ending)


def _judged(source: Source, text: str) -> list[Found]:
    """What is found, each line and signal once: a loop in a loop may see the same way out."""
    if not _RELEVANT.search(text):
        return []
    found: dict[tuple[int, Signal], Found] = {}
    for unit in units(source.body):
        for one in judge(unit):
            found.setdefault(one[:2], one)
    if _TIMED.search(text):
        for one in judge_timers(source.body):
            found.setdefault(one[:2], one)
    return list(found.values())


def _reason(source: Source) -> str | None:
    """Why the findings of a file are meant, as its comment says; None without such a comment."""
    for comment in source.comments:
        if (match := _IGNORED.search(comment.text)) is not None:
            return " ".join(match["reason"].rstrip(f"*/{whitespace}").split())
    return None
