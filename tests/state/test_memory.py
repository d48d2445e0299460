"""Long-term memory: what is found again, who may replace what, and that every change can be taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.goal import Goal, GoalSpec
from goalmode.domain.memory import MAX_RECALLED, Memory, MemoryKind, Remembered
from goalmode.domain.redact import Redactor
from goalmode.errors import BadInput, Fenced, NotAllowed
from goalmode.state import fulltext, goals, memory, snapshot
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed
from tests.state.builders import claim, close, finished, rows

FACT = MemoryKind.ENVIRONMENT


class Notebook:
    """Remembers, for one claimed goal after another."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def goal(self, workspace: str = "/w") -> Goal:
        return goals.create(self.store, GoalSpec("Write the report.", workspace), now=self.store.clock.now())

    def keep(
        self,
        text: str,
        *,
        kind: MemoryKind = FACT,
        goal: Goal | None = None,
        claimed: Claimed | None = None,
        workspace: str = "/w",
        **more: Any,
    ) -> Remembered:
        goal = goal or self.goal(workspace)
        return memory.remember(
            self.store,
            claimed or claim(self.store, goal),
            kind,
            text,
            goal=goal.uid,
            workspace=goal.workspace,
            turn=7,
            shown=more.pop("shown", self.head()),
            now=self.store.clock.now(),
            **more,
        )

    def head(self) -> int:
        with self.store.reading() as connection:
            return memory.head(connection)

    def recall(self, query: str, *, workspace: str = "/w") -> list[str]:
        with self.store.reading() as connection:
            return [found.label for found in memory.recall(connection, workspace, query)]

    def stands(self, workspace: str = "/w") -> list[str]:
        return [found.text for found in reversed(memory.every(self.store, workspace=workspace))]

    def undo(self, label: str) -> list[tuple[str, bool]]:
        return [(m.label, m.stands) for m in memory.undo(self.store, label, now=self.store.clock.now())]

    def forget(self, label: str) -> Memory:
        return memory.forget(self.store, label, now=self.store.clock.now())

    def promote(self, label: str) -> Memory:
        return memory.promote(self.store, label, now=self.store.clock.now())


@pytest.fixture
def notes(store: Store) -> Notebook:
    return Notebook(store)


def test_a_memory_keeps_where_it_comes_from(notes: Notebook) -> None:
    """Kind, text, scope and source are stored; its label names it."""
    goal = notes.goal()

    kept = notes.keep("  The server listens on port 8080.\n", goal=goal).memory

    assert memory.get(notes.store, "m1") == memory.get(notes.store, " 1 ") == kept
    assert (kept.label, kept.kind, kept.text) == ("M1", FACT, "The server listens on port 8080.")
    assert (kept.workspace, kept.goal, kept.wakeup, kept.turn) == ("/w", goal.uid, 1, 7)
    assert kept.stands
    assert kept.created_at == notes.store.clock.now()


def test_any_word_finds_a_memory_whatever_its_case(notes: Notebook) -> None:
    """Words are searched for one by one, without regard to case, width and accents; the best match comes first."""
    notes.keep("The server listens on port 8080.")
    notes.keep("The test server needs a NAÏVE clock.")
    notes.keep("Tides are hourly.")

    assert notes.recall("SERVER clock") == ["M2", "M1"]
    assert notes.recall("ｎａｉｖｅ") == ["M2"]
    assert notes.recall("a zebra on the port") == ["M1"]
    assert notes.recall("what of the zebra") == []


def test_chinese_is_found_by_parts_of_a_run(notes: Notebook) -> None:
    """A run of Chinese is found by what it holds, not only whole, and not by its single characters."""
    notes.keep("测试数据库在端口5432上监听")
    notes.keep("数学库据说很快")

    assert notes.recall("数据库") == ["M1"]
    assert notes.recall("端口 5432") == ["M1"]
    assert notes.recall("学") == ["M2"]
    assert notes.recall("数据库的端口") == ["M1"]


def test_at_most_ten_are_found(notes: Notebook) -> None:
    """A search that fits everything finds the ten that were kept last."""
    goal = notes.goal()
    claimed = claim(notes.store, goal)
    for number in range(MAX_RECALLED + 2):
        notes.keep(f"fact {number}", goal=goal, claimed=claimed)

    assert notes.recall("fact") == [f"M{n}" for n in range(12, 2, -1)]


@pytest.mark.parametrize(
    "query", ['"', "'", "a AND", "NEAR(", "*", "words:x", "-", "", "\x00", "(", "^a", "\ud800"]
)
def test_a_query_is_data(notes: Notebook, query: str) -> None:
    """Quotes, operators, NUL and nothing at all are no errors of syntax."""
    notes.keep("a AND b, near words")

    assert notes.recall(query) in ([], ["M1"])


