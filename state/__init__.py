"""The store: the only SQL of the package. SQLite in one file; nothing here that PostgreSQL could not run."""

from goalmode.state.store import Store

__all__ = ["Store"]
