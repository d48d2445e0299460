"""What the pages show: the list, a goal, its turns, its contexts; and that reading changes nothing."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.cost import Price
from goalmode.domain.goal import GoalSpec
from goalmode.domain.redact import Redactor
from goalmode.domain.signals import StopReason
from goalmode.orchestrator.goals import create_goal, edit_goal
from goalmode.state import tables as t
from goalmode.state.migrate import HEAD
from goalmode.state.store import Store
from goalmode.testing import call, calls, say
from goalmode.web import goal as goal_page
from goalmode.web import listing, turns
from goalmode.web.stores import Stores
from tests import stores
from tests.loop.conftest import PROFILE
from tests.web.conftest import SECRET, Pages, Read
from tests.web.test_live import listen

Open = Callable[..., Pages]

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> {{ 7*7 }} {% for %} ${7*7} "
    "\x1b[31mred\x1b[0m \u202egnp.exe\u2066 \x00 \u2028 &lt; \"'` ]]> --> </title></textarea>"
)


PRICED = replace(PROFILE, price=Price(1_000_000, 0, 1_000_000, 0))
SAVE = call("update_working_checkpoint", key_info="all of it")
"""As a last turn: then there is nothing that a handoff would have to save."""


def worked(pages: Pages) -> None:
    """One wakeup with a write, a checkpoint and a claim that is turned down, then the quota."""
    pages.world.wake(
        [
            replace(call("write_file", path="a.txt", content="one"), text="Writing it <b>down</b>."),
            call("update_working_checkpoint", key_info="port 80", pending=["look again"], next_steps=["x"]),
            call("complete", status="success", summary="done"),
        ]
    )


def test_the_list_says_how_goals_stand(open_pages: Open) -> None:
    """Status, what is used of the limits, the next wakeup and the last ending."""
    pages = open_pages(
        max_turns=3, profile=PRICED, limits=Limits(turns=10, tokens=100_000, cost_micro=2_000_000)
    )
    worked(pages)
    shown = pages.read(f"{pages.keys.base}/")

    assert "MAX_TURNS_EXCEEDED" in shown.text
    assert "The wakeup's turn quota is spent." in {a.get("title") for a in shown.all("abbr")}
    assert ("3 / 10" in shown.text, "360 / 100,000" in shown.text) == (True, True)
    assert "$0.00036 / $2.00" in shown.text
    assert [p["value"] for p in shown.all("progress")] == ["0.3", "0.0036", "0.00018"]
    assert f"{pages.goal}" in {a.get("href") for a in shown.all("a")}
    assert "now" in shown.text


def test_a_limit_of_nothing_is_reached(open_pages: Open) -> None:
    """0 is zero, not unlimited; and a deadline is shown with what has passed of it."""
    pages = open_pages()
    deadline = pages.world.clock.now() + timedelta(hours=1)
    spec = GoalSpec("x", str(pages.world.workspace), limits=Limits(turns=0, deadline=deadline))
    create_goal(pages.world.store, spec)
    pages.world.clock.advance(timedelta(minutes=54).total_seconds())
    shown = pages.read(f"{pages.keys.base}/")

    assert [(p["value"], p["max"]) for p in shown.all("progress")] == [("1.0", "1"), ("0.9", "1")]
    assert [a["class"] for a in shown.all("div") if "meter" in str(a.get("class"))] == [
        "meter reached",
        "meter near",
    ]


def test_what_waits_for_an_answer_stands_above_the_list(open_pages: Open) -> None:
    """Open questions of all goals, with links to their goals."""
    pages = open_pages("Ask me.")
    ask(pages, "Which port?")
    shown = pages.read(f"{pages.keys.base}/")

    assert "Waiting for an answer" in shown.text
    assert "Which port?" in shown.text
    assert f"{pages.goal}#questions" in {a.get("href") for a in shown.all("a")}


def ask(pages: Pages, text: str, *options: str) -> None:
    """The goal's next wakeup ends in a question."""
    more = {"options": list(options)} if options else {}
    pages.world.wake(
        [
            call("list_files", path="."),
            call(
                "complete",
                status="needs_user_input",
                summary="I need to know.",
                missing_info=text,
                why_no_default="Only you know.",
                **more,
            ),
        ]
    )