@given(st.text(st.characters(), max_size=80))
def test_no_query_has_a_sign_of_its_own(query: str) -> None:
    """Whatever is asked, its words are words: nothing that could end a quoted phrase or begin another."""
    found = fulltext.terms(query)

    assert len(found) <= fulltext.MAX_TERMS
    assert all(term.replace(" ", "").replace("_", "x").isalnum() or '"' not in term for term in found)
    assert not any(sign in term for term in found for sign in "\"'*^:()-\x00")


def test_a_long_query_is_searched_by_its_first_words(notes: Notebook) -> None:
    """An objective of any length is a query: no limit of the search is met."""
    notes.keep("the last word")

    assert notes.recall(" ".join(f"w{n}" for n in range(20_000))) == []
    assert notes.recall("last " + "端口" * 50_000) == ["M1"]


def test_other_workspaces_see_nothing_unless_a_user_promotes_it(notes: Notebook) -> None:
    """Memories are of their workspace; a promoted one is everybody's, and that can be taken back."""
    notes.keep("port 8080")

    assert notes.recall("port", workspace="/other") == []

    assert notes.promote("M1").workspace == ""
    assert notes.recall("port", workspace="/other") == ["M1"]
    assert notes.recall("port") == ["M1"]
    with pytest.raises(NotAllowed, match="M1: every workspace's goals see it already"):
        notes.promote("M1")

    assert notes.undo("M1") == [("M1", True)]
    assert notes.recall("port", workspace="/other") == []
    assert notes.recall("port") == ["M1"]


def test_equal_text_is_kept_once(notes: Notebook) -> None:
    """What stands already in the scope is not stored again; elsewhere it is another memory."""
    first = notes.keep("port 8080")

    again = notes.keep(" port 8080 ", kind=MemoryKind.EXPERIENCE)
    elsewhere = notes.keep("port 8080", workspace="/other")

    assert (first.known, again.known, elsewhere.known) == (False, True, False)
    assert again.memory == first.memory
    assert notes.stands() == ["port 8080"]

    notes.forget("M1")
    assert not notes.keep("port 8080").known


def test_a_memory_takes_anothers_place(notes: Notebook) -> None:
    """The replaced one is found no more, and is still there."""
    notes.keep("port 8080")

    new = notes.keep("port 9090", replaces="M1").memory

    assert notes.recall("port") == [new.label]
    assert memory.get(notes.store, "M1").superseded_by == new.id
    assert [m.label for m in memory.every(notes.store)] == ["M2"]
    assert [m.label for m in memory.every(notes.store, hidden=True)] == ["M2", "M1"]


def test_newer_entries_of_other_goals_are_not_overwritten(notes: Notebook) -> None:
    """B145: what another goal wrote since this wakeup began stays; it is shown, and ours can stand beside it."""
    notes.keep("port 8080")
    shown = notes.head()
    notes.keep("port 9090", replaces="M1")
    notes.keep("the user likes tables")
    mine = notes.goal()
    claimed = claim(notes.store, mine)

    with pytest.raises(
        NotAllowed, match=r"the place of M1 was taken by M2 \(port 9090\); leave out replaces"
    ):
        notes.keep("port 7070", goal=mine, claimed=claimed, shown=shown, replaces="M1")
    with pytest.raises(
        NotAllowed, match=r"another goal wrote M3 since this wakeup began \(the user likes tables\)"
    ):
        notes.keep("the user likes lists", goal=mine, claimed=claimed, shown=shown, replaces="M3")
    assert notes.stands() == ["port 9090", "the user likes tables"]

    notes.keep("port 7070", goal=mine, claimed=claimed, shown=shown)
    notes.keep("port 7071", goal=mine, claimed=claimed, shown=shown, replaces="M4")

    assert notes.stands() == ["port 9090", "the user likes tables", "port 7071"]


@pytest.mark.parametrize(
    ("replaces", "told"),
    [
        ("M9", "there is no memory 'M9'"),
        ("the first", "there is no memory 'the first'"),
        ("M2", "there is no memory 'M2'"),
        ("M3", "M3 was forgotten by the user"),
        ("M4", "M4 was promoted by the user"),
    ],
    ids=["unknown", "no label", "other workspace", "forgotten", "promoted"],
)
def test_what_cannot_be_replaced_is_said(notes: Notebook, replaces: str, told: str) -> None:
    """A wrong label, a foreign memory and what a user decided stay as they are, and nothing is stored."""
    for number, workspace in enumerate(["/w", "/other", "/w", "/w"]):
        notes.keep(f"fact {number}", workspace=workspace)
    notes.forget("M3")
    notes.promote("M4")

    with pytest.raises(NotAllowed, match=told):
        notes.keep("new", replaces=replaces)

    assert notes.stands() == ["fact 0", "fact 3"]


def test_forgetting_and_bringing_back(notes: Notebook) -> None:
    """A forgotten memory is hidden from everybody, and undo brings it back."""
    notes.keep("port 8080")

    assert not notes.forget("M1").stands
    assert notes.recall("port") == []
    with pytest.raises(NotAllowed, match="M1: is forgotten already"):
        notes.forget("M1")
    with pytest.raises(NotAllowed, match="M1: does not stand: it is forgotten"):
        notes.promote("M1")

    assert notes.undo("M1") == [("M1", True)]
    assert notes.recall("port") == ["M1"]


