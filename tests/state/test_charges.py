"""What is spent: the goal's totals are the sum of the turns' rows, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from goalmode.domain.budget import Spent
from goalmode.domain.cost import Price, cost_of, reserve_of
from goalmode.domain.messages import Usage
from goalmode.orchestrator.recover import recover
from goalmode.state import goals, journal, wakeups
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.state.wakeups import Claimed
from goalmode.testing import ManualClock, temporary_store
from tests.state.builders import (
    RESERVE,
    claim,
    close,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
)


def sums(store: Store) -> Any:
    return rows(
        store,
        "SELECT coalesce(sum(input), 0), coalesce(sum(cached), 0), coalesce(sum(cache_write), 0),"
        " coalesce(sum(output), 0),"
        " count(CASE WHEN state NOT IN ('failed', 'lost') AND purpose != 'handoff' THEN 1 END)"
        " FROM turns",
    )[0]


def totals(spent: Spent) -> tuple[int, ...]:
    return (
        spent.input_tokens,
        spent.cached_input_tokens,
        spent.cache_write_tokens,
        spent.output_tokens,
        spent.turns,
    )


def die(store: Store, clock: ManualClock, goal_id: int) -> None:
    """The owner is gone, and whoever comes next closes its wakeup."""
    clock.advance(61)
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal_id)
    assert dead is not None
    assert recover(store, goals.get(store, goal_id), dead, turns=0, jitter=0.0)


def test_three_wakeups_of_two_requests_cost_what_the_provider_reported(
    store: Store, clock: ManualClock
) -> None:
    """B21: 6 x (1000 + 60) = 6360; a death with no request out and a reopened store change nothing."""
    goal, usage = new_goal(store), Usage(input=1_000, output=60)
    for number in range(3):
        claimed = claim(store, goal)
        take_turn(store, claimed, 1, usage=usage)
        said = reply("shell", usage=usage, prefix="last")
        outcome(store, claimed, intent(store, claimed, said, seq=2), record("last0"), reserve=Usage())
        if number == 1:
            die(store, clock, goal.id)
        else:
            close(store, claimed)

    with Store(store.url) as later:
        spent = goals.get(later, goal.id).spent

    assert (spent.tokens, spent.turns, spent.wakeups) == (6_360, 6, 3)
    assert totals(spent) == sums(store)
    assert rows(store, "SELECT sum(tokens) FROM wakeups") == [6_360]


def test_cached_input_is_charged_once(store: Store) -> None:
    """B27: input - cached + output, in the goal's total, the wakeup's and the turn's row."""
    goal = new_goal(store)
    claimed = claim(store, goal)

    take_turn(store, claimed, 1, usage=Usage(input=1_000, cached=800, output=50))

    assert goals.get(store, goal.id).spent.tokens == 250
    assert rows(store, "SELECT tokens FROM wakeups") == [250]
    assert rows(store, "SELECT input - cached + output FROM turns") == [250]


def test_a_request_that_was_out_when_the_process_died_is_charged_as_reserved(
    store: Store, clock: ManualClock
) -> None:
    """Between claim and intent the reply is lost; its reservation is charged as an estimate, and is no turn."""
    goal = new_goal(store)
    claim(store, goal)

    die(store, clock, goal.id)

    spent = goals.get(store, goal.id).spent
    assert (spent.tokens, spent.turns, spent.wakeups) == (600, 0, 1)
    assert rows(store, "SELECT state, estimated, input, output, stop_reason FROM turns") == [
        ("lost", 1, 400, 200, "MISSING")
    ]


def test_between_intent_and_outcome_no_request_is_out(store: Store, clock: ManualClock) -> None:
    """The intent replaced the reservation by what the reply really cost."""
    goal = new_goal(store)
    intent(store, claim(store, goal), reply("shell", usage=Usage(input=90, output=10)))

    die(store, clock, goal.id)

    assert goals.get(store, goal.id).spent.tokens == 100
    assert rows(store, "SELECT state FROM turns") == ["done"]


