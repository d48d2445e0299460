"""How an OpenAI chat completion ended: the words of all servers that speak this format, and what they mean.

A word is believed as far as it goes. `FINISH` holds the values of `finish_reason` in this format. `ALARMS` holds words
of other providers that gateways pass on (`native_finish_reason`) or let through: such a word is heard when it says
that something went wrong, never when it says that all is well. Any other word is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from goalmode.domain.messages import Reply
from goalmode.domain.signals import StopReason

_S = StopReason

FINISH: Mapping[str, StopReason] = MappingProxyType(
    {
        # OpenAI
        "stop": _S.END_TURN,
        "length": _S.MAX_TOKENS,
        "tool_calls": _S.TOOL_USE,
        "function_call": _S.TOOL_USE,
        "content_filter": _S.CONTENT_FILTER,
        # DashScope says it as a string
        "null": _S.MISSING,
        # DeepSeek
        "insufficient_system_resource": _S.PROVIDER_ERROR,
        # GLM
        "sensitive": _S.CONTENT_FILTER,
        "network_error": _S.PROVIDER_ERROR,
        "model_context_window_exceeded": _S.CONTEXT_OVERFLOW,
        # Mistral
        "model_length": _S.CONTEXT_OVERFLOW,
        # vLLM, SGLang, watsonx, OpenRouter
        "abort": _S.CANCELLED,
        "cancelled": _S.CANCELLED,
        "repetition": _S.PROVIDER_ERROR,
        "time_limit": _S.PROVIDER_ERROR,
        "error": _S.PROVIDER_ERROR,
        # gateways in front of Anthropic
        "pause_turn": _S.PAUSE,
    }
)

_ORDINARY = frozenset({_S.END_TURN, _S.TOOL_USE, _S.MISSING})

ALARMS: Mapping[str, StopReason] = MappingProxyType(
    {word: stop for word, stop in FINISH.items() if stop not in _ORDINARY}
    | {
        # Anthropic
        "max_tokens": _S.MAX_TOKENS,
        "compaction": _S.PAUSE,
        "refusal": _S.REFUSAL,
        # OpenAI Responses
        "max_output_tokens": _S.MAX_TOKENS,
        "max_messages": _S.MAX_TOKENS,
        "failed": _S.PROVIDER_ERROR,
        # Gemini
        "safety": _S.CONTENT_FILTER,
        "recitation": _S.CONTENT_FILTER,
        "language": _S.CONTENT_FILTER,
        "blocklist": _S.CONTENT_FILTER,
        "prohibited_content": _S.CONTENT_FILTER,
        "spii": _S.CONTENT_FILTER,
        "image_safety": _S.CONTENT_FILTER,
        "image_prohibited_content": _S.CONTENT_FILTER,
        "image_recitation": _S.CONTENT_FILTER,
        "escalation": _S.CONTENT_FILTER,
        "model_armor": _S.CONTENT_FILTER,
        "malformed_function_call": _S.MALFORMED_TOOL_CALL,
        "unexpected_tool_call": _S.MALFORMED_TOOL_CALL,
        "too_many_tool_calls": _S.PROVIDER_ERROR,
        "malformed_response": _S.PROVIDER_ERROR,
        "missing_thought_signature": _S.PROVIDER_ERROR,
        "other": _S.PROVIDER_ERROR,
        "image_other": _S.PROVIDER_ERROR,
        "no_image": _S.PROVIDER_ERROR,
        "pup_limited_disabled": _S.PROVIDER_ERROR,
        "continuation": _S.PAUSE,
        "finish_reason_unspecified": _S.MISSING,
        # Bedrock
        "guardrail_intervened": _S.CONTENT_FILTER,
        "content_filtered": _S.CONTENT_FILTER,
        "malformed_tool_use": _S.MALFORMED_TOOL_CALL,
        "malformed_model_output": _S.PROVIDER_ERROR,
    }
)
"""Keys in lower case: Gemini shouts."""

_FAILED = frozenset({_S.MISSING, _S.PROVIDER_ERROR, _S.CANCELLED})


def read(raw: str | None, native: str | None) -> StopReason:
    """The meaning of `finish_reason` and `native_finish_reason`, before the content is looked at."""
    for word in (native, raw):
        if word and (alarm := ALARMS.get(word.lower())) is not None:
            return alarm
    return FINISH.get(raw, _S.UNKNOWN) if raw else _S.MISSING


def reconcile(
    stop: StopReason, *, calls: int, refused: bool, output_tokens: int | None, max_output: int
) -> StopReason:
    """The ending, once word and content are compared: they can disagree in every direction.

    Args:
        calls: how many tool calls the reply holds.
        refused: whether its `refusal` field holds text.
        output_tokens: as the provider reported them, None where it did not.
        max_output: the allowance that was sent.
    """
    if refused and stop not in _FAILED:
        return _S.REFUSAL
    if calls and stop in (_S.END_TURN, _S.STOP_SEQUENCE, _S.PAUSE):
        # A paused turn that asks for our tools waits for us, not for the provider.
        stop = _S.TOOL_USE
    if stop is not _S.TOOL_USE:
        return stop
    if not calls:
        return _S.MALFORMED_TOOL_CALL
    if output_tokens is not None and output_tokens >= max_output:
        # vLLM says `tool_calls` for a call that the output limit cut off.
        return _S.MAX_TOKENS
    return stop


_BRIM = 8
"""Tokens below the window within which a prompt has been filled up: Ollama leaves one for the reply."""


def without_truncation(reply: Reply, *, own_tokens: int, window: int) -> Reply:
    """The reply, or CONTEXT_OVERFLOW in its place where the server has silently dropped the head of the prompt.

    Ollama does so when a prompt is larger than `num_ctx`: it reports a prompt that fills the window to the brim, or one
    far smaller than what was sent. Whatever the model then said, it had not seen its task.

    Args:
        own_tokens: our own count of the request, JSON and all; less than half of it is no difference of tokenizers.
        window: `num_ctx` of the server.
    """
    usage = reply.usage
    if usage.estimated or (usage.input < window - _BRIM and 2 * usage.input >= own_tokens):
        return reply
    said = f"the server took {usage.input} of about {own_tokens} tokens of the prompt; its window is {window}"
    return replace(reply, stop=_S.CONTEXT_OVERFLOW, stop_detail=said)
