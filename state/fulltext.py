"""Full-text search over the memories: FTS5 of SQLite's; for PostgreSQL's see `tsvector.py`.

FTS5 takes a run of Chinese for one word. So each character is indexed as a word of its own, and a run is searched for
by its pairs of characters, each pair as a phrase: the more of a run a memory has, the better it matches.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import sqlalchemy as sa

from goalmode.state import tsvector

MAX_TERMS = 64
"""Words of a query that are searched for, the first ones."""

MAX_QUERY = 20_000
"""Characters of a query that are looked at."""

_EMPTY = re.compile(
    "an?|and|are|as|at|be|by|for|from|has|in|is|of|on|or|so|that|the|then|this|to|was|were|will|with"
)
"""Words that say nothing of what a text is about: by them every memory would fit every objective."""

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")


def index(connection: sa.Connection, memory: int, text: str) -> None:
    """Let the memory with this id be found by the words of `text`."""
    words = _CHARACTER.sub(lambda character: f" {character.group()} ", _plain(text))
    if connection.dialect.name == "postgresql":
        tsvector.index(connection, memory, words)
        return
    connection.execute(
        sa.text("INSERT INTO memories_fts(rowid, words) VALUES (:memory, :words)"),
        {"memory": memory, "words": words},
    )


def matching(connection: sa.Connection, workspace: str, query: str, limit: int) -> list[int]:
    """Ids of the memories that stand in a workspace and have any word of the query, the best match first.

    A query is data: each of its words is searched for as a quoted phrase, and nothing in it is the search's own syntax.
    """
    found = terms(query)
    if not found:
        return []
    if connection.dialect.name == "postgresql":
        return tsvector.matching(connection, workspace, found, limit)
    rows = connection.execute(
        sa.text(
            "SELECT memories.id FROM memories_fts JOIN memories ON memories.id = memories_fts.rowid"
            " WHERE memories_fts MATCH :query AND memories.workspace IN (:workspace, '')"
            " AND memories.superseded_by IS NULL AND memories.forgotten_at IS NULL"
            " ORDER BY bm25(memories_fts), memories.id DESC LIMIT :limit"
        ),
        {"query": " OR ".join(f'"{term}"' for term in found), "workspace": workspace, "limit": limit},
    )
    return [int(number) for number in rows.scalars()]


def terms(query: str) -> list[str]:
    """The distinct words of a query in a form without any sign, pairs of Chinese characters with a blank between."""
    found: dict[str, None] = {}
    for run in _RUN.findall(_plain(query[:MAX_QUERY])):
        if _CHARACTER.match(run) and len(run) > 1:
            found.update(dict.fromkeys(" ".join(pair) for pair in pairwise(run)))
        elif not _EMPTY.fullmatch(run):
            found[run] = None
        if len(found) >= MAX_TERMS:
            break
    return list(found)[:MAX_TERMS]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
