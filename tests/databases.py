"""The databases of the server that GOALMODE_TEST_STORE names: wiped and used again, since making one is slow."""

from __future__ import annotations

import itertools
import os
from typing import Any

import sqlalchemy as sa

SERVER = os.environ.get("GOALMODE_TEST_STORE", "")
"""A superuser's way to the server; empty where stores are files."""

_NUMBERS = itertools.count()

_SHAPE = """
    SELECT md5(string_agg(part, ' ' ORDER BY part)), (SELECT string_agg(version_num, ' ') FROM alembic_version),
        (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (
            SELECT oid FROM pg_database WHERE datname = current_database()))
    FROM (
        SELECT relname || relkind::text || relnatts AS part FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'
    ) parts
"""
"""What a test may have changed beside rows."""

_WIPE = """
    DO $$ DECLARE one record; BEGIN
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid();
        SET LOCAL session_replication_role = replica;
        FOR one IN SELECT tablename AS name FROM pg_tables
            WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        LOOP EXECUTE format('DELETE FROM %I', one.name); END LOOP;
        FOR one IN SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public'
        LOOP PERFORM setval(one.name::regclass, 1, false); END LOOP;
    END $$
"""

_open: dict[str, Any] = {}
"""One connection each, to look into them past the package."""


def connection(url: str) -> Any:
    import psycopg

    if url not in _open or _open[url].closed:
        _open[url] = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    return _open[url]


def forget() -> None:
    """Use none of them again: a server has been stopped, or has ended them."""
    while _open:
        _open.popitem()[1].close()


def create(source: str = "") -> str:
    """A new database, empty or like the one at `source`."""
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    template = sa.make_url(source).database if source else "template0"
    connection(SERVER).execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return sa.make_url(SERVER).set(database=name).render_as_string(hide_password=False)


def drop(url: str) -> None:
    if url in _open:
        _open.pop(url).close()
    connection(SERVER).execute(f'DROP DATABASE "{sa.make_url(url).database}" WITH (FORCE)')


class Pool:
    """Databases like one that has been migrated."""

    def __init__(self, template: str) -> None:
        self._template, self._free, self._lent = template, list[str](), list[str]()
        self._shape = _shape(template)
        connection(template).close()  # Nobody may be connected to what is copied.

    def lend(self) -> str:
        self._lent.append(self._free.pop() if self._free else create(self._template))
        return self._lent[-1]

    def take_back(self) -> None:
        """Wipe what was lent; what has another shape by now is of no more use."""
        while self._lent:
            url = self._lent.pop()
            if _shape(url) == self._shape:
                connection(url).execute(_WIPE)
                self._free.append(url)
            else:
                drop(url)

    def end(self) -> None:
        self.take_back()
        for url in (*self._free, self._template):
            drop(url)


def _shape(url: str) -> object:
    found = connection(url).execute("SELECT to_regclass('alembic_version')").fetchone()
    return connection(url).execute(_SHAPE).fetchone() if found[0] else None
