"""What single servers want of a chat conversation beyond the format, as the profile's flags say. Pure."""

from __future__ import annotations

import hashlib
import re
import string
from typing import Any

from goalmode.domain.profile import CallIds, ModelProfile

Messages = list[dict[str, Any]]

SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_ALPHABET = string.ascii_letters + string.digits

SILENCE = "…"
"""What stands for the reply between a tool's result and the user's next word: no word that the model never said."""


def is_plain(profile: ModelProfile) -> bool:
    """Whether the profile's server takes each message as it is, whatever stands beside it."""
    return profile.call_ids is not CallIds.MISTRAL and profile.user_after_tool


def adapted(messages: Messages, profile: ModelProfile) -> Messages:
    """The messages as the profile's server takes them; the given ones are left as they are."""
    if profile.call_ids is CallIds.MISTRAL:
        messages = _with_short_ids(messages)
    if not profile.user_after_tool:
        messages = _with_replies_between(messages)
    return messages


def _with_short_ids(messages: Messages) -> Messages:
    """Calls and results under the same nine letters and digits. A message keeps its ids as the conversation grows."""
    ids = _ShortIds()
    sent: Messages = []
    for message in messages:
        if calls := message.get("tool_calls"):
            message = {**message, "tool_calls": [{**call, "id": ids.of(call["id"])} for call in calls]}
        elif message["role"] == "tool":
            message = {**message, "tool_call_id": ids.of(message["tool_call_id"])}
        sent.append(message)
    return sent


class _ShortIds:
    """One conversation's ids: those of the server's own pattern stay, each other gets one that follows from it."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, id_: str) -> str:
        if id_ not in self._known:
            short, tries = id_, 0
            while not SHORT_ID.fullmatch(short) or short in self._taken:
                short, tries = _digest(f"{tries} {id_}"), tries + 1
            self._known[id_] = short
            self._taken.add(short)
        return self._known[id_]


def _digest(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])
    letters = []
    for _ in range(9):
        number, position = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[position])
    return "".join(letters)


def _with_replies_between(messages: Messages) -> Messages:
    sent: Messages = []
    for message in messages:
        if message["role"] == "user" and sent and sent[-1]["role"] == "tool":
            sent.append({"role": "assistant", "content": SILENCE})
        sent.append(message)
    return sent
