"""What opens the pages: made anew for each process, held in memory only, and compared in constant time."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

BYTES = 32
"""Of randomness in each key."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one process.

    Attributes:
        token: signs in; whoever starts the process is shown it.
        session: the cookie's value, by which a browser that has signed in is known.
        csrf: in every form of the pages.
        room: the part of the path under which everything of the goals is. Browsers send a cookie to every port of a
            host, so it is bound to a path that no other server on this machine can guess.
    """

    token: str
    session: str
    csrf: str
    room: str

    @classmethod
    def new(cls) -> Keys:
        token, session, csrf = (secrets.token_hex(BYTES) for _ in range(3))
        return cls(token, session, csrf, room=secrets.token_hex(8))

    @property
    def cookie(self) -> str:
        """The cookie's name. With the room in it, no other server's cookie takes its place."""
        return f"goalmode_{self.room}"

    @property
    def base(self) -> str:
        """The path of the list of goals, without the slash at its end."""
        return f"/{self.room}"


def same(given: str, key: str) -> bool:
    """Whether what was given is the key, found out in the same time wherever they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode())
