"""`remember`, `recall` and `start_long_term_update`: what outlives the goal. None of them does the goal's work."""

from __future__ import annotations

from typing import Annotated, Literal

from goalmode.domain.memory import MAX_MEMORY, Memory, MemoryKind
from goalmode.domain.text import sendable
from goalmode.errors import NotAllowed, ToolError
from goalmode.tools.longterm import LongTermMemory
from goalmode.tools.registry import ToolContext, tool

Kind = Literal["environment", "preference", "experience"]


@tool(effect="state", brief="kind")
def remember(
    context: ToolContext,
    kind: Annotated[
        Kind,
        "environment: how things are; preference: how the user wants them done; experience: what worked or did not.",
    ],
    text: Annotated[str, f"One fact that stands by itself, at most {MAX_MEMORY} characters."],
    replaces: Annotated[str | None, "Label of the outdated memory whose place it takes, such as M7."] = None,
) -> str:
    """Keep a fact for later goals in this workspace: one that an action confirmed and that holds beyond this goal."""
    if not text.strip():
        raise ToolError("remember: text is blank; store nothing if there is nothing to store")
    if len(text) > MAX_MEMORY:
        raise ToolError(
            f"remember: {len(text)} characters are too long, give at most {MAX_MEMORY}, or several memories"
        )
    memory = _memory(context, "remember")
    clean = context.redact(sendable(text)).strip()
    try:
        kept = memory.remember(MemoryKind(kind), clean, (replaces or "").strip())
    except NotAllowed as error:
        raise ToolError(f"remember: nothing is stored; {error}") from None
    if kept.known:
        return f"{kept.memory.label} says so already; nothing is stored twice"
    return f"stored as {kept.memory.label}"


@tool(effect="state")
def recall(context: ToolContext, query: Annotated[str, "Words, each looked for by itself."]) -> str:
    """Search what was remembered in this workspace. It may be out of date."""
    found = _memory(context, "recall").recall(sendable(query))
    return "\n".join(map(_line, found)) or "nothing is remembered that has one of these words"


@tool(effect="state")
def start_long_term_update(context: ToolContext) -> str:
    """Begin the long-term memory update: what should later goals know? A task of 15 or more turns is asked for it once,
    when it ends; from turn 10 on you may begin it yourself.
    """
    try:
        return _memory(context, "start_long_term_update").start_update()
    except NotAllowed as error:
        raise ToolError(f"start_long_term_update: {error}") from None


@tool(effect="state")
def remember_nothing(context: ToolContext) -> str:
    """Say that nothing, or nothing more, is worth remembering."""
    return "nothing is stored"


MEMORY_TOOLS = (remember, recall, start_long_term_update)
"""On offer unless the goal takes long-term memory away."""

REMEMBER = remember.name
NOTHING = remember_nothing
"""How a model that can only answer with a call says that it has none to make. Never on offer besides."""


def _memory(context: ToolContext, name: str) -> LongTermMemory:
    if context.memory is None:
        raise ToolError(f"{name}: there is no long-term memory here")
    return context.memory


def _line(memory: Memory) -> str:
    text = memory.text.replace("\n", "\n    ")
    source = f"goal {memory.goal}, {memory.created_at:%Y-%m-%d}"
    return f"{memory.label} [{memory.kind.value}, {source}] {text}"
