"""What keeps a figure from what is aimed at, by its target's key. Told as long as it is not reached."""

from __future__ import annotations

from collections.abc import Mapping

LIMITS: Mapping[str, str] = {
    "cpu": (
        "H does one of each: one request that is not streamed, one parse, one commit. A turn here has two commits in "
        "which a dozen statements run, a streamed answer, three counts of tokens, a lock and a fence before its tool, "
        "four hops to a thread, and a tenth of a context rendered anew. The profile is flat, no part of it has more "
        "than a fifth: what is left is the number of steps. Each is run once in ten milliseconds, and takes two or "
        "three times what it takes in a loop. On a machine that others share, runs of one day gave 3.5 and 5.9: H fits "
        "into caches that a turn does not, so it gains more where nobody else is."
    ),
    "flat": "Indexes are deeper, and fewer of their pages are in the cache.",
    "stored": "A result is stored twice, with its call and in the conversation that can be replayed; both are packed.",
    "written": "Each of two commits writes its pages to the log, and a checkpoint writes them once more.",
    "resume": "Indexes of a larger store are deeper.",
    "tokens_180": (
        "A tooth keeps the last turns, and tells the saved state again: a smaller share of both would forget more."
    ),
    "tokens_1000": "As with 180 turns; of what is sent, nearly all is what is told again.",
    "prefix": "At each tooth a request begins anew behind the system prompt.",
    "help": "Half of it is click and the finding of files of our own modules.",
    "memory": (
        "o200k's vocabulary takes 85 MB while it is loaded and keeps 58, and asyncio, aiohttp, SQLAlchemy and SQLModel "
        "take 50 before anything is done: an exact count of tokens in the same process is more than the target allows. "
        "Without the vocabulary it would be about 70. Turns add nothing."
    ),
}