def test_undo_of_what_was_remembered_withdraws_it(notes: Notebook) -> None:
    """What it replaced stands again; undone once more, it is back as it was."""
    notes.keep("port 8080")
    notes.keep("port 9090", replaces="M1")

    assert notes.undo("M2") == [("M2", False), ("M1", True)]
    assert notes.stands() == ["port 8080"]

    assert notes.undo("M2") == [("M2", True), ("M1", False)]
    assert notes.stands() == ["port 9090"]

    notes.forget("M2")
    assert notes.stands() == []
    assert notes.undo("M2") == [("M2", True)]
    assert notes.stands() == ["port 9090"]


def test_undo_of_a_memory_that_replaced_nothing_hides_it(notes: Notebook) -> None:
    """Withdrawn, and back again."""
    notes.keep("port 8080")

    assert notes.undo("M1") == [("M1", False)]
    assert notes.stands() == []
    assert notes.undo("M1") == [("M1", True)]


def test_undo_says_which_memory_comes_first(notes: Notebook) -> None:
    """What stands in another's place has to be taken back before it."""
    notes.keep("port 1")
    notes.keep("port 2", replaces="M1")
    notes.keep("port 3", replaces="M2")

    with pytest.raises(NotAllowed, match=r"M2: M3 has taken its place; `goalmode memory undo M3`"):
        notes.undo("M2")
    assert notes.undo("M3") == [("M3", False), ("M2", True)]
    assert notes.undo("M2") == [("M2", False), ("M1", True)]
    with pytest.raises(NotAllowed, match="M3: M2 would make way for it, but M1 has taken its place"):
        notes.undo("M3")
    assert notes.stands() == ["port 1"]


@pytest.mark.parametrize("label", ["M2", "", "M", "W1", "M-1", "Ｍ１", "M1 or 1=1", "9" * 40])
def test_an_unknown_label_is_refused(notes: Notebook, label: str) -> None:
    """One line names the label and what would be right."""
    notes.keep("port 8080")

    for change in (notes.forget, notes.undo, notes.promote, lambda name: memory.get(notes.store, name)):
        with pytest.raises(BadInput, match=r"memory: .* is not valid: the label of one, such as M7"):
            change(label)


def test_an_old_owner_remembers_nothing(notes: Notebook) -> None:
    """The fence holds for memories too."""
    goal = notes.goal()
    claimed = claim(notes.store, goal)
    close(notes.store, claimed, after=finished(notes.store))

    with pytest.raises(Fenced):
        notes.keep("port 8080", goal=goal, claimed=claimed)

    assert rows(notes.store, "SELECT count(*) FROM memories") == [0]
    assert rows(notes.store, "SELECT count(*) FROM memories_fts") == [0]


def test_secrets_are_struck_out(notes: Notebook) -> None:
    """A memory outlives its goal and its session: no secret gets into it, nor into its index."""
    notes.store.redact = Redactor(["hunter2-hunter2"])

    kept = notes.keep("the password is hunter2-hunter2").memory

    assert "hunter2" not in kept.text
    assert notes.recall("hunter2") == []
    assert "hunter2" not in str(rows(notes.store, "SELECT * FROM memories_fts"))


def test_memories_outlive_their_goal(notes: Notebook) -> None:
    """Deleting a goal leaves what it has learned."""
    goal = notes.goal()
    notes.keep("port 8080", goal=goal)

    goals.delete(notes.store, goal)

    assert notes.recall("port") == ["M1"]


def test_a_snapshot_holds_preferences_and_what_fits_the_objective(notes: Notebook) -> None:
    """A wakeup begins with the preferences, whatever they say, and with what the objective's words find."""
    notes.keep("the report belongs into out/")
    notes.keep("port 8080")
    notes.keep("metric units", kind=MemoryKind.PREFERENCE)
    notes.keep("the report of another workspace", workspace="/other")

    seen = snapshot.snapshot(notes.store, notes.goal().id, now=notes.store.clock.now())

    assert [m.label for m in seen.memories] == ["M3", "M1"]
    assert seen.memory_head == 4


def test_a_goal_without_user_tools_is_told_of_no_memory(notes: Notebook) -> None:
    """`--no-user-tools` takes long-term memory away, reading it included."""
    notes.keep("the report belongs into out/")
    goal = notes.goal()
    [settings] = rows(notes.store, "SELECT settings FROM goals WHERE id = ?", goal.id)
    changed = json.dumps({**json.loads(settings), "user_tools": False})
    rows(notes.store, "UPDATE goals SET settings = ? WHERE id = ?", changed, goal.id)

    assert snapshot.snapshot(notes.store, goal.id, now=notes.store.clock.now()).memories == ()
