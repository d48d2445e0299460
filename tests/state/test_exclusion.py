"""One writer of a goal at a time, on a database with many writers as on one with a single one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

STATE = Path(__file__).parents[2] / "state"

TAKES = {"lock_goal", "lock_memories", "guard"}
"""What a transaction begins with, so that nothing it reads is written by somebody else before it ends."""

ALONE = {
    "goals.py: create": "its goal is seen by nobody yet",
    "goals.py: edit": "compares the revision and sets it",
    "transfer.py: write": "its goal is seen by nobody yet",
    "journal.py: event": "adds one row",
    "wakeups.py: claim": "compares fence, revision and status, and sets the fence",
    "deliveries.py: issue": "takes the goals it reads, and passes over what others hold",
    "deliveries.py: give_back": "compares the delivery's number and sets it",
}
"""Transactions that begin otherwise, and why they may."""


def transactions() -> Iterator[tuple[str, list[ast.stmt]]]:
    """The body of each transaction that writes, by file and function."""
    for file in sorted(STATE.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.With) and any(
                        ".writing(" in ast.unparse(item.context_expr) for item in node.items
                    ):
                        yield f"{file.name}: {function.name}", node.body


def begins(body: list[ast.stmt]) -> str:
    """The function that its first statement with a connection calls."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return ast.unparse(statement.value.func)
        if "connection" in ast.unparse(statement):
            return ast.unparse(statement)
    return ""


def test_every_transaction_takes_what_it_reads() -> None:
    """Under READ COMMITTED, reading first and writing then would lose what others write in between."""
    found = dict(transactions())

    assert len(found) > 20
    assert [name for name, body in found.items() if name not in ALONE and begins(body) not in TAKES] == []
    assert set(ALONE) <= set(found)


@pytest.mark.parametrize("name", ["lock_goal", "guard"])
def test_the_rule_sees_what_breaks_it(name: str) -> None:
    """A look before the lock is a breach."""
    late = ast.parse(f"row = connection.execute(look)\n{name}(connection, goal)").body
    early = ast.parse(f"values = {{}}\n{name}(connection, goal)\nrow = connection.execute(look)").body

    assert begins(late) not in TAKES
    assert begins(early) in TAKES
