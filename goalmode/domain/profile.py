"""What is known of a model: where it is, how large its window is, which protocol it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from goalmode.domain.cost import Price


class CallIds(StrEnum):
    PLAIN = "plain"
    """Ids go back as they came."""
    MISTRAL = "mistral"
    """Nine letters and digits: nothing else is taken."""


class Protocol(StrEnum):
    NATIVE = "native"
    """Tool calls in the wire format's own shape."""
    JSON = "json"
    """One JSON object a reply, for models that cannot call tools natively."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One model, as named by the user's `goalmode.toml` or on the command line.

    Attributes:
        spec: what the user wrote: `openai:NAME`, or the name of a profile in `goalmode.toml`.
        wire: the wire format: `openai` (chat completions), `openai-responses` or `anthropic`.
        name: the model's name as the provider knows it.
        base_url: up to and including the version, without a trailing slash: `https://api.openai.com/v1`.
        api_key_env: the environment variable that holds the key; the key itself is never stored.
        window: the model's context window, in tokens: input and output together.
        max_output: the output allowance of one call, in tokens.
        context_tokens: the bound on a wakeup's first request, in tokens.
        protocol: native tool calls, or the JSON action protocol.
        encoding: the tiktoken encoding to count with; empty where it is unknown (o200k times a safety factor is used).
        token_factor: real tokens per counted token; above 1 for a tokenizer we do not have.
        timeout_seconds: silence on the wire after which a call has failed.
        temperature: None leaves it to the server.
        replay_reasoning: send `reasoning_content` back, also an empty one beside tool calls (DeepSeek and Kimi with
            thinking refuse a conversation without it).
        silent_truncation: the server drops the head of a prompt that is too long and says nothing (Ollama); `window`
            must then be its `num_ctx`.
        call_ids: which ids of tool calls the server takes.
        user_after_tool: whether a user message may directly follow a tool's result (Mistral: no).
        price: of its tokens; None where it is not known, and then no cost limit can hold.
    """

    spec: str
    wire: str
    name: str
    base_url: str
    api_key_env: str = ""
    window: int = 128_000
    max_output: int = 8_192
    context_tokens: int = 16_000
    protocol: Protocol = Protocol.NATIVE
    encoding: str = "o200k_base"
    token_factor: float = 1.0
    timeout_seconds: float = 300.0
    temperature: float | None = None
    replay_reasoning: bool = False
    silent_truncation: bool = False
    call_ids: CallIds = CallIds.PLAIN
    user_after_tool: bool = True
    price: Price | None = None
