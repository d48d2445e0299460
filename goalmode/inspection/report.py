"""One report of a goal: what it asks for and what speaks for it, what was done and spent, what failed, what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goalmode.domain.work import ItemKind
from goalmode.inspection.seen import iso
from goalmode.inspection.show import show
from goalmode.inspection.timeline import wakeups
from goalmode.inspection.why import why
from goalmode.state.store import Store

WAKEUPS = 500
"""Wakeups in a report, the newest; of the older ones their number."""

_KEPT = (
    "id",
    "status",
    "status_reason",
    "running",
    "objective",
    "objective_revision",
    "workspace",
    "movement",
    "policy",
    "limits",
    "spent",
    "spend_by_purpose",
    "requirements",
    "deliverables",
    "protected",
    "obstacles",
    "checkpoint",
    "questions",
    "created_at",
    "updated_at",
)
"""What a report has of `show`, as it is there."""

Row = Mapping[str, Any]


def report(store: Store, goal_id: int) -> dict[str, Any]:
    """Everything that a person who was not there needs to know.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    shown, reason = show(store, goal_id), why(store, goal_id)
    seen = wakeups(store, goal_id, limit=WAKEUPS)
    items = {kind: [i for i in shown["work_items"] if i["kind"] == kind] for kind in ItemKind}
    return {
        **{name: shown[name] for name in _KEPT},
        "model": shown["settings"]["model"],
        "generated_at": iso(store.clock.now()),
        "ending": None if reason["ending"] is None else reason["ending"]["sentence"],
        "needs": reason["needs"],
        "remedy": reason["remedy"],
        "wakeups": seen,
        "wakeups_left_out": shown["wakeups_in_all"] - len(seen),
        "established": items[ItemKind.DONE],
        "failed_approaches": items[ItemKind.FAILED_APPROACH],
        "notes": [
            entry for entry in shown["inbox"] if entry["kind"] == "note" and entry["stands"] and entry["text"]
        ],
        "open": _open(shown, items[ItemKind.PENDING]),
        "next_steps": shown["checkpoint"]["next_steps"],
    }


def _open(shown: Row, pending: Sequence[Row]) -> list[dict[str, str]]:
    """What is left: of the contract, of the work, of the questions."""
    open_: list[tuple[str, str, str]] = []
    for r in shown["requirements"]:
        if r["status"] != "passed" or r["outdated"]:
            open_.append(("requirement", r["id"], r["text"]))
    for d in shown["deliverables"]:
        if d["problem"] or not d["exists"] or d["size"] == 0:
            state = d["problem"] or ("is empty" if d["exists"] else "is missing")
            open_.append(("deliverable", d["path"], state))
    for p in shown["protected"]:
        if p["state"]:
            open_.append(("protected file", p["path"], p["state"]))
    open_ += [("to verify", item["id"], item["text"]) for item in pending]
    open_ += [("question", q["id"], q["text"]) for q in shown["questions"] if q["status"] == "open"]
    return [{"kind": kind, "what": what, "text": text} for kind, what, text in open_]
