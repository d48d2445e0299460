"""What must hold of a store whatever happened to the processes that wrote it: asked past the package, and by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from goalmode.state.invariants import check
from goalmode.state.store import Store
from tests import stores

_TOTALS = """
SELECT g.id, {goal}, {turns} FROM goals g
LEFT JOIN wakeups w ON w.goal = g.id LEFT JOIN turns t ON t.wakeup = w.id
GROUP BY g.id HAVING {goal} <> {turns}
"""

_PURPOSES = "('work', 'recovery', 'wrap_up')"
_COUNTED = (
    f"COALESCE(SUM(CASE WHEN t.state IN ('open', 'done') AND t.purpose IN {_PURPOSES} THEN 1 ELSE 0 END), 0)"
)

STATEMENTS: dict[str, str] = {
    **{
        f"a goal's spent {name} is not the sum of its turns'": _TOTALS.format(
            goal=f"g.spent_{name}", turns=f"COALESCE(SUM(t.{name}), 0)"
        )
        for name in ("input", "cached", "cache_write", "output", "cost_micro")
    },
    "a goal's spent turns are not the number of its turns": _TOTALS.format(
        goal="g.spent_turns", turns=_COUNTED
    ),
    "a goal's spent wakeups are not the number of those that were shown a context": """
        SELECT g.id, g.spent_wakeups, COUNT(c.id) FROM goals g LEFT JOIN wakeups w ON w.goal = g.id
        LEFT JOIN contexts c ON c.wakeup = w.id AND c.n = 0
        GROUP BY g.id HAVING g.spent_wakeups <> COUNT(c.id)""",
    "a wakeup's turns or tokens are not those of its rows": f"""
        SELECT w.id, w.turns, w.tokens FROM wakeups w LEFT JOIN turns t ON t.wakeup = w.id
        GROUP BY w.id HAVING w.turns <> {_COUNTED}
        OR w.tokens <> COALESCE(SUM(t.input - t.cached + t.output), 0)""",
    "a goal's wakeups are not numbered one by one": """
        SELECT goal, COUNT(*), MAX(seq) FROM wakeups GROUP BY goal HAVING COUNT(*) <> MAX(seq)""",
    "a wakeup's turns are not numbered one by one": """
        SELECT wakeup, COUNT(*), MAX(seq) FROM turns GROUP BY wakeup HAVING COUNT(*) <> MAX(seq)""",
    "a later wakeup has not a higher fence": """
        SELECT a.id, b.id FROM wakeups a JOIN wakeups b ON b.goal = a.goal AND b.seq = a.seq + 1
        WHERE b.fence <= a.fence""",
    "a goal has not the fence of its last wakeup, or a higher one": """
        SELECT g.id FROM goals g JOIN wakeups w ON w.goal = g.id WHERE w.fence > g.fence""",
    "a wakeup began before the one before it had ended": """
        SELECT a.id, b.id FROM wakeups a JOIN wakeups b ON b.goal = a.goal AND b.seq = a.seq + 1
        WHERE a.ended_at IS NULL OR b.started_at < a.ended_at""",
    "a closed wakeup has a call without an outcome": """
        SELECT c.id FROM tool_calls c JOIN wakeups w ON w.id = c.wakeup
        WHERE c.outcome IS NULL AND w.exit_reason IS NOT NULL""",
    "a closed wakeup has a turn that is open": """
        SELECT t.id FROM turns t JOIN wakeups w ON w.id = t.wakeup
        WHERE t.state = 'open' AND w.exit_reason IS NOT NULL""",
    "two calls have the same key": "SELECT idem_key FROM tool_calls GROUP BY idem_key HAVING COUNT(*) > 1",
    "a goal that is not active is due": """
        SELECT id FROM goals WHERE status IN ('DONE', 'ABORTED', 'EXHAUSTED', 'BLOCKED')
        AND next_wakeup_at IS NOT NULL""",
    "an active goal that nobody runs is never due": """
        SELECT g.id FROM goals g WHERE g.status = 'ACTIVE' AND g.next_wakeup_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM wakeups w WHERE w.goal = g.id AND w.exit_reason IS NULL)""",
}
"""Each finds the rows that break it."""


def broken(url: str) -> list[str]:
    """What does not hold of the store; empty if all of it does."""
    found = [f"{what}: {rows[:3]}" for what, rows in _asked(url) if rows]
    with Store(url, readonly=True) as store:
        return found + [f"{one.goal}: {one.rule}: {one.detail}" for one in check(store).findings]


def _asked(url: str) -> Iterator[tuple[str, list[object]]]:
    for what, statement in STATEMENTS.items():
        yield what, stores.rows(url, statement)
    if not stores.SERVER:
        yield "integrity", [r for r in stores.rows(url, "PRAGMA integrity_check") if r != "ok"]
        yield "foreign keys", stores.rows(url, "PRAGMA foreign_key_check")


def endings(url: str) -> Counter[str]:
    """How many wakeups ended for which reason; `None` for those that run."""
    return Counter(map(str, stores.rows(url, "SELECT exit_reason FROM wakeups")))
