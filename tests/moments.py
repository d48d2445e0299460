"""That something is over in a moment, however long the text it is done to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 3.0
"""Of the processor, for what takes a tenth of it on an idle machine."""


@contextmanager
def a_moment() -> Iterator[None]:
    """The block costs about as much as its text is long; where that was the square of it, it took minutes."""
    begun = time.process_time()
    yield
    spent = time.process_time() - begun
    assert spent < SECONDS, f"{spent:.1f} s of the processor"
