"""One wakeup in GenericAgent's body: its loop's steps on one side, our loop's wishes, met at the relay, on the other.

What its loop shows of itself is the same in a checkout (hooks) and in PyPI's package (a handler and a client of ours):
a reply, each call before and after it runs, and the prompt before it is sent. Objects of its are changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from goalmode.domain.messages import (
    NO_USAGE,
    Assistant,
    Message,
    Reply,
    Request,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.text import sendable
from goalmode.errors import ModelError
from goalmode.loop.decide import CONTROLS
from goalmode.reflect import said
from goalmode.reflect.offer import Entry, entry_of, name_of, output_of
from goalmode.reflect.relay import Relay

NO_TOOL = "no_tool"
"""What its loop calls in place of a tool when a reply holds no call."""

MAX_BROKEN = 3
"""Blank or cut replies in a row that a model call may take, as in GenericAgent."""

BAD_JSON = "bad_json"
"""The call that its parser makes of one that it could not read."""

GO_ON = "\n"
"""A prompt that says nothing: without one, its loop would call the task done."""

_LEAKS = ("history", "raw_msgs")
"""Where its sessions keep the conversation of earlier tasks."""


@dataclass
class StepOutcome:
    """What a tool's method returns to its loop, which looks at these three."""

    data: Any
    next_prompt: str | None = None
    should_exit: bool = False


@dataclass
class Body:
    """The translation for one task.

    Args:
        usage: of the last model call, given what it said.
        now: for errors that name a time.
        ours: names of the tools that our loop runs. theirs: its own entries of the others.
        system: its own system prompt, which stands before ours.
        place: puts right what its prompts say of places.
    """

    relay: Relay
    usage: Callable[[str], Usage]
    now: Callable[[], datetime]
    ours: frozenset[str] = frozenset()
    theirs: Mapping[str, Entry] = field(default_factory=dict)
    system: str = ""
    place: Callable[[str], str] = str
    _upcoming: Request | None = None
    _written: tuple[Message, ...] = ()
    _ids: list[str] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _paid: Usage = NO_USAGE
    _broken: int = 0
    _retrying: bool = False

    # The prompt.

    def waits(self) -> bool:
        """Wait for the next request; False if there is none: the task must end."""
        self._upcoming = self._upcoming or self.relay.next()
        return self._upcoming is not None

    def write(self, client: Any, messages: list[dict[str, Any]], schema: list[Entry]) -> None:
        """Make what its loop is about to send say what the request says, and offer what the request offers."""
        request, self._upcoming = self._upcoming, None
        if request is None:  # The same call once more.
            _clean(messages[-1], self.place)
            return
        if _continues(request.messages, self._written):
            _clean(messages[-1], self.place)
            _add(messages[-1], request.messages[len(self._written) :])
        else:
            forget(client)
            messages[:] = _anew(self.place(self.system), request.messages)
        self._written = request.messages
        schema[:] = [self.theirs.get(spec.name) or entry_of(spec) for spec in request.tools]

    # The reply.

    def replied(self, response: Any) -> None:
        """A reply has come. One without a call is judged when its loop calls `no_tool`."""
        text = str(getattr(response, "content", "") or "")
        calls = list(getattr(response, "tool_calls", None) or ())
        thought = str(getattr(response, "thinking", "") or "")
        self._paid += self.usage(text + thought + "".join(call.function.arguments for call in calls))
        self._ids, self._retrying = [], False
        if not calls:
            return
        # As in our loop: a call that leads to an ending comes after its siblings.
        calls.sort(key=lambda call: call.function.name in CONTROLS)
        response.tool_calls[:] = calls
        if all(call.function.name == BAD_JSON for call in calls):
            self._answer(Reply(StopReason.MALFORMED_TOOL_CALL, sendable(text)))
            return
        made = tuple(
            ToolCall(self._new_id(call), call.function.name, call.function.arguments) for call in calls
        )
        self._ids = [call.id for call in made]
        self._answer(Reply(StopReason.TOOL_USE, sendable(text), made))

    def without_call(self, response: Any, ret: Any) -> None:
        """A reply without a call, and what GenericAgent makes of it. Ours is the last word in `ret`."""
        text = str(getattr(response, "content", "") or "")
        error = said.error_in(text, self.now())
        if error is not None:
            self._fail(error)
        elif said.is_truncated(text):
            self._answer(Reply(StopReason.MAX_TOKENS, sendable(text)))
        elif said.is_broken(text) and not str(getattr(response, "thinking", "") or "").strip():
            self._broken += 1
            self._retrying = self._broken < MAX_BROKEN
            if not self._retrying:
                why = f"{MAX_BROKEN} replies in a row were blank or cut off"
                self._fail(ModelError(ErrorKind.STREAM_CUT, why))
        else:
            self._answer(Reply(StopReason.END_TURN, sendable(text)))
        if self._retrying or self.waits():
            ret.should_exit, ret.next_prompt = False, ret.next_prompt or GO_ON
        else:
            ret.should_exit, ret.next_prompt = True, None

    @property
    def retrying(self) -> bool:
        """Whether its loop is asked to make the same model call again."""
        return self._retrying

    # The calls.

    def may_run(self, name: str, position: int) -> bool:
        """Whether its loop is to run the call at `position` of its reply; else `told` answers it."""
        return name not in self.ours and position < len(self._ids) and self.relay.may_run(self._ids[position])

    def told(self, position: int) -> StepOutcome:
        """The answer to a call that our loop answers: a mark, in the place of which `write` puts its result."""
        if self.relay.over or position >= len(self._ids):
            return StepOutcome(None, None, should_exit=True)
        return StepOutcome(_mark(self._ids[position]), GO_ON)

    def ran(self, position: int, ret: Any) -> None:
        """Its loop has run a call. A task does not end with a call, as it would for one without a prompt behind it."""
        if position < len(self._ids):
            self.relay.ran(self._ids[position], output_of(getattr(ret, "data", None)))
        if not ret.should_exit and not ret.next_prompt:
            ret.next_prompt = GO_ON

    def _new_id(self, call: Any) -> str:
        wanted = str(getattr(call, "id", "") or "")
        if not wanted.isascii() or not wanted.isprintable() or " " in wanted or wanted in self._used:
            wanted = ""
        wanted = wanted or f"ga_{len(self._used) + 1}"
        self._used.add(wanted)
        return wanted

    def _answer(self, reply: Reply) -> None:
        paid, self._paid, self._broken = self._paid, NO_USAGE, 0
        self.relay.answer(replace(reply, usage=paid, provider="genericagent"))

    def _fail(self, error: ModelError) -> None:
        """A failed call costs what was paid for the replies before it, if there were any."""
        paid, self._paid, tries = self._paid, NO_USAGE, self._broken
        self._broken = 0
        error.usage = paid if tries else None
        self.relay.answer(error)


