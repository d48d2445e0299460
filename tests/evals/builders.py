"""A model with a scripted inclination, behind the strict provider, and cells made by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from goalmode.context.phrases import completion_phrases
from goalmode.context.render import package_prompts
from goalmode.domain.profile import ModelProfile
from goalmode.evals.design import Cell, Condition
from goalmode.evals.measure import Method, Way
from goalmode.evals.prompts import Prompt, Renderer
from goalmode.evals.results import Subject
from goalmode.testing.steps import Completion, Status, Step, text

PROFILE = ModelProfile("openai:m", "openai", "m", "http://127.0.0.1/v1", window=16_000, max_output=256)
SUBJECT = Subject("m", "openai", "http://127.0.0.1/v1", None, "auto", 10, 16)
ONE = Way(Method.LOGPROBS, 20, 1, 4)


def renderer(**changes: Any) -> Renderer:
    fields = {name: getattr(PROFILE, name) for name in PROFILE.__dataclass_fields__}
    return Renderer(ModelProfile(**{**fields, **changes}), package_prompts(), 16)


def cell(
    condition: str = "A", turns: int = 5, lang: str = "en", goal: str = "tides", *, tool_first: bool = True
) -> Cell:
    return Cell(Condition(condition), turns, lang, goal, tool_first)


def prompt(digest: str = "d1", tokens: int = 100) -> Prompt:
    return Prompt((), tokens, digest)


def listed(top: Sequence[tuple[str, float]], **more: Any) -> Completion:
    """An answer with the likeliest first tokens, as a server lists them."""
    entries = [{"token": token, "logprob": value, "bytes": None} for token, value in top]
    content = [{"token": entries[0]["token"], "logprob": entries[0]["logprob"], "top_logprobs": entries}]
    return text(entries[0]["token"], extra={"logprobs": {"content": content}}, **more)


def said_before(request: Mapping[str, Any]) -> int:
    """Claims of completion among the replies that the request replays."""
    replies = (m["content"] for m in request["messages"] if m["role"] == "assistant")
    return sum(completion_phrases(reply) for reply in replies)


def inclined(request: Mapping[str, Any], number: int) -> Step:
    """A model that each replayed claim makes a tenth less inclined to go on; it takes lists up to 20."""
    if request.get("top_logprobs", 0) > 20:
        return Status(
            400, {"error": {"message": "Invalid value for 'top_logprobs'", "type": "invalid_request_error"}}
        )
    tool = 1 / (1 + math.exp(-0.5 + 0.1 * said_before(request)))
    if "logprobs" not in request:
        return text("tool" if tool > 0.5 else "Final.")
    return listed([("tool", math.log(tool)), ("final", math.log(1 - tool)), ("The", -9.0)])
