"""A conversation as values. Wire formats translate these; nothing else in the package knows a provider's shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from goalmode.domain.signals import StopReason


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asked for.

    Attributes:
        id: unique within the wakeup (the host renames repeated and empty ids).
        name: as the model wrote it.
        arguments: the raw text; whether it is a JSON object is the tool plan's question.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class System:
    text: str


@dataclass(frozen=True, slots=True)
class User:
    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """`extra` holds what a provider wants back untouched (reasoning, signatures); only its own wire format reads it."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    name: str
    text: str


Message = System | User | Assistant | ToolResult


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, in one meaning for every provider.

    Attributes:
        input: the whole prompt, cache reads and cache writes included.
        cached: the part of `input` that was read from the provider's cache.
        cache_write: the part of `input` that was written to it.
        output: everything generated, reasoning included.
        estimated: True where the provider reported nothing usable and the host counted.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """Tokens charged: input - cached input + output, everywhere."""
        return self.input - self.cached + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.estimated or other.estimated,
        )


NO_USAGE = Usage()


class FixKind(StrEnum):
    """What was done to a conversation before it was sent. The words are stored."""

    CLOSED = "closed"
    """A call had no result, and got one that says so."""
    DROPPED = "dropped"
    MOVED = "moved"
    RENAMED = "renamed"
    EMPTIED = "emptied"
    """Arguments that were no JSON object went as an empty one."""
    FILLED = "filled"
    """A placeholder stands where a role must speak that did not."""
    MERGED = "merged"
    STRIPPED = "stripped"
    """Reasoning, or a signature on it, was left out."""
    RESENT = "resent"
    """The provider refused the conversation, and got it again in its plainest form."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One repair. `message` is a position in the conversation as it was before, from 0; `why` is one line."""

    kind: FixKind
    message: int
    why: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, with every word the provider used for its ending kept.

    Attributes:
        stop: the normalised ending, reconciled with the content.
        stop_raw: the provider's own word, None where it sent none.
        stop_native: the word of the server behind a gateway, where the gateway passes it on.
        stop_detail: a refusal's or filter's category and explanation.
        usage: of this call and of the attempts that began to stream and were cut before it.
        fixes: what had to be repaired in the conversation that it answers.
    """

    stop: StopReason
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    stop_raw: str | None = None
    stop_native: str | None = None
    stop_detail: str = ""
    provider: str = ""
    model: str = ""
    request_id: str | None = None
    http_status: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    fixes: tuple[Fix, ...] = ()

    def message(self) -> Assistant:
        return Assistant(self.text, self.calls, self.extra)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """One model call: the conversation so far, the tools on offer, the output allowance in tokens.

    `schema` is a JSON schema that the reply's text must obey, where the server can hold the model to it.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_output: int
    schema: Mapping[str, object] | None = None
