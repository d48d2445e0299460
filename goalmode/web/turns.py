"""The pages of a goal's turns, a part of the history at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from goalmode.domain.goal import Goal
from goalmode.errors import BadInput
from goalmode.inspection import turns as seen
from goalmode.state import bodies, reading_turns
from goalmode.state.store import Store
from goalmode.web.ask import Ask

PER_PAGE = 50
SAID = 400
"""Characters of a reply in a list of turns."""

SHOWN = 200_000
"""Characters of one text that a page holds; of a longer one, its beginning and its end."""


def page(ask: Ask) -> Response:
    """The goal's turns, newest first; those of one wakeup if the address names one."""
    number, wakeup = ask.number("page", 1) or 1, ask.number("wakeup")
    with ask.stores.goal(ask.uid) as (store, goal):
        offset = (number - 1) * PER_PAGE
        found = listed(store, goal, wakeup=wakeup, limit=PER_PAGE + 1, offset=offset, newest=True)
    more = len(found) > PER_PAGE
    return ask.page(
        "turns.html",
        goal={"id": goal.uid, "objective": goal.objective},
        turns=found[::-1][:PER_PAGE],
        page=number,
        more=more,
        wakeup=wakeup,
    )


def one(ask: Ask) -> Response:
    """One turn, whole: what was said, and each call with its arguments and its result."""
    wakeup, number = ask.number("wakeup") or 0, ask.number("turn") or 0
    with ask.stores.goal(ask.uid) as (store, goal):
        found = seen.turns(store, goal, wakeup=wakeup, after=(wakeup, number - 1), limit=1, full=True)
    turn = next((one for one in found if one["seq"] == number), None)
    if turn is None:
        raise BadInput("turn", f"{wakeup}.{number}", f"a turn of goal {goal.uid}")
    for call in turn["calls"]:
        call["arguments"], call["result"] = part(call["arguments"]), part(call["result"])
    turn["text"] = part(turn["text"])
    return ask.page("turn.html", goal={"id": goal.uid, "objective": goal.objective}, turn=turn)


def newest(store: Store, goal: Goal, count: int) -> list[dict[str, Any]]:
    """The newest turns, oldest first."""
    return listed(store, goal, limit=count, newest=True)


def listed(store: Store, goal: Goal, **window: Any) -> list[dict[str, Any]]:
    """Some turns as they are listed, each with the beginning of what was said."""
    found = seen.turns(store, goal, **window)
    with store.reading() as connection:
        rows = reading_turns.turns(connection, goal.id, **window)
        texts = bodies.shown(connection, [row.reply for row in rows])
    said = {(row.wakeup, row.seq): reading_turns.reply_of(texts.get(row.reply or 0, ""))[0] for row in rows}
    return [{**turn, "said": said.get((turn["wakeup"], turn["seq"]), "")[:SAID]} for turn in found]


def part(text: str) -> Mapping[str, Any]:
    """A text, or of a long one its head and its tail, and how many characters are left out between them."""
    if len(text) <= SHOWN:
        return {"head": text, "left_out": 0, "tail": ""}
    head = SHOWN * 2 // 3
    tail = SHOWN - head
    return {"head": text[:head], "left_out": len(text) - head - tail, "tail": text[-tail:]}
