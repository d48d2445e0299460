"""A report's facts as a document for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from goalmode.domain.cost import dollars
from goalmode.domain.text import counted
from goalmode.inspection.document import Block, Document, Heading, Item, Items, Line, Table, Text
from goalmode.inspection.limits import limits_told

Row = Mapping[str, Any]

MAX_TAIL = 2_000
"""Characters of a check's output in a report, the last ones."""


def document(report: Row) -> Document:
    return Document(f"Goal {report['id']}: {_state(report)}", tuple(_blocks(report)))


def _blocks(report: Row) -> Iterator[Block]:
    yield from _now(report)
    yield Heading("Objective")
    yield Text(report["objective"])
    yield from _contract(report)
    yield from _open(report)
    yield from _next_steps(report)
    yield from _failed(report)
    yield from _done(report)
    yield from _questions(report)
    yield from _wakeups(report)
    yield from _spend(report)


def _state(report: Row) -> str:
    return "running" if report["running"] else str(report["status"])


def _now(report: Row) -> Iterator[Block]:
    because = f" ({report['status_reason']})" if report["status_reason"] else ""
    yield Line(f"{_state(report)}{because}, as of {_time(report['generated_at'])}.")
    if report["ending"]:
        yield Line(f"Its last wakeup: {report['ending']}.")
    command = f" The command: {report['remedy']}" if report["remedy"] else ""
    yield Line(f"What makes it run again: {report['needs']}.{command}")
    yield Table(
        ("", ""),
        (
            ("created", _time(report["created_at"])),
            ("workspace", report["workspace"]),
            ("model", report["model"] or "the configured default"),
            ("movement", report["movement"]),
            ("contract's revision", str(report["objective_revision"])),
        ),
    )


def _contract(report: Row) -> Iterator[Block]:
    if report["requirements"]:
        yield Heading("Requirements")
        yield Items([Item(_requirement(r), _tail(r["evidence"])) for r in report["requirements"]])
    if report["deliverables"]:
        yield Heading("Deliverables")
        yield Table(
            ("path", "state", "bytes", "sha256 now", "sha256 verified"),
            [_deliverable(d) for d in report["deliverables"]],
        )
    if report["protected"]:
        yield Heading("Protected files")
        yield Table(
            ("path", "state", "sha256"),
            [(p["path"], p["state"] or "as it was", p["sha256"] or "-") for p in report["protected"]],
        )


def _requirement(requirement: Row) -> str:
    state = "open (the deliverables changed since)" if requirement["outdated"] else requirement["status"]
    check = requirement["check"] or requirement["file"]
    how = f", {requirement['kind']}" + (f": {check}" if check and check != requirement["text"] else "")
    code = "" if requirement["exit_code"] is None else f", exit code {requirement['exit_code']}"
    at = "" if requirement["checked_at"] is None else f", {_time(requirement['checked_at'])}"
    return f"{requirement['id']} {state}: {requirement['text']}{how}{code}{at}"


def _deliverable(found: Row) -> Sequence[str]:
    state = found["problem"] or ("there" if found["exists"] else "missing")
    if found["verified"]:
        state += ", as verified"
    return (
        found["path"],
        state,
        "-" if found["size"] is None else f"{found['size']:,}",
        found["sha256"] or "-",
        found["verified_sha256"] or "-",
    )


def _open(report: Row) -> Iterator[Block]:
    yield Heading("Open")
    if not report["open"]:
        yield Line("Nothing that the contract, the work or a question names.")
        return
    yield Items([Item(f"{one['kind']} {one['what']}: {one['text']}") for one in report["open"]])
    for obstacle in report["obstacles"]:
        met = ", ".join(map(str, obstacle["wakeups"])) or "none since it was resumed"
        yield Line(f"Obstacle {obstacle['id']}: {obstacle['text']} (met in wakeups: {met})")


def _next_steps(report: Row) -> Iterator[Block]:
    saved = report["checkpoint"]
    taken_over = saved["provenance"] == "tool" and bool(saved["key_info"])
    if not saved["wakeup"] and not taken_over:
        return
    yield Heading("Next steps")
    when = "taken over before the first wakeup" if taken_over else f"saved in wakeup {saved['wakeup']}"
    yield Line(f"In the model's words, {when}; they may be out of date.")
    if report["next_steps"]:
        yield Items([Item(step) for step in report["next_steps"]])
    for name in ("summary", "key_info"):
        if saved[name]:
            yield Heading(name.replace("_", " "), 3)
            yield Text(saved[name])


def _failed(report: Row) -> Iterator[Block]:
    if report["failed_approaches"]:
        yield Heading("Failed approaches")
        yield Items([_work(item) for item in report["failed_approaches"]])


def _done(report: Row) -> Iterator[Block]:
    if report["established"]:
        yield Heading("Done")
        yield Items([_work(item) for item in report["established"]])


def _work(item: Row) -> Item:
    times = f", {item['count']} times" if item["count"] > 1 else ""
    return Item(
        f"{item['id']} ({item['status']}, wakeup {item['wakeup']}{times}): {item['text']}", item["evidence"]
    )


def _questions(report: Row) -> Iterator[Block]:
    if report["questions"]:
        yield Heading("Questions")
        yield Items(
            [Item(f"{q['id']} ({q['status']}): {q['text']}", q["answer"] or "") for q in report["questions"]]
        )
    if report["notes"]:
        yield Heading("Notes")
        yield Items([Item(f"{_time(note['at'])}: {note['text']}") for note in report["notes"]])


def _wakeups(report: Row) -> Iterator[Block]:
    if not report["wakeups"]:
        return
    yield Heading("Wakeups")
    if report["wakeups_left_out"]:
        yield Line(f"{counted(report['wakeups_left_out'], 'older wakeup')} left out.")
    rows = [
        (
            str(w["seq"]),
            _time(w["started_at"]),
            " > ".join(w["movements"]),
            f"{w['turns']:,}",
            f"{w['tokens']:,}",
            dollars(w["cost_micro"]) if w["cost_micro"] else "-",
            str(w["progress"]),
            w["exit_reason"] or "running",
            w["exit_detail"],
        )
        for w in report["wakeups"]
    ]
    yield Table(
        ("wakeup", "began", "movement", "turns", "tokens", "cost", "progress", "ended", "detail"), rows
    )


def _spend(report: Row) -> Iterator[Block]:
    spent, limits = report["spent"], report["limits"]
    yield Heading("Spent")
    rows = [
        (purpose.replace("_", "-"), f"{s['calls']:,}", f"{s['tokens']:,}", _cost(s["cost_micro"]))
        for purpose, s in report["spend_by_purpose"].items()
    ]
    calls = sum(s["calls"] for s in report["spend_by_purpose"].values())
    total = ("in all", f"{calls:,}", f"{spent['tokens']:,}", _cost(spent["cost_micro"]))
    yield Table(("purpose", "calls", "tokens", "cost"), [*rows, total])
    turns = f"{counted(spent['turns'], 'turn')} in {counted(spent['wakeups'], 'wakeup')}"
    yield Line(f"{turns}, {spent['active_seconds']:,.1f} s of work. Limits: {limits_told(limits)}.")


def _cost(micro: int) -> str:
    return dollars(micro) if micro else "-"


def _time(iso: str) -> str:
    return datetime.fromisoformat(iso).isoformat(sep=" ", timespec="seconds")


def _tail(text: str) -> str:
    tail = text.strip()
    return f"…{tail[-MAX_TAIL:]}" if len(tail) > MAX_TAIL else tail
