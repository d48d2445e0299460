"""Both languages say everything, and a page is in the one that is asked for."""

from __future__ import annotations

import re
import string
from enum import StrEnum
from pathlib import Path

import pytest

from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import CheckKind, RequirementStatus
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.questions import QuestionStatus
from goalmode.domain.wake import SourceStatus
from goalmode.domain.work import ItemKind, ItemStatus
from goalmode.inspection.listing import UNREADABLE
from goalmode.state.tables import Purpose
from goalmode.web import figures, goal, words
from goalmode.web.words import LANGUAGES, Words, chosen, table
from tests.web.conftest import Pages

ROOM = Path(words.__file__).parent
WORDS: dict[str, type[StrEnum]] = {
    "status": GoalStatus,
    "exit": ExitReason,
    "purpose": Purpose,
    "outcome": CallOutcome,
    "requirement": RequirementStatus,
    "kind": CheckKind,
    "item": ItemKind,
    "item_status": ItemStatus,
    "question": QuestionStatus,
    "source": SourceStatus,
}
"""Stored words that pages show, by the group of their words."""


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_the_tables_have_the_same_keys_and_values() -> None:
    """What is said in one language is said in the other, of the same things."""
    en, zh = table("en"), table("zh")

    assert set(en) == set(zh)
    assert {key for key in en if _fields(en[key]) != _fields(zh[key])} == set()
    assert all(text.strip() for text in (*en.values(), *zh.values()))


@pytest.mark.parametrize("group", WORDS)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_stored_word_has_words(lang: str, group: str) -> None:
    """A new exit reason, status or outcome has to be said in both languages."""
    assert {f"{group}.{member.value}" for member in WORDS[group]} <= set(table(lang))
    assert f"status.{UNREADABLE}" in table(lang)
    assert {f"did.{word}" for word in goal.DONE} <= set(table(lang))


def test_a_word_that_is_not_known_is_shown_as_it_is() -> None:
    """A newer goalmode may have stored it."""
    assert Words("en").of("status", "RESTING") == "RESTING"


def test_the_templates_use_no_other_words() -> None:
    """Every key in a template is in the tables: a missing one would break the page that needs it."""
    known, used = set(table("en")), set()
    for file in (ROOM / "templates").glob("*.html"):
        text = file.read_text("utf-8")
        used |= set(re.findall(r"""\bt\(\s*["']([a-z_.]+)["'](?!\s*~)""", text))
    for file in ROOM.glob("*.py"):
        used |= set()
        used |= set(re.findall(r'Refused\(\d+, "([a-z_.]+)"', file.read_text("utf-8")))

    assert used - known == set()
    assert len(used) > 80


@pytest.mark.parametrize(
    ("wanted", "kept", "accepted", "lang"),
    [
        (None, None, "", "en"),
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "en-GB,en;q=0.9,zh;q=0.8", "en"),
        (None, None, "fr,zh;q=0.5", "zh"),
        (None, None, "zh;q=0.2,en;q=0.7", "en"),
        (None, None, "zh;q=0", "en"),
        (None, None, "zh;q=x,*", "en"),
        (None, None, "ZH-hant", "zh"),
        (None, "zh", "en", "zh"),
        ("en", "zh", "zh", "en"),
        ("xx", "../en", "zh", "zh"),
        ("", "", ";;;,,", "en"),
    ],
)
def test_the_language_is_the_one_that_is_asked_for(
    wanted: str | None, kept: str | None, accepted: str, lang: str
) -> None:
    """The address before what was chosen earlier, before what the browser prefers; else English."""
    assert chosen(wanted, kept, accepted) == lang


@pytest.mark.parametrize(("lang", "title"), [("en", "Where it stands"), ("zh", "当前状况")])
def test_pages_are_in_their_language(pages: Pages, lang: str, title: str) -> None:
    """The words, and what the page says of itself; it is kept for the pages that follow."""
    response = pages.get(f"{pages.goal}?lang={lang}")

    assert title in response.text
    assert f'<html lang="{"zh-CN" if lang == "zh" else "en"}">' in response.text
    assert response.headers["content-language"] == lang
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"goalmode_lang={lang};")
    assert "HttpOnly" in cookie
    pages.cookies["goalmode_lang"] = lang
    assert title in pages.page().text
    assert title in pages.page(accept_language="fr").text


def test_a_language_that_is_none_is_let_be(pages: Pages) -> None:
    """`?lang=xx` shows the page all the same, and is not kept."""
    response = pages.get(f"{pages.goal}?lang=%3Cscript%3E")

    assert (response.status_code, response.headers["content-language"]) == (200, "en")
    assert "set-cookie" not in response.headers
    assert "<script>" not in response.text.replace("<script src", "")


def test_the_links_to_languages_keep_the_page(pages: Pages) -> None:
    """Whoever reads page 2 in one language gets page 2 in the other."""
    shown = pages.read(f"{pages.keys.base}/?page=2&lang=en")

    assert "?page=2&lang=zh" in {str(a.get("href")) for a in shown.all("a")}


def test_limits_have_names() -> None:
    """Each figure that a page shows beside a limit is named in both languages."""
    for lang in LANGUAGES:
        names = ("turns", "wakeups", "tokens", "active_seconds", "cost_micro", "deadline")
        assert {f"limit.{name}" for name in names} <= set(table(lang))
    assert figures.Spend("turns", "1").state == "fine"


@pytest.mark.parametrize(
    ("lang", "n", "said"),
    [
        ("en", "1", "1 call, 1 token"),
        ("en", "0", "0 calls, 0 tokens"),
        ("en", "1,200", "1,200 calls, 1,200 tokens"),
        ("zh", "1", "1 次调用，1 token"),
    ],
)
def test_one_is_not_many(lang: str, n: str, said: str) -> None:
    """A noun goes with its number where the language has it so; what is filled in is never looked at again."""
    assert Words(lang)("goal.calls", n=n, tokens=n) == said
    assert Words("en")("goal.bytes", n="{n:x|y}") == "{n:x|y} bytes"
