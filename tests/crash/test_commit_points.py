"""A crash before and after every commit of a wakeup: what was committed is there, what was not is told as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.exits import Exit, GoalStatus
from tests.crash import invariants
from tests.crash.lives import Lives, deaths
from tests.crash.mortal import Death
from tests.crash.stories import STORIES
from tests.stores import Stores

pytestmark = pytest.mark.slow

Begin = Callable[[str], Lives]

POINTS = [(name, death) for name, story in STORIES.items() for death in deaths(story)]

TOLD = {
    "success": "→ ok",
    "interrupted": "→ interrupted, not known whether it took effect",
    "skipped": "→ not run",
}


@pytest.fixture
def begin(new_stores: Stores, tmp_path: Path) -> Begin:
    """A story at its beginning."""

    def made(name: str) -> Lives:
        return Lives(
            new_stores.new(tmp_path / "state" / "goals.sqlite"), tmp_path / "workspace", STORIES[name]
        )

    return made


@dataclass(frozen=True)
class Left:
    """What a dead process has left in the store."""

    turns: list[Any]
    calls: list[Any]
    spent: list[Any]
    reserved: tuple[int, int]
    wakeup: int | None

    @classmethod
    def of(cls, lives: Lives) -> Left:
        running = lives.rows(
            "SELECT id, reserved_input, reserved_output FROM wakeups WHERE exit_reason IS NULL"
        )
        id, *reserved = running[0] if running else (None, 0, 0)
        return cls(turns_of(lives), calls_of(lives), lives.rows(SPENT), (reserved[0], reserved[1]), id)


SPENT = "SELECT spent_turns, spent_input, spent_output, spent_wakeups FROM goals"


def turns_of(lives: Lives) -> list[Any]:
    return lives.rows("SELECT id, wakeup, seq, purpose, state, input, output, results FROM turns ORDER BY id")


def calls_of(lives: Lives) -> list[Any]:
    return lives.rows(
        "SELECT id, wakeup, turn, position, tool, brief, idem_key, outcome FROM tool_calls ORDER BY id"
    )


@pytest.mark.parametrize("name", STORIES)
def test_a_story_without_a_death_makes_these_commits(begin: Begin, name: str) -> None:
    """What the table of stories says of each: so no commit of a wakeup is forgotten below."""
    lives = begin(name)

    ending = lives.wake()

    story = STORIES[name]
    assert isinstance(ending, Exit)
    assert (ending.reason, tuple(lives.commits), lives.tools) == (story.ends, story.commits, story.tools)
    lives.wake_until_over()
    assert lives.status is story.finally_
    assert invariants.broken(lives.url) == []


@pytest.mark.parametrize(("name", "death"), POINTS, ids=[f"{name}: {death}" for name, death in POINTS])
def test_a_death_at_every_commit_is_recovered_from(begin: Begin, name: str, death: Death) -> None:
    """B41, B43: nothing committed is lost, nothing is charged or done twice, and the next wakeup is told how each
    call ended: done, begun without a known end, or never begun."""
    lives = begin(name)
    assert lives.wake(death=death) is None
    left, asked, paid, marks = Left.of(lives), len(lives.asked), lives.paid, lives.marks

    lives.wake_until_over()

    assert lives.status is STORIES[name].finally_
    assert invariants.broken(lives.url) == []
    recovered_as_it_was(lives, left, set(marks.begun))
    charged_once(lives, left, paid)
    told_of_each_call(lives, left, asked)
    done_once(lives)
    OF_STORIES.get(name, lambda *_: None)(lives, left)


def recovered_as_it_was(lives: Lives, left: Left, begun: set[str]) -> None:
    """Every row of the dead process is there; calls without an outcome got the one that is true."""
    known = {row[0]: row for row in turns_of(lives)}
    for turn in left.turns:
        id, state = turn[0], turn[4]
        assert known[id] == (*turn[:4], "done" if state == "open" else state, *turn[5:])
    calls = {row[0]: row for row in calls_of(lives)}
    for call in left.calls:
        *rest, key, outcome = call
        expected = outcome or ("interrupted" if key in begun else "skipped")
        assert calls[call[0]] == (*rest, key, expected)


def charged_once(lives: Lives, left: Left, paid: int) -> None:
    """A request whose reply was lost is charged as it was reserved, as one more row, and never a second time."""
    lost = lives.rows("SELECT wakeup, input, output FROM turns WHERE state = 'lost'")
    assert lost == ([(left.wakeup, *left.reserved)] if any(left.reserved) else [])
    sent = len(left.turns) + len(lost)
    assert paid <= sent <= paid + 1  # One more where it died between reserving and sending, or was refused.


def told_of_each_call(lives: Lives, left: Left, asked: int) -> None:
    """The first request after the death says of every call of the dead wakeup how it ended."""
    if left.wakeup is None or len(lives.asked) == asked:
        return
    [seq] = lives.rows("SELECT seq FROM wakeups WHERE id = ?", left.wakeup)
    text = lives.asked[asked].messages[1].text
    outcomes = lives.rows("SELECT id, outcome FROM tool_calls")
    for id, wakeup, _turn, _position, tool, brief, *_ in left.calls:
        if wakeup == left.wakeup and tool == "mark":
            [line] = [
                line for line in text.splitlines() if f"- wakeup {seq}," in line and f"mark: {brief} " in line
            ]
            assert line.endswith(TOLD[dict(outcomes)[id]])


def done_once(lives: Lives) -> None:
    """No key is used twice. What was done twice was marked the first time as interrupted."""
    begun = lives.marks.begun
    assert len(begun) == len(set(begun))
    calls = {key: (brief, outcome) for *_, brief, key, outcome in calls_of(lives)}
    words = [calls[key] for key in begun]
    for number, (word, outcome) in enumerate(words):
        again = any(later == word for later, _ in words[number + 1 :])
        assert outcome == ("interrupted" if again else outcome)
        assert outcome in ("success", "interrupted")
    assert lives.marks.overlaps() == []


def one_wrap_up(lives: Lives, left: Left) -> None:
    """Its latch is committed before it is sent: at most one is ever asked for, and one in all where it was not."""
    asked = [r for r in lives.asked if "mark" not in {t.name for t in r.tools}]
    assert len(asked) <= 1
    latched = lives.rows("SELECT COUNT(*) FROM turns WHERE purpose = 'wrap_up'") == [1] or left.reserved != (
        0,
        0,
    )
    assert asked or latched


def settled_once(lives: Lives, left: Left) -> None:
    """Settlement can neither change the ending nor run again once it was begun."""
    settling = [r for r in lives.asked if {t.name for t in r.tools} == {"remember"}]
    assert len(settling) <= 1
    assert lives.rows("SELECT COUNT(*) FROM memories") in ([0], [1])
    if not settling:
        assert lives.rows("SELECT settlement FROM goals") == ["failed"]


def asked_once(lives: Lives, left: Left) -> None:
    """One question is open, however often the model had to ask it."""
    assert lives.rows("SELECT status FROM questions") == ["open"]


def counted_once(lives: Lives, left: Left) -> None:
    """Each wakeup counts once towards an obstacle, the dead one too if it had said so."""
    [stored] = lives.rows("SELECT obstacles FROM goals")
    [met] = [one["wakeups"] for one in json.loads(stored)["items"]]
    assert len(set(met)) == len(met) >= 3


OF_STORIES: dict[str, Callable[[Lives, Left], None]] = {
    "wrap-up": one_wrap_up,
    "settlement": settled_once,
    "question": asked_once,
    "obstacle": counted_once,
}


FIRST = [
    *[("work", death) for death in (Death("after", n) for n in (0, 1, 4, 7, 11))],
    ("work", Death("within", 1)),
    *[("settlement", Death("after", n)) for n in (3, 4, 6)],
]
"""After a claim, an intent, a result, two outcomes; within a tool; while it settles."""

RECOVERING = [Death(when, number) for number in (0, 1) for when in ("before", "after")]
"""The commit that closes the dead wakeup, then the claim of the next."""


@pytest.mark.parametrize("second", RECOVERING, ids=str)
@pytest.mark.parametrize(("name", "first"), FIRST, ids=[f"{name}: {death}" for name, death in FIRST])
def test_a_second_death_while_recovering(begin: Begin, name: str, first: Death, second: Death) -> None:
    """The process that finds the dead one dies too, before or after it has closed the wakeup or begun its own."""
    lives = begin(name)
    assert lives.wake(death=first) is None
    left, begun = Left.of(lives), set(lives.marks.begun)
    lives.wake(death=second)

    lives.wake_until_over()

    assert lives.status is GoalStatus.DONE
    assert invariants.broken(lives.url) == []
    recovered_as_it_was(lives, left, begun)
    done_once(lives)
    assert lives.rows("SELECT COUNT(*) FROM turns WHERE state = 'lost'")[0] <= 2
