"""Full-text search of PostgreSQL's, for `fulltext.py`: tsvector and its GIN index.

Words are found here and handed over as they are: what the server's own parser takes for a word depends on its locale,
and with some it knows no Chinese at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import sqlalchemy as sa

_WORD = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]")

MAX_WORD = 500
"""Characters of a word that are kept; the server refuses words of 2,046 bytes."""

MAX_POSITION = 16_383
"""Positions beyond are the server's last one."""


def index(connection: sa.Connection, memory: int, text: str) -> None:
    positions = enumerate(_words(text), 1)
    connection.execute(
        sa.text("INSERT INTO memories_fts(rowid, words) VALUES (:memory, CAST(:words AS tsvector))"),
        {"memory": memory, "words": " ".join(f"'{word}':{min(at, MAX_POSITION)}" for at, word in positions)},
    )


def matching(connection: sa.Connection, workspace: str, phrases: Iterable[str], limit: int) -> list[int]:
    """Ids of the memories that stand in a workspace and have any of the phrases, the best match first."""
    phrases = [" <-> ".join(f"'{word}'" for word in _words(phrase)) for phrase in phrases]
    query = " | ".join(f"({phrase})" for phrase in phrases if phrase)
    if not query:
        return []
    rows = connection.execute(
        sa.text(
            "SELECT memories.id FROM memories_fts JOIN memories ON memories.id = memories_fts.rowid"
            " WHERE memories_fts.words @@ CAST(:query AS tsquery) AND memories.workspace IN (:workspace, '')"
            " AND memories.superseded_by IS NULL AND memories.forgotten_at IS NULL"
            " ORDER BY ts_rank(memories_fts.words, CAST(:query AS tsquery)) DESC, memories.id DESC LIMIT :limit"
        ),
        {"query": query, "workspace": workspace, "limit": limit},
    )
    return [int(number) for number in rows.scalars()]


def _words(text: str) -> list[str]:
    """Without accents on Latin letters, as in SQLite's index."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return [word[:MAX_WORD] for word in _WORD.findall(unicodedata.normalize("NFC", bare))]