def test_without_a_store_there_are_no_goals(open_pages: Open, tmp_path: Any) -> None:
    """Nothing is made by looking, and what to do is said."""
    pages = open_pages()
    nowhere = tmp_path / "nowhere" / "goals.sqlite"
    pages.stores._url = str(nowhere)
    shown = pages.read(f"{pages.keys.base}/")

    assert "There are no goals yet" in shown.text
    assert not nowhere.parent.exists()
    assert pages.get(pages.goal).status_code == 404


def test_the_list_is_paged(open_pages: Open) -> None:
    """So many goals on a page, newest first, and a link to those before."""
    pages = open_pages("Goal 0.")
    for number in range(1, listing.PER_PAGE + 1):
        create_goal(pages.world.store, GoalSpec(f"Goal {number}.", str(pages.world.workspace)))
    first, second = (pages.read(f"{pages.keys.base}/?page={n}") for n in (1, 2))

    assert _titles(first) == [f"Goal {n}." for n in range(listing.PER_PAGE, 0, -1)]
    assert _titles(second) == ["Goal 0."]
    assert [a["href"] for a in first.all("a") if a.get("rel")] == ["?page=2"]
    assert [a["href"] for a in second.all("a") if a.get("rel")] == ["?page=1"]
    assert "no older goals" in pages.read(f"{pages.keys.base}/?page=3").text


def _titles(shown: Read) -> list[str]:
    return [line.strip() for line in shown.text.split("\n") if line.strip().startswith("Goal ")]


@pytest.mark.sqlite
def test_a_goal_that_cannot_be_read_hides_no_other(pages: Pages) -> None:
    """It is marked in the list with what is wrong; its own page says the same."""
    create_goal(pages.world.store, GoalSpec("Another.", str(pages.world.workspace)))
    stores.rows(
        pages.world.store.url, "UPDATE goals SET settings = ? WHERE id = ?", "[]", pages.world.goal.id
    )
    shown = pages.read(f"{pages.keys.base}/")

    assert ("unreadable" in shown.text, "Another." in shown.text) == (True, True)
    assert "settings is []" in shown.text
    own = pages.get(pages.goal)
    assert (own.status_code, "settings is []" in own.text) == (500, True)


def test_a_goal_is_shown_whole(open_pages: Open) -> None:
    """Contract with evidence, state, wakeups, turns, and what was spent."""
    pages = open_pages(
        "Write a.txt.\nIn one line.", deliverables=("a.txt",), checks=("test -s a.txt",), max_turns=3
    )
    worked(pages)
    shown = pages.page().text

    for text in (
        "Write a.txt.",
        "test -s a.txt",
        "by a command",
        "a.txt",
        "3 bytes",
        "port 80",
        "look again",
    ):
        assert text in shown
    assert "MAX_TURNS_EXCEEDED" in shown
    assert "Writing it <b>down</b>." in shown
    assert "write_file" in shown
    assert f"goalmode run {pages.world.goal.uid}" in shown
    assert {"1.1", "1.2", "1.3"} <= set(shown.split())


def test_a_question_has_a_form(open_pages: Open) -> None:
    """With its reason, its options, and room for other words."""
    pages = open_pages()
    ask(pages, "Which port?")
    shown = pages.page()

    assert "Which port?" in shown.text
    assert "Only you know." in shown.text
    assert f"{pages.goal}/answer" in {f.get("action") for f in shown.all("form")}
    assert "Q1" in [f.get("value") for f in shown.all("input") if f.get("name") == "question"]
    assert [f["name"] for f in shown.all("textarea")] == ["text", "text"]


