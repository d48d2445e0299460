"""What each wire format, and each server that is stricter, demands of a conversation before it is encoded.

What a format only writes in its own way is no rule here, because its encoder does it to any conversation: neighbours of
one role in one message, results before texts, valid names, blank texts left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from goalmode.domain.messages import Assistant, Message
from goalmode.domain.profile import CallIds, ModelProfile, Protocol
from goalmode.model.wire import anthropic_blocks
from goalmode.model.wire.assembly import dicts
from goalmode.model.wire.openai_dialects import SHORT_ID


def _any_reply(reply: Assistant) -> bool:
    return True


def _none_broken(messages: Sequence[Message], ends: bool) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Rules:
    """What `goalmode.model.repair` holds a conversation to.

    Attributes:
        ids: which ids of calls are taken.
        new_id: how a call is named that cannot keep its id, a format of one number.
        bound: reasoning comes signed over all that stood before it; if that changes, the reasoning must go.
        blocks: the key in `Assistant.extra` of content that can stand for itself, without text or calls; else empty.
        broken: where the first reply is whose blocks cannot go back, given whether the last one is sent back paused.
        resumable: which replies may end a conversation, once they were paused.
        reasoning: whether any goes back.
        call_order: results in the order of their calls, not in any.
        one_user: messages of the user in a row become one.
        user_after_result: whether a user's message may directly follow a result.
    """

    ids: re.Pattern[str]
    new_id: str = "call_{}"
    bound: bool = False
    blocks: str = ""
    broken: Callable[[Sequence[Message], bool], int | None] = _none_broken
    resumable: Callable[[Assistant], bool] = _any_reply
    reasoning: bool = True
    call_order: bool = False
    one_user: bool = False
    user_after_result: bool = True

    def strictest(self) -> Rules:
        """What every server known takes: for one that refuses for a rule we do not know it to have."""
        return replace(
            self,
            ids=SHORT_ID,
            new_id=SHORT_NAME,
            reasoning=self.reasoning and not self.bound,
            call_order=True,
            one_user=True,
            user_after_result=False,
        )


def _inside_its_tools(reply: Assistant) -> bool:
    """Whether the provider's own tools, or a compaction, can have interrupted the reply."""
    kinds = {block.get("type") for block in dicts(reply.extra.get(anthropic_blocks.EXTRA))}
    return bool(kinds & {*anthropic_blocks.SERVER_CALLS, "compaction"})


def _half_kept(messages: Sequence[Message], ends: bool) -> int | None:
    """Where the first reply is that the provider would not take back in its own blocks."""
    turns: list[tuple[int, list[anthropic_blocks.Block]]] = []
    before: Message | None = None
    for n, message in enumerate(messages):
        if isinstance(message, Assistant):
            if not isinstance(before, Assistant):
                turns.append((n, []))
            turns[-1][1].extend(
                anthropic_blocks.kept(message) or [{"type": "tool_use"} for _ in message.calls]
            )
        before = message
    number = anthropic_blocks.refused([content for _, content in turns], last=ends)
    return None if number is None else turns[number][0]


SHORT_NAME = "call{:05}"

CHAT = Rules(ids=re.compile(r"[!-~]{1,256}"))
RESPONSES = Rules(ids=re.compile(r"[!-~]{1,64}"), bound=True)
ANTHROPIC = Rules(
    ids=re.compile(r"[A-Za-z0-9_-]{1,256}"),
    bound=True,
    blocks=anthropic_blocks.EXTRA,
    broken=_half_kept,
    resumable=_inside_its_tools,
)
MISTRAL = replace(CHAT, ids=SHORT_ID, new_id=SHORT_NAME)

_BY_WIRE: Mapping[str, Rules] = {"openai": CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC}


def rules_for(profile: ModelProfile) -> Rules:
    """The rules of the server that `profile` describes."""
    if profile.protocol is Protocol.JSON:
        return CHAT  # calls and results travel as text
    rules = _BY_WIRE[profile.wire]
    return replace(rules, ids=SHORT_ID, new_id=SHORT_NAME) if profile.call_ids is CallIds.MISTRAL else rules
