"""The store: the only SQL of the package, the same for a file of SQLite's and for a PostgreSQL server."""

from goalmode.state.store import Store

__all__ = ["Store"]
