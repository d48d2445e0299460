"""What profiles have found so far and what was done about it, for the page: figures of then, on machines of then."""

from __future__ import annotations

from goalmode.bench.table import Grid

FOUND = Grid(
    "What the profile said, and what was done",
    ("what took the time", "before", "what was done", "after"),
    (
        ("a turn in all, window 12k", "13 × H", "all of what follows", "see above"),
        (
            "SQLAlchemy made each statement anew: 47 % of a turn",
            "13 × H",
            "statements of the hot path are made SQL once; one dialect and one cache a process",
            "7.3 × H",
        ),
        (
            "httpx's asynchronous client: 25 % of what was left",
            "2.2 ms a request",
            "aiohttp, without its tracing; streams are cut into events without a generator a layer",
            "0.45 ms",
        ),
        (
            "one transaction, without what it does",
            "0.12-0.14 ms",
            "it begins in the dialect, not in an engine's event; connections are kept at hand",
            "0.02 ms",
        ),
        (
            "the goal, read at every turn",
            "0.7 ms",
            "rows are compared as they are stored; only what changed is made values of again",
            "0.1 ms",
        ),
        (
            "a context rendered anew within a wakeup",
            "40 ms",
            "phrases are looked for only where their words occur; counts of a wakeup are remembered",
            "10 ms",
        ),
        ("one hop to a thread", "0.10 ms", "threads of our own, woken through a queue in C", "0.03 ms"),
        (
            "the request's JSON",
            "9 % of a turn",
            "old messages and the tools are encoded once a conversation",
            "2 %",
        ),
        (
            "a result, stored with its call and once more with its turn",
            "1.66 × P stored, 12 × P written",
            "stored with its call alone, where the model saw it whole",
            "1.24 × P, 10.8 × P",
        ),
        (
            "the vocabulary in memory",
            "85 MB",
            "its table is not kept a second time in Python",
            "58 MB",
        ),
    ),
    "Single figures are of a loop around that one thing, hot; within a turn each takes two or three times as long.",
)
