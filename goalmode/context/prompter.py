"""The prompts of one running wakeup, as the loop asks for them: by name and values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goalmode.context.rebuild import edited
from goalmode.context.render import Prompts, package_prompts
from goalmode.context.tokens import TokenCounter
from goalmode.domain.profile import ModelProfile


def prompter(
    lang: str, profile: ModelProfile, counter: TokenCounter, prompts: Prompts | None = None
) -> Callable[..., str]:
    """`prompt(name, **values)` for every name in `PROMPTS`, and `prompt("edited", goal=…)`.

    The returned function raises what `Prompts.prompt` raises.
    """
    chosen = prompts or package_prompts()

    def prompt(name: str, **values: Any) -> str:
        if name == "edited":
            return edited(values["goal"], profile, counter=counter, prompts=chosen)
        return chosen.prompt(name, lang, **values)

    return prompt