def test_a_failed_call_is_charged_and_is_no_turn(store: Store, clock: ManualClock) -> None:
    """An attempt is charged once its stream began; turn numbers stay free of gaps in the journal."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    now = clock.now()
    journal.failed_call(
        store,
        claimed,
        seq=1,
        purpose=Purpose.WORK,
        usage=Usage(500, output=5),
        detail="cut",
        active_ms=1_500,
        started_at=now,
        now=now,
    )

    spent = goals.get(store, goal.id).spent
    assert (spent.tokens, spent.turns, spent.active_seconds) == (505, 0, 1.5)
    assert rows(store, "SELECT reserved_input, reserved_output FROM wakeups") == [(0, 0)]


def test_a_wakeup_that_only_finds_its_budget_spent_is_not_counted(store: Store, clock: ManualClock) -> None:
    """B25: no call, no wakeup in the totals."""
    goal = new_goal(store)

    wakeups.claim(store, goal, seq=1, context=None, reserve=Usage(), counted=False, now=clock.now())

    assert goals.get(store, goal.id).spent == Spent()


_tokens = st.integers(0, 5_000)
_usages = st.builds(
    lambda new, cached, write, output: Usage(new + cached + write, cached, write, output),
    _tokens,
    _tokens,
    _tokens,
    _tokens,
)


_prices = st.none() | st.builds(Price, *[st.integers(0, 30_000_000)] * 4)


class Ledger(RuleBasedStateMachine):
    """Any order of turns, failed calls, crashes, closes and resumes, each wakeup at a price of its own or at none."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.opened = temporary_store(clock=self.clock)
        self.store = self.opened.__enter__()
        self.goal = new_goal(self.store)
        self.claimed: Claimed | None = None
        self.seq = self.charged = self.cost = 0
        self.price: Price | None = None

    def teardown(self) -> None:
        self.opened.__exit__(None, None, None)

    @precondition(lambda self: self.claimed is None)
    @rule(reserve=_usages, price=_prices)
    def begin(self, reserve: Usage, price: Price | None) -> None:
        self.resume()  # Five deaths in a row have blocked it.
        self.claimed = claim(self.store, self.goal, reserve=reserve, price=price)
        self.seq, self.reserved, self.price = 0, reserve, price

    @precondition(lambda self: self.claimed is not None)
    @rule(usage=_usages, reserve=_usages, counts=st.booleans(), finished=st.booleans())
    def turn(self, usage: Usage, reserve: Usage, counts: bool, finished: bool) -> None:
        assert self.claimed is not None
        self.seq += 1
        now = self.clock.now()
        turn = journal.intent(
            self.store,
            self.claimed,
            seq=self.seq,
            purpose=Purpose.WORK if counts else Purpose.HANDOFF,
            reply=reply(usage=usage),
            calls=(),
            counts=counts,
            active_ms=0,
            started_at=now,
            now=now,
        )
        self.charged, self.reserved = self.charged + usage.tokens, Usage()
        self.cost += cost_of(self.price, usage)
        if finished:
            outcome(self.store, self.claimed, turn, reserve=reserve)
            self.reserved = reserve

    @precondition(lambda self: self.claimed is not None)
    @rule(usage=_usages)
    def fail(self, usage: Usage) -> None:
        assert self.claimed is not None
        self.seq += 1
        now = self.clock.now()
        journal.failed_call(
            self.store,
            self.claimed,
            seq=self.seq,
            purpose=Purpose.WORK,
            usage=usage,
            detail="",
            active_ms=0,
            started_at=now,
            now=now,
        )
        self.charged, self.reserved = self.charged + usage.tokens, Usage()
        self.cost += cost_of(self.price, usage)

    @precondition(lambda self: self.claimed is not None)
    @rule()
    def crash(self) -> None:
        die(self.store, self.clock, self.goal.id)
        # What a lost request had from the cache is not known: its whole prompt is charged.
        self.charged += self.reserved.input + self.reserved.output
        self.cost += reserve_of(self.price, self.reserved)
        self.claimed = None

    @precondition(lambda self: self.claimed is not None)
    @rule()
    def end(self) -> None:
        assert self.claimed is not None
        close(self.store, self.claimed)
        self.claimed = None

    @rule()
    def resume(self) -> None:
        goals.make_due(self.store, self.goal, now=self.clock.now(), reason="resumed")

    @invariant()
    def rows_and_totals_agree(self) -> None:
        """B21: the goal's totals, the wakeups' and the sum over the turns' rows are one number."""
        spent = goals.get(self.store, self.goal.id).spent
        assert totals(spent) == sums(self.store)
        assert spent.tokens == self.charged
        assert spent.cost_micro == self.cost
        assert rows(self.store, "SELECT coalesce(sum(cost_micro), 0) FROM turns") == [self.cost]
        assert rows(self.store, "SELECT coalesce(sum(tokens), 0) FROM wakeups") == [self.charged]
        assert rows(self.store, "SELECT coalesce(sum(turns), 0) FROM wakeups") == [spent.turns]
        seqs = rows(self.store, "SELECT seq FROM wakeups ORDER BY seq")
        assert seqs == list(range(1, len(seqs) + 1))


TestLedger = pytest.mark.long(Ledger.TestCase)
# Without shrinking: a store of its own for every attempt makes it take minutes.
TestLedger.settings = settings(
    max_examples=15, stateful_step_count=12, deadline=None, phases=[Phase.explicit, Phase.generate]
)


def test_the_reservation_is_replaced_and_never_added_to_a_reply(store: Store) -> None:
    """A reply that came costs what was reported, not what was reserved for it."""
    goal = new_goal(store)
    claimed = claim(store, goal, reserve=Usage(9_000, output=9_000))

    take_turn(store, claimed, 1, usage=Usage(10, output=1))
    close(store, claimed)

    assert goals.get(store, goal.id).spent.tokens == 11
    assert RESERVE.tokens not in rows(store, "SELECT tokens FROM wakeups")
