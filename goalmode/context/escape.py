"""Text of users, models and tools as data inside the rendered context.

The context is a row of tagged sections: `<objective> … </objective>`. Data stays literal, with these exceptions:

- Control and bidirectional characters become visible escapes (`goalmode.domain.text.safe`); CR LF becomes LF.
- The `<` of text that looks like one of the sections' tags is written `&lt;`: data can neither end a section nor
  begin one.
- In lists, the lines of an item after its first are indented: data cannot begin an item.
- Paths and command lines are shown on one line, their newlines as `\\n`.
"""

from __future__ import annotations

import re

from goalmode.domain.text import one_line, safe

SECTIONS = (
    "objective",
    "contract",
    "deliverables",
    "key_info",
    "progress_summary",
    "next_steps",
    "established",
    "pending_verification",
    "failed_approaches",
    "obstacles",
    "recent_actions",
    "questions",
    "user_notes",
    "long_term_memory",
    "last_wakeup",
    "instruction",
    "time_and_budgets",
)
"""Every section of a context, in the order in which they are rendered: what changes least comes first."""

_TAG = re.compile(rf"<(?=\s*(?:/\s*)?(?:{'|'.join(SECTIONS)})\b)", re.IGNORECASE)


def block(text: str) -> str:
    """`text` as lines of its own between a section's tags."""
    return _TAG.sub("&lt;", safe(text.replace("\r\n", "\n"))).strip("\n")


def item(text: str) -> str:
    """`text` as an item of a list: its further lines are indented."""
    return block(text.strip()).replace("\n", "\n    ")


def line(text: str, limit: int = 0) -> str:
    """`text` on one line, cut to `limit` characters (0: not cut)."""
    return _TAG.sub("&lt;", one_line(text, limit))