def forget(client: Any) -> None:
    """Empty what its session, and its client, keep of a conversation."""
    backend = client.backend
    for name in _LEAKS:
        if hasattr(backend, name):
            setattr(backend, name, [])
    for name, empty in (("last_tools", ""), ("_pending_tool_ids", [])):
        if hasattr(client, name):
            setattr(client, name, empty)


def originals(schema: Sequence[Entry]) -> dict[str, Entry]:
    """Its own entries by their names."""
    return {name_of(entry): entry for entry in schema}


def _continues(messages: Sequence[Message], before: Sequence[Message]) -> bool:
    """Whether a conversation goes on, and has not begun anew."""
    return bool(before) and len(messages) >= len(before) and messages[:2] == before[:2]


def _clean(message: dict[str, Any], place: Callable[[str], str]) -> None:
    if isinstance(message.get("content"), str):
        message["content"] = place(said.unburdened(message["content"]))


def _add(message: dict[str, Any], news: Sequence[Message]) -> None:
    """Put our results in the place of their marks, and our prompts behind its own."""
    results = {_mark(one.call_id): one.text for one in news if isinstance(one, ToolResult)}
    content = _marked(str(message.get("content", "")), results)
    prompts = [one.text for one in news if isinstance(one, User)]
    message["content"] = "\n\n".join(filter(str.strip, (content, *prompts))) or GO_ON
    for result in message.get("tool_results", ()):
        result["content"] = _marked(str(result.get("content", "")), results)


def _anew(system: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """A conversation that begins with our context. Turns that are kept of the one before are told in it."""
    first, *rest = messages
    told = [text for one in rest if (text := _told(one))]
    return [
        {"role": "system", "content": f"{system}\n\n{first.text}".strip()},
        {"role": "user", "content": "\n\n".join(told)},
    ]


def _told(message: Message) -> str:
    match message:
        case Assistant(text, calls):
            lines = [text] if text else []
            return "\n".join(lines + [f"{call.name} {call.arguments}" for call in calls])
        case ToolResult(_, name, text):
            return f"{name} → {text}"
        case _:
            return message.text


def _mark(call_id: str) -> str:
    return f"[[goalmode:{call_id}]]"


def _marked(text: str, results: Mapping[str, str]) -> str:
    """In one go: a mark in a result is its own text."""
    marks = "|".join(map(re.escape, results))
    return re.sub(marks, lambda found: results[found.group()], text) if marks else text
