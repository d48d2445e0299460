"""A conversation that the provider refuses is repaired once and sent again, within one call.

What the loop sends keeps every rule that we know. A refusal says that this server has another one, or that it no longer
takes the reasoning it gave. Once an answer shows that the repair was what it wanted, later requests go that way too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from goalmode.domain.messages import NO_USAGE, Assistant, Fix, FixKind, Message, Reply, Request, Usage
from goalmode.domain.signals import ErrorKind
from goalmode.domain.text import one_line
from goalmode.errors import ModelError, charge, charged
from goalmode.model.port import Model, close
from goalmode.model.repair import repair
from goalmode.model.rules import Rules

MENDABLE = frozenset({ErrorKind.PROTOCOL, ErrorKind.SIGNATURE})


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What refusals have taught about a server.

    Attributes:
        strict: it wants conversations in their plainest form.
        refused: the `extra` of replies whose reasoning it did not take back, by identity.
    """

    strict: bool = False
    refused: Mapping[int, Mapping[str, object]] = field(default_factory=dict)

    def and_from(self, refusal: ModelError, messages: Sequence[Message]) -> _Learnt:
        if refusal.kind is ErrorKind.PROTOCOL:
            return replace(self, strict=True)
        signed = (m.extra for m in messages if isinstance(m, Assistant) and m.extra)
        return replace(self, refused={**self.refused, **{id(extra): extra for extra in signed}})


class Mending:
    """A model whose conversation is repaired once when the provider refuses it.

    The repairs are in the reply's `fixes`, each one once as a conversation grows. A repaired conversation that is
    refused too is the caller's error.
    """

    def __init__(self, inner: Model, rules: Rules) -> None:
        self._inner, self._rules = inner, rules
        self._learnt = _Learnt()
        self._told: tuple[Message, ...] = ()

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`."""
        sent, fixes = self._mended(request, self._learnt)
        try:
            reply = await self._inner.complete(sent)
        except ModelError as refusal:
            if refusal.kind not in MENDABLE:
                raise
            return await self._again(request, refusal)
        return replace(reply, fixes=self._untold(request, fixes)) if fixes else reply

    async def aclose(self) -> None:
        """Close the connections of the model that is asked."""
        await close(self._inner)

    async def _again(self, request: Request, refusal: ModelError) -> Reply:
        learnt = self._learnt.and_from(refusal, request.messages)
        sent, fixes = self._mended(request, learnt)
        try:
            reply = await self._inner.complete(sent)
        except ModelError as error:
            error.usage = _together(refusal.usage, error.usage)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if refusal.usage is not None:
                charge(cancelled, refusal.usage + (charged(cancelled) or NO_USAGE))
            raise
        self._learnt, self._told = learnt, request.messages
        why = Fix(FixKind.RESENT, len(request.messages) - 1, f"refused: {one_line(refusal.message, 300)}")
        usage = _together(refusal.usage, reply.usage) or NO_USAGE
        return replace(reply, usage=usage, fixes=(why, *fixes))

    def _untold(self, request: Request, fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
        """The fixes of messages that have come since the last one told; all of them in another conversation."""
        told = len(self._told)
        told = told if request.messages[:told] == self._told else 0
        self._told = request.messages
        return tuple(fix for fix in fixes if fix.message >= told)

    def _mended(self, request: Request, learnt: _Learnt) -> tuple[Request, tuple[Fix, ...]]:
        if learnt == _Learnt():
            return request, ()
        stripped: list[Fix] = []
        messages = [_without(m, n, learnt.refused, stripped) for n, m in enumerate(request.messages)]
        rules = self._rules.strictest() if learnt.strict else self._rules
        # Only a paused reply that is sent back ends a conversation with the model's own words.
        paused = bool(messages) and isinstance(messages[-1], Assistant)
        repaired = repair(messages, rules, resuming=paused)
        return replace(request, messages=repaired.messages), (*stripped, *repaired.fixes)


def _without(
    message: Message, at: int, refused: Mapping[int, Mapping[str, object]], fixes: list[Fix]
) -> Message:
    if not isinstance(message, Assistant) or id(message.extra) not in refused:
        return message
    fixes.append(Fix(FixKind.STRIPPED, at, "the provider did not take its reasoning back"))
    return replace(message, extra={})


def _together(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return one + other
