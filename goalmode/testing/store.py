"""A store that lives as long as a test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goalmode.domain.clock import Clock
from goalmode.domain.redact import Redactor
from goalmode.state.store import Store
from goalmode.testing.clock import ManualClock


@contextmanager
def temporary_store(*, clock: Clock | None = None, redact: Redactor | None = None) -> Iterator[Store]:
    """A new store in a directory of its own, both gone afterwards.

    Args:
        clock: a `ManualClock` if none is given.
        redact: what is struck out of everything stored.
    """
    with (
        tempfile.TemporaryDirectory(prefix="goalmode-") as directory,
        Store(str(Path(directory) / "goals.sqlite"), clock=clock or ManualClock(), redact=redact) as store,
    ):
        yield store
