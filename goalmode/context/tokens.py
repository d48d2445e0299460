"""How many tokens is a text? Counted with a vendored vocabulary: never a request, never a cache to fill.

The vocabulary takes about 0.5 s and 85 MB to load, of which 58 MB stay: once a process, at the first count.
`UpperBound` never needs it and `fits` only at times: a token is at least one byte.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import zlib
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from goalmode.domain.messages import Assistant, Message, System, ToolResult, ToolSpec, User
from goalmode.errors import ConfigError, GoalmodeError

if TYPE_CHECKING:
    import tiktoken

MESSAGE_OVERHEAD = 4
"""Tokens a message costs beside its text, for role and separators. OpenAI's cookbook counts 3 or 4."""

REPLY_OVERHEAD = 3
"""Tokens every request ends in, which prime the reply (OpenAI's cookbook). Charged once a conversation."""

CALL_OVERHEAD = 8
"""Tokens a tool call or a tool's schema costs beside its words: our margin over the id and the wrapping."""

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of the unpacked vocabulary: the hash that tiktoken itself expects of `o200k_base.tiktoken`."""

_FILE = "o200k_base.tiktoken.gz"
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_O200K = frozenset({"", "o200k_base", "o200k_harmony"})
_CHUNK = 16_384
"""Characters encoded at once: a run of a million blanks ends tiktoken in a panic that is no `Exception`."""

_REMEMBERED = 4_096
"""Texts whose tokens a counter remembers: about 0.6 MB, and far more texts than the contexts of a wakeup share."""

_LONGEST = 128
"""Bytes of the longest token in the vocabulary."""


class TokenCounter(Protocol):
    @property
    def factor(self) -> float:
        """Real tokens per counted token: 1.0 where the vocabulary is the model's own."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`, the factor included, rounded up."""
        ...


class O200k:
    """Counts with the o200k vocabulary, times `factor`."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def count(self, text: str) -> int:
        encode = _o200k().encode_ordinary
        return math.ceil(sum(len(encode(chunk)) for chunk in _chunks(text)) * self.factor)


class UpperBound:
    """Counts bytes: never fewer than the tokens of any byte-level vocabulary, and without loading one."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def count(self, text: str) -> int:
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) * self.factor)


class Remembered:
    """A counter that counts each text once. It knows texts by their digests, and its size is bounded."""

    def __init__(self, counter: TokenCounter) -> None:
        self.factor = counter.factor
        self._counter = counter
        self._known: dict[bytes, int] = {}
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)

    @classmethod
    def of(cls, counter: TokenCounter) -> Remembered:
        """`counter` itself where it remembers already."""
        return counter if isinstance(counter, cls) else cls(counter)

    def count(self, text: str) -> int:
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            known = self._counter.count(text)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()  # What is still used is soon known again.
            self._known[digest] = known
        return known

    def tools_tokens(self, specs: tuple[ToolSpec, ...]) -> int:
        """`tools_tokens`, whose JSON is made anew only where the tools are others than the last time."""
        if self._tools[0] != specs:
            self._tools = (specs, tools_tokens(self, specs))
        return self._tools[1]


def counter(encoding: str, factor: float = 1.0) -> TokenCounter:
    """The counter for a model profile. An empty `encoding` is an unknown one: o200k times `factor`.

    Raises:
        ConfigError: a vocabulary that is not shipped, or a factor that is not positive.
    """
    if encoding not in _O200K:
        raise ConfigError(
            f"encoding {encoding!r} is not shipped: use o200k_base, or leave it empty and set token_factor"
        )
    if not (factor > 0 and math.isfinite(factor)):
        raise ConfigError(f"token_factor must be a number above 0, not {factor!r}")
    return O200k(factor)


def fits(counter: TokenCounter, text: str, budget: int) -> bool:
    """Whether `text` costs at most `budget` tokens. Counts only where the bytes do not settle it."""
    most = UpperBound(counter.factor).count(text)
    if most <= budget:
        return True
    return most <= (budget + 1) * _LONGEST and counter.count(text) <= budget


def message_tokens(counter: TokenCounter, message: Message) -> int:
    """Tokens of one message, overhead included. Messages never change: the caller may store it."""
    match message:
        case System(text) | User(text):
            return MESSAGE_OVERHEAD + counter.count(text)
        case ToolResult(call_id, name, text):
            return MESSAGE_OVERHEAD + CALL_OVERHEAD + counter.count(f"{call_id} {name} {text}")
        case Assistant(text, calls, extra):
            total = MESSAGE_OVERHEAD + (counter.count(text) if text else 0)
            for call in calls:
                total += CALL_OVERHEAD + counter.count(f"{call.id} {call.name} {call.arguments}")
            if extra:
                total += counter.count(json.dumps(dict(extra), ensure_ascii=False, default=str))
            return total


def tools_tokens(counter: TokenCounter, specs: Iterable[ToolSpec]) -> int:
    """Tokens of the tools' schemas as JSON: an upper estimate, providers write them more tersely."""
    return sum(CALL_OVERHEAD + counter.count(_spec_json(spec)) for spec in specs)


def request_tokens(counter: TokenCounter, messages: Iterable[Message], specs: Iterable[ToolSpec]) -> int:
    """Tokens of a whole request."""
    told = sum(message_tokens(counter, message) for message in messages)
    return told + tools_tokens(counter, specs) + REPLY_OVERHEAD


def _spec_json(spec: ToolSpec) -> str:
    shape = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return json.dumps(shape, ensure_ascii=False, sort_keys=True, default=dict)


def _chunks(text: str) -> Iterable[str]:
    """`text` in pieces of at most `_CHUNK` characters, cut at a line's end or a blank where it can be."""
    start = 0
    while start < len(text):
        end = min(start + _CHUNK, len(text))
        if end < len(text):
            half = start + _CHUNK // 2
            cut = text.rfind("\n", half, end)
            if cut < 0:
                cut = text.rfind(" ", half, end)
            if cut > start:
                end = cut
        yield text[start:end]
        start = end


@cache
def _o200k() -> tiktoken.Encoding:
    import tiktoken

    packed = resources.files("goalmode.context").joinpath(_FILE).read_bytes()
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=_ranks(packed), special_tokens={}
    )
    # Only for a copy of it, which nobody makes; what encodes has a table of its own. It would hold 27 MB.
    encoding._mergeable_ranks = {}
    return encoding


def _ranks(packed: bytes) -> dict[bytes, int]:
    """The vocabulary out of its file.

    Raises:
        GoalmodeError: the file is damaged.
    """
    try:
        data = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise GoalmodeError(f"the vocabulary {_FILE} is damaged: {error}; install goalmode again") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise GoalmodeError(
            f"the vocabulary {_FILE} is damaged: sha256 {found}, not {SHA256}; install goalmode again"
        )
    decode = base64.b64decode
    pairs = (line.split() for line in data.splitlines())
    return {decode(token): int(rank) for token, rank in pairs}