def test_every_field_has_a_label(open_pages: Open) -> None:
    """For those who hear the page: each field that is shown is named, and each id is there once."""
    limits = Limits(turns=5, tokens=100_000, wakeups=3, active_seconds=900, cost_micro=7_000_000)
    pages = open_pages(profile=PRICED, limits=limits)
    ask(pages, "Which port?")
    for shown in (pages.page(), pages.read("/"), pages.read(f"{pages.keys.base}/")):
        labelled = {label.get("for") for label in shown.all("label")}
        fields = [f for f in (*shown.all("input"), *shown.all("textarea")) if f.get("type") != "hidden"]
        assert {f.get("id") for f in fields if f.get("type") != "radio"} <= labelled
        ids = [attrs["id"] for _, attrs in shown.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert len(shown.all("h1")) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_texts_are_shown_as_text(open_pages: Open, lang: str) -> None:
    """Markup, template syntax, ANSI and marks that reorder: in every stored text and on every page (injection)."""
    pages = open_pages(HOSTILE, deliverables=("a.txt",), requirements=(HOSTILE.replace("\x00", ""),))
    pages.world.wake(
        [
            replace(call("write_file", path="a.txt", content=HOSTILE), text=HOSTILE),
            call(
                "update_working_checkpoint",
                key_info=HOSTILE,
                summary=HOSTILE,
                pending=[HOSTILE],
                done=[HOSTILE],
            ),
            replace(call("read_file", path="a.txt"), text=HOSTILE),
            call("shell", command=f"echo '{SECRET}'"),
            call(
                "complete",
                status="needs_user_input",
                summary=HOSTILE,
                missing_info=HOSTILE,
                why_no_default=HOSTILE,
            ),
        ]
    )
    pages.do("note", text=HOSTILE)
    paths = [f"{pages.keys.base}/", pages.goal, f"{pages.goal}/turns", f"{pages.goal}/abort"]
    paths += [f"{pages.goal}/turns/1/{n}" for n in (1, 2, 3, 4, 5)]
    paths += [f"{pages.goal}/contexts/1", f"{pages.goal}/contexts/1?diff=1"]
    for path in paths:
        html = pages.get(path, accept_language=lang).text
        shown = Read(html)
        assert "alert(1)" not in "".join(str(a) for a in shown.all("script"))
        assert {"img", "b"} & shown.names() == set(), path
        assert not set("\x1b\x00\u202e\u2066\u2028") & set(html), path
        assert "49" not in shown.text.split("7*7", 1)[-1][:4]
        assert SECRET not in html
    assert "<script>alert(1)</script>" in pages.page().text
    assert "{{ 7*7 }}" in pages.page().text
    assert "\\x1b[31mred" in pages.page().text
    assert "\\u202egnp.exe" in pages.page().text


def test_a_long_objective_is_folded(open_pages: Open) -> None:
    """Its beginning is the title; the whole is one key away."""
    pages = open_pages("word " * 20_000)
    shown = pages.page()

    assert shown.text.count("word word") > 1000
    assert "The whole objective" in shown.text


def test_a_turn_is_shown_whole(open_pages: Open) -> None:
    """What was said, the arguments, the result; of what is very long, head and tail with what is left out."""
    pages = open_pages(max_turns=2)
    long = "x" * (turns.SHOWN + 10) + "END"
    pages.world.wake([replace(call("write_file", path="a.txt", content=long), text="I write."), SAVE])
    shown = pages.read(f"{pages.goal}/turns/1/1").text

    assert "I write." in shown
    assert "write_file" in shown
    assert "END" in shown
    assert "characters are left out here" in shown
    assert len(shown) < turns.SHOWN * 2


@pytest.mark.parametrize("path", ["turns/1/2", "turns/2/1", "contexts/2", "contexts/1?diff=9"])
def test_what_is_not_there_is_said(open_pages: Open, path: str) -> None:
    """One line that names what would be right, and no trace of a traceback."""
    pages = open_pages(max_turns=1)
    pages.world.wake([SAVE])
    response = pages.get(f"{pages.goal}/{path}")

    assert response.status_code == 400
    assert "is not valid" in response.text
    assert "Traceback" not in response.text


@pytest.mark.parametrize(
    "query",
    [
        "?page=0",
        "?page=-1",
        "?page=x",
        "?page=1e9",
        "?page=99999999999999999999",
        f"?page={'0' * 19}1{'9' * 20}",
        f"?page={'0' * 19}1{'9' * 5_000}",
        "?page=%C2%B2",
        "?page=<b>",
    ],
)
def test_a_page_that_is_no_number_is_refused(pages: Pages, query: str) -> None:
    """Not an empty page, and not an error of the database."""
    for path in (f"{pages.keys.base}/", f"{pages.goal}/turns"):
        response = pages.get(path + query)
        assert response.status_code == 400
        assert "page: " in response.text
        assert "<b>" not in response.text


def test_an_unknown_goal_is_a_page(pages: Pages) -> None:
    """The beginning of an id is none: an address means one goal for good."""
    for uid in ("nope", pages.world.goal.uid[:6], "%3Cscript%3E", "..%2f.."):
        response = pages.get(f"{pages.keys.base}/goals/{uid}")
        assert response.status_code == 404
        assert "<script>" not in response.text


def test_turns_are_paged(open_pages: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest first, a page at a time, of the goal or of one wakeup."""
    monkeypatch.setattr(turns, "PER_PAGE", 3)
    pages = open_pages(max_turns=4)
    for _ in range(2):
        pages.world.wake([*(call("shell", command=f"echo {n}") for n in range(3)), SAVE])

    def numbers(query: str) -> list[str | None]:
        return [a.get("id") for a in pages.read(f"{pages.goal}/turns{query}").all("li") if a.get("id")]

    assert numbers("") == ["turn-2-4", "turn-2-3", "turn-2-2"]
    assert numbers("?page=2") == ["turn-2-1", "turn-1-4", "turn-1-3"]
    assert numbers("?page=3") == ["turn-1-2", "turn-1-1"]
    assert numbers("?page=4") == []
    assert numbers("?wakeup=1") == ["turn-1-4", "turn-1-3", "turn-1-2"]
    assert numbers("?wakeup=1&page=2") == ["turn-1-1"]
    second = pages.read(f"{pages.goal}/turns?wakeup=1&page=2")
    assert "?wakeup=1&page=1" in [a.get("href") for a in second.all("a")]


def test_contexts_are_shown_and_compared(open_pages: Open) -> None:
    """Exactly what the model saw, with the size of each section; and what another wakeup saw differently."""
    pages = open_pages("Write it.", max_turns=2)
    for key_info in ("first", "second"):
        saved = call("update_working_checkpoint", key_info=f"the {key_info} thing", next_steps=["go on"])
        pages.world.wake([call("list_files", path="."), saved])
    first = pages.read(f"{pages.goal}/contexts/1")
    second = pages.read(f"{pages.goal}/contexts/2")
    compared = pages.read(f"{pages.goal}/contexts/2?diff=1")

    assert "<objective" in first.text
    assert "Write it." in first.text
    assert ("the first thing" in first.text, "the first thing" in second.text) == (False, True)
    assert "From wakeup 1 to wakeup 2" in compared.text
    assert "the first thing" in compared.text
    assert "ins" in compared.names()
    assert f"{pages.goal}/contexts/2?diff=1#difference" in {a.get("href") for a in pages.page().all("a")}


def test_the_plots_get_figures(open_pages: Open) -> None:
    """One list a curve, oldest first."""
    pages = open_pages(max_turns=2)
    for _ in range(2):
        pages.world.wake([call("list_files", path="."), SAVE])
    series = json.loads(pages.get(f"{pages.goal}/wakeups.json").text)

    assert series == {"wakeup": [1, 2], "turns": [2, 2], "tokens": [240, 240], "dollars": [0.0, 0.0]}


def test_reading_changes_nothing(open_pages: Open) -> None:
    """B16: neither a row nor the store's file, while a wakeup runs elsewhere and its commits are beside the file."""
    pages = open_pages(deliverables=("a.txt",), max_turns=3)
    worked(pages)
    wake = pages.world.begin()
    file = pages.world.store.path
    assert file is None or Path(f"{file}-wal").stat().st_size
    before = stores.dump(pages.world.store.url), stores.content(pages.world.store.url)
    paths = ["", "/wakeups.json", "/turns", "/turns/1/1", "/contexts/1", "/contexts/2?diff=1", "/abort"]
    for path in (f"{pages.keys.base}/", *(pages.goal + path for path in paths)):
        assert pages.get(path).status_code == 200, path
    assert listen(pages, lambda it: "turn-1-3" in it.turns()).status == 200

    assert (stores.dump(pages.world.store.url), stores.content(pages.world.store.url)) == before
    assert "running" in pages.page().text
    wake.let_go()  # type: ignore[union-attr]


@pytest.mark.sqlite
def test_a_store_that_is_no_store_is_said(pages: Pages) -> None:
    """The page names the place and the cause, with the status of a service that is not there."""
    file = pages.world.store.path
    assert file is not None
    pages.world.store.close()
    file.write_bytes(b"not a database, but long enough to be read as one" * 100)
    response = pages.get(f"{pages.keys.base}/")

    assert response.status_code == 503
    assert str(file) in response.text


@pytest.mark.sqlite
@pytest.mark.parametrize("version", ["0001", "9999"])
def test_a_store_of_another_version_is_said(pages: Pages, version: str) -> None:
    """An older one is not migrated by looking, a newer one is refused: both are named, and the file is as it was."""
    url = pages.world.store.url
    stores.rows(url, f"UPDATE alembic_version SET version_num = '{version}'")
    before = stores.content(url)
    for response in (pages.get(f"{pages.keys.base}/"), pages.get(pages.goal)):
        assert response.status_code == 503
        assert version in response.text
        assert HEAD in response.text

    assert stores.content(url) == before


@pytest.mark.sqlite
def test_an_unknown_shape_in_the_history_hides_no_other_goal(open_pages: Open) -> None:
    """B144: the list marks the goal with the field; its page and its turns say the same in one line."""
    pages = open_pages(max_turns=3)
    worked(pages)
    create_goal(pages.world.store, GoalSpec("Another.", str(pages.world.workspace)))
    url = pages.world.store.url
    stores.rows(url, "UPDATE turns SET repairs = '5'")
    turns_page = pages.get(f"{pages.goal}/turns")
    assert (turns_page.status_code, "repairs is 5, a list" in turns_page.text) == (500, True)
    stores.rows(url, "UPDATE wakeups SET exit_facts = '[1]'")
    shown = pages.read(f"{pages.keys.base}/")

    assert ("unreadable" in shown.text, "Another." in shown.text) == (True, True)
    assert "exit_facts is [1]" in shown.text
    own = pages.get(pages.goal)
    assert (own.status_code, "exit_facts is [1]" in own.text) == (500, True)


@pytest.mark.sqlite
def test_another_store_in_its_place_is_noticed(open_pages: Open) -> None:
    """The store is kept open between requests, but only as long as it is the same file."""
    pages, other = open_pages("The first."), open_pages("The second.")
    assert "The first." in pages.read(f"{pages.keys.base}/").text
    file, second = pages.world.store.path, other.world.store.path
    assert file is not None
    assert second is not None
    for store in (pages.world.store, other.world.store):
        store.close()
    shutil.rmtree(file.parent)
    second.parent.rename(file.parent)

    assert "The second." in pages.read(f"{pages.keys.base}/").text
    shutil.rmtree(file.parent)
    assert "There are no goals yet" in pages.read(f"{pages.keys.base}/").text


def test_our_own_failure_is_one_line(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser gets the kind of error alone; the log gets where, without secrets and without the path's key."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"the key is {SECRET}")

    monkeypatch.setattr(goal_page.show, "show", fail)
    response = pages.get(pages.goal)

    assert response.status_code == 500
    assert "RuntimeError" in response.text
    assert SECRET not in response.text
    assert "Traceback" in caplog.text
    assert SECRET not in caplog.text
    assert pages.keys.room not in caplog.text


def test_secrets_that_are_stored_are_not_shown(open_pages: Open) -> None:
    """What was stored before its key was known is struck out where it is shown."""
    pages = open_pages(f"Use {SECRET} well.")
    edit_goal(pages.world.store, pages.world.now, objective=f"Use {SECRET} better.")

    for path in (f"{pages.keys.base}/", pages.goal, f"{pages.goal}/turns", f"{pages.goal}/abort"):
        text = pages.get(path).text
        assert SECRET not in text
        assert "Use [redacted]" in text or path.endswith("/turns") or "redacted" in text


def test_a_goal_may_name_a_key_of_its_own(pages: Pages) -> None:
    """Whoever opens the pages is told of each goal that is looked at, to learn what it must not show."""
    told: list[str] = []
    pages.stores = Stores(
        pages.world.store.url,
        redact=Redactor(),
        learn=lambda goal: told.append(goal.uid),
        clock=pages.world.clock,
    )
    with pages.stores.goal(pages.world.goal.uid):
        pass

    assert told == [pages.world.goal.uid]


def long_history(store: Store, goal: int, count: int) -> None:
    """So many turns, in wakeups of a hundred."""
    now = store.clock.now()
    wakeup = {
        "goal": goal, "owner": "x:1", "host_label": "x", "pid": 1, "pid_start": "1", "boot_id": "b", "lease_ms": 1,
        "revision": 1, "inbox_seen": 0, "exit_reason": "MAX_TURNS_EXCEEDED", "exit_detail": "", "exit_facts": {"v": 1},
        "turns": 100, "tokens": 12_000, "recoveries": 0, "rejections": 0, "progress": 1, "reserved_input": 0,
        "reserved_output": 0, "reserved_cost": 0, "settlement_attempts": 0, "started_at": now, "ended_at": now,
    }  # fmt: skip
    turn = {
        "purpose": "work", "state": "done", "stop_reason": StopReason.TOOL_USE, "stop_detail": "", "provider": "p",
        "model": "m", "movement": "pursue", "started_at": now, "ended_at": now, "input": 100, "cached": 0,
        "cache_write": 0, "output": 20, "estimated": False, "cost_micro": 5,
    }  # fmt: skip
    made = {
        "position": 0, "tool": "shell", "effect": "read", "args_sha": "a", "brief": "make", "idem_key": "",
        "outcome": "success", "exit_code": 0, "ms": 3, "result_sha": "r", "result_bytes": 9, "redactions": 0,
    }  # fmt: skip
    with store.writing() as connection:
        body = connection.execute(
            sa.insert(t.bodies)
            .values(codec="raw", raw_len=30, data=b'{"text":"said","calls":[]}')
            .returning(t.bodies.c.id)
        ).scalar_one()
        for number in range(1, count // 100 + 1):
            row = {**wakeup, "seq": number, "fence": number}
            at = connection.execute(sa.insert(t.wakeups).values(**row).returning(t.wakeups.c.id)).scalar_one()
            connection.execute(
                sa.insert(t.turns), [{**turn, "wakeup": at, "seq": n, "reply": body} for n in range(1, 101)]
            )
            ids = connection.execute(sa.select(t.turns.c.id).where(t.turns.c.wakeup == at)).scalars().all()
            connection.execute(
                sa.insert(t.tool_calls), [{**made, "wakeup": at, "turn": i, "call_id": f"c{i}"} for i in ids]
            )
        connection.execute(
            sa.update(t.goals).where(t.goals.c.id == goal).values(spent_turns=count, fence=count // 100)
        )


@pytest.mark.long
def test_ten_thousand_turns_do_not_slow_a_page(open_pages: Open) -> None:
    """A page reads a page of rows: the same pages cost about as much after 10,000 turns as after 100."""

    def seconds(pages: Pages) -> float:
        paths = [pages.goal, f"{pages.goal}/turns", f"{pages.goal}/turns/1/50", f"{pages.goal}/wakeups.json"]
        best = []
        for _ in range(3):
            begun = time.process_time()
            for path in (*paths, f"{pages.keys.base}/"):
                assert pages.get(path).status_code == 200
            best.append(time.process_time() - begun)
        return min(best)

    few, many = open_pages(), open_pages()
    long_history(few.world.store, few.world.goal.id, 100)
    long_history(many.world.store, many.world.goal.id, 10_000)
    short = seconds(few)

    assert seconds(many) < 3 * short + 0.1
    assert len(many.get(many.goal).text) < 2 * len(few.get(few.goal).text)
    assert "100.100" in many.page().text
    assert [a for a in many.page().all("a") if a.get("href") == "?wakeups=2#wakeups-title"]


def test_all_of_what_a_goal_can_be_has_a_page(open_pages: Open) -> None:
    """Every exit and every status is shown without a word missing; here those that the engine makes of replies."""
    pages = open_pages(max_recoveries=0)
    pages.world.wake([say("All done.")])
    several = calls(call("shell", command="exit 3"), call("read_file", path="none"), call("nope"))
    pages.world.wake([several, say("Ok.")])
    for lang in ("en", "zh"):
        shown = pages.page(accept_language=lang).text
        assert "EARLY_NO_TOOL" in shown
        assert "nope" in shown
    assert "exit 3" in pages.page().text
