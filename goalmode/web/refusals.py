"""What is refused before any goal is looked at, as a key of the word tables."""

from __future__ import annotations


class Refused(Exception):
    """A request that is not served. `status` is HTTP's; the key's words are filled with `values`."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        self.status, self.key, self.values = status, key, values
        super().__init__(key)
