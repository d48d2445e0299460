"""A contract beside what is known of it, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from goalmode.cli.output import say, table
from goalmode.domain.text import counted, one_line
from goalmode.orchestrator.check import Checked, Line

Row = Mapping[str, Any]

MAX_TAIL = 300
"""Characters of the end of an output."""

_WORDS = {True: "holds", False: "fails", None: "open"}


def checked(found: Checked) -> None:
    """The table of `check`."""
    if not found.lines:
        say("There is nothing to check.")
        return
    rows = [
        [
            _WORDS[line.holds],
            line.subject,
            line.kind,
            _found(line),
            line.text if line.text != line.subject else "",
        ]
        for line in found.lines
    ]
    table(["", "SUBJECT", "KIND", "FOUND", "WANTED"], rows)


def contract(found: Row) -> None:
    """The part of `show` about the contract: each requirement with what speaks for it, then the files."""
    if found["requirements"]:
        say("\nRequirements", strong=True)
        for requirement in found["requirements"]:
            text, kind = one_line(requirement["text"]), requirement["kind"]
            say(f"  {requirement['id']}  {_state(requirement):<7}  {text} ({kind})")
            for line in _evidence(requirement):
                say(f"        {line}")
    if found["deliverables"]:
        say("\nDeliverables", strong=True)
        for deliverable in found["deliverables"]:
            say(f"  {one_line(deliverable['path'])}: {_deliverable(deliverable)}")
    if found["protected"]:
        say("\nProtected files", strong=True)
        for file in found["protected"]:
            say(f"  {one_line(file['path'])}: {_protected(file)}")


def _found(line: Line) -> str:
    last = line.tail.strip().splitlines()[-1:] if line.holds is False else []
    return "; ".join([line.detail, *(one_line(text, 120) for text in last)])


def _state(requirement: Row) -> str:
    return "open" if requirement["outdated"] else str(requirement["status"])


def _evidence(requirement: Row) -> Iterator[str]:
    """What speaks for or against it, and since when."""
    at = _time(requirement["checked_at"])
    match requirement["kind"]:
        case "human" if requirement["outdated"]:
            yield f"accepted by the user {at}, but the deliverables changed since: it has to be accepted again"
        case "human" if requirement["status"] == "passed":
            yield f"accepted by the user {at}"
        case "human":
            yield "not accepted yet"
        case _ if requirement["checked_at"] is None:
            yield "not checked yet"
        case "command":
            code = requirement["exit_code"]
            yield f"{'no exit code' if code is None else f'exit code {code}'}, {at}"
        case "file":
            yield f"looked at {at}"
        case _:
            yield f"cited {at}"
    tail = str(requirement["evidence"]).strip()
    if tail:
        yield one_line(f"…{tail[-MAX_TAIL:]}" if len(tail) > MAX_TAIL else tail)


def _deliverable(found: Row) -> str:
    state = found["problem"] or ("missing" if not found["exists"] else counted(found["size"], "byte"))
    hashes = [
        f"{word} {found[name][:12]}"
        for word, name in (("seen", "seen_sha256"), ("verified", "verified_sha256"))
        if found[name]
    ]
    verified = ["as verified"] if found["verified"] else []
    hint = f" ({found['hint']})" if found["hint"] else ""
    return ", ".join([state, *hashes, *verified]) + hint


def _protected(found: Row) -> str:
    accepted = f", accepted {_time(found['accepted_at'])}" if found["accepted_at"] else ""
    return f"{found['state'] or 'as it was'} (named by {one_line(found['named_by'], 80)}{accepted})"


def _time(iso: str | None) -> str:
    """A stored time in this machine's zone."""
    return (
        "-"
        if iso is None
        else datetime.fromisoformat(iso).astimezone().isoformat(sep=" ", timespec="seconds")
    )
