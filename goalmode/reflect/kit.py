"""What a wakeup in GenericAgent is run with: its model as a profile, its tools and ours, its keys struck out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goalmode.configured import user_prompts
from goalmode.context.tokens import counter
from goalmode.credentials import Credentials, credentials
from goalmode.domain.goal import Goal
from goalmode.domain.messages import Usage
from goalmode.domain.profile import ModelProfile
from goalmode.domain.sandbox import SandboxMode
from goalmode.errors import BadInput
from goalmode.reflect.offer import Entry, offer
from goalmode.reflect.relay import Relay
from goalmode.settings import Settings, resolve_profile
from goalmode.wiring import Workshop, workshop

CONTEXT_WINDOW = 28_000
"""What GenericAgent takes for a session that says nothing of it, in tokens; it counts three characters for one."""

SMALLEST = 12_000
"""A window that a context and some work fit into."""

SHARE = 0.75
"""Of its window that ours is: its own prompt and working memory take the rest. It cuts the head of a conversation that
has outgrown its window, and there stands our context, so that ours must begin anew before that."""


def profile_of(client: Any, settings: Settings) -> ModelProfile:
    """Its model as we know models. The address and the key stay its own."""
    backend = client.backend
    name = str(getattr(backend, "model", "") or getattr(backend, "default_model", "") or "unknown")
    known = resolve_profile(settings, f"openai:{name}")
    window = int(_window(backend) * SHARE)
    return replace(
        known,
        spec=f"genericagent:{name}",
        base_url="",
        api_key_env="",
        window=window,
        max_output=min(known.max_output, window // 4),
        context_tokens=min(known.context_tokens, window // 2),
    )


def kit(
    goal: Goal, client: Any, schema: Sequence[Entry], relay: Relay, settings: Settings, secrets: Sequence[str]
) -> Workshop:
    """What one wakeup is run with.

    Raises:
        BadInput: the goal, or a movement of its workflow, names a tool that does not exist; or it wants a sandbox,
            which GenericAgent has not.
    """
    profile, keys = profile_of(client, settings), tuple(secrets)
    made = workshop(
        _without_sandbox(goal),
        profile,
        environ=os.environ,
        known=credentials(settings, os.environ, profile) | Credentials(keys, kept=keys),
        prompts=user_prompts(settings),
    )
    return replace(made, registry=offer(made.registry, schema, relay, goal.settings.tools))


def _without_sandbox(goal: Goal) -> Goal:
    """Its tools run in its own process, so no sandbox is recorded, and none that was asked for is left out silently."""
    settings = goal.settings
    if settings.sandbox in (SandboxMode.BWRAP, SandboxMode.LANDLOCK) or not settings.network:
        wanted = settings.sandbox if settings.network else "--no-network"
        raise BadInput(
            "sandbox", wanted, "auto or none, with the network, in GenericAgent: it has no sandbox"
        )
    return replace(goal, settings=replace(settings, sandbox=SandboxMode.NONE.value))


def keys_of(clients: Sequence[Any]) -> tuple[str, ...]:
    """Its keys, so that no text that is stored holds one."""
    backends = [b for c in clients if (main := getattr(c, "backend", None)) for b in _sessions(main)]
    keys = [getattr(backend, "api_key", None) for backend in backends]
    return tuple(dict.fromkeys(key for key in keys if isinstance(key, str) and key))


class Meter:
    """What its model calls cost: as reported where it keeps that, else counted.

    Args:
        stats: where its sessions note the usage of their last call; None: they do not.
    """

    def __init__(self, client: Any, profile: ModelProfile, stats: dict[str, Any] | None) -> None:
        self._client, self._stats = client, stats
        self._count = counter(profile.encoding, profile.token_factor).count

    def reset(self) -> None:
        """A call is about to be made: what is noted is of another one."""
        for name in ("inp", "cached", "out"):
            if self._stats is not None:
                self._stats.pop(name, None)

    def usage(self, said: str) -> Usage:
        stats = self._stats or {}
        read, cached, output = (_number(stats.get(name)) for name in ("inp", "cached", "out"))
        estimated = not read or not output  # Of some wire formats it notes no output.
        return Usage(
            input=read or self._conversation(),
            cached=min(cached, read),
            output=output or self._count(said),
            estimated=estimated,
        )

    def _conversation(self) -> int:
        backend = self._client.backend
        history = getattr(backend, "history", None) or getattr(backend, "raw_msgs", None) or ()
        return sum(self._count(str(message)) for message in history)


def _sessions(backend: Any) -> list[Any]:
    """The sessions behind a backend that is several."""
    return [backend, *getattr(backend, "_sessions", ())]


def _window(backend: Any) -> int:
    found = getattr(backend, "context_win", None)
    return max(found, SMALLEST) if isinstance(found, int) and found > 0 else CONTEXT_WINDOW


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
