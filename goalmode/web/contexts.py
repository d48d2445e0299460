"""The page of a context: exactly what the model saw at the start of a wakeup, and how that differs from another one."""

from __future__ import annotations

from starlette.responses import Response

from goalmode.inspection import contexts, diff
from goalmode.web.ask import Ask


def page(ask: Ask) -> Response:
    """The context of one wakeup; beside another one's, if the address names it (`?diff=N`)."""
    wakeup, other = ask.number("wakeup"), ask.number("diff")
    with ask.stores.goal(ask.uid) as (store, goal):
        number, found = contexts.stored_contexts(store, goal, wakeup, later=True)
        difference = None
        if other is not None:
            _, before = contexts.stored_contexts(store, goal, other)
            difference = diff.difference(before[0], found[0], wakeups=(other, number))
    return ask.page(
        "context.html",
        goal={"id": goal.uid, "objective": goal.objective, "wakeups": goal.spent.wakeups},
        context=contexts.described(number, found),
        other=other,
        difference=difference,
    )
