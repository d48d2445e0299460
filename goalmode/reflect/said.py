"""GenericAgent's own words, and what they mean: errors that come as replies, cut replies, nudges, parts of prompts.

It has no other way to tell: an HTTP error is a reply that begins with a mark, a cut stream is one that ends with one.
"""

from __future__ import annotations

import re
from datetime import datetime

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model.classify import classify

_ERROR = re.compile(
    r"(?:!!!Error:|\[Error:|Error: (?=HTTP \d{3}|HTTPS?ConnectionPool|\('Connection|\w*(?:Error|Timeout|Exception)\b))"
    r"\s*(?P<text>.*)",
    re.DOTALL,
)
"""A reply that is an error. PyPI's package says `Error: …` where a checkout says `!!!Error: …`."""

_HTTP = re.compile(r"HTTP (?P<status>\d{3})(?P<waited> \(retry-after[^)]*\))?:?\s*(?P<body>.*)", re.DOTALL)
_BODY = re.compile(r".*?; body: (?P<body>.*)", re.DOTALL)
"""How PyPI's package appends what the server said."""

_KINDS = (
    (re.compile(r"\w*Timeout"), ErrorKind.TIMEOUT),
    (re.compile(r"\w*Connection|\('Connection|ChunkedEncoding"), ErrorKind.CONNECTION),
)
MAX_DETAIL = 1_000

_TRACE, _TRACE_END = re.compile(r"\n```\n(?=\w+: )"), "\n```"
"""Between these an exception has left its words, at the end of a task's text."""

_NUDGES = re.compile(r"(?<!\n)\n*\[DANGER\][^\n]*ask_user[^\n]*|2\. 请求用户协助。")
"""Orders to ask the user: an unattended goal would end there, for a question that nobody needs answered."""

_HISTORY = ("history", "earlier_context")
"""Tags of summaries of the turns so far, which repeat each closing word of theirs in every second request."""


def error_in(text: str, now: datetime) -> ModelError | None:
    """The failed model call that a reply without tool calls tells of, however long the server's words are."""
    found = _ERROR.match(text.lstrip())
    if found is None:
        return None
    said = found["text"].strip()
    http = _HTTP.match(said)
    if http is None:
        kind = next((kind for known, kind in _KINDS if known.match(said)), ErrorKind.SERVER)
        return ModelError(kind, said[:MAX_DETAIL])
    behind = _BODY.fullmatch(http["body"])
    failure = classify(int(http["status"]), behind["body"] if behind else http["body"], {}, now)
    told = failure.message[:MAX_DETAIL]
    return ModelError(failure.kind, told, status=int(http["status"]), raw_type=failure.raw_type)


def is_broken(text: str) -> bool:
    """Whether a reply without tool calls is blank, or was cut off while it came in: to be asked for again."""
    tail = text[-100:]
    lone = text.endswith("</summary>") and len(text) < 100
    return not text.strip() or lone or "[!!! 流异常中断" in tail or "!!!Error:" in tail


def is_truncated(text: str) -> bool:
    """Whether a reply was cut at the output limit."""
    return "max_tokens !!!]" in text[-100:] or "[!!! output truncated" in text[-100:]


def ending_of(text: str) -> Exit:
    """The ending of a task that came to its end without a word of its loop: an exception did it."""
    text = text.rstrip()
    found = _TRACE.search(text) if text.endswith(_TRACE_END) else None
    said = text[found.end() : -len(_TRACE_END)] if found else "its task ended without a reason"
    return Exit(ExitReason.ENGINE_ERROR, f"GenericAgent: {said[:500]}", {"error": said[:8_000]})


def unburdened(prompt: str) -> str:
    """A prompt of its loop without what works against an unattended goal: orders to ask, and summaries of turns."""
    prompt = _NUDGES.sub("", prompt)
    for tag in _HISTORY:
        prompt = _without(f"<{tag}>", f"</{tag}>", prompt)
    return prompt


def _without(opening: str, closing: str, text: str) -> str:
    """Without what stands between these, and without the rest of its last line if that is empty."""
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
        at += text.startswith("\n", at)
    return "".join((*kept, text[at:]))
