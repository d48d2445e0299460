"""A conversation that grows is sent as if it were encoded anew each time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, User
from goalmode.domain.profile import CallIds, ModelProfile
from goalmode.model import strict_json
from goalmode.model.wire import openai_messages
from goalmode.model.wire.grown import Grown
from goalmode.model.wire.openai_dialects import adapted
from goalmode.model.wire.openai_messages import messages

PLAIN = ModelProfile("m", "openai", "some-model", "http://127.0.0.1/v1")
TEXTS = st.sampled_from(["", " ", "A", "文", 'a "quote"', "\ud800", "\x00"])
IDS = st.sampled_from(["c", "call_2", "abcdefghi"])
MESSAGES = st.one_of(
    st.builds(User, TEXTS),
    st.builds(Assistant, TEXTS),
    st.builds(System, TEXTS),
    st.builds(
        lambda text, id_, thought: Assistant(
            text, (ToolCall(id_, "look", "{}"),), {"reasoning_content": thought}
        ),
        TEXTS,
        IDS,
        TEXTS,
    ),
    st.builds(lambda text, id_: ToolResult(id_, "look", text), TEXTS, IDS),
)
PROFILES = st.sampled_from(
    [
        PLAIN,
        replace(PLAIN, replay_reasoning=True),
        replace(PLAIN, call_ids=CallIds.MISTRAL),
        replace(PLAIN, user_after_tool=False),
        replace(PLAIN, call_ids=CallIds.MISTRAL, user_after_tool=False),
    ]
)


@given(PROFILES, st.lists(st.tuples(st.booleans(), st.lists(MESSAGES, max_size=4)), max_size=6))
def test_what_is_sent_does_not_depend_on_what_was_sent(
    profile: ModelProfile, steps: list[tuple[bool, list[Message]]]
) -> None:
    """Whatever is added, and also where the conversation begins anew."""
    grown = openai_messages.conversation(profile)
    conversation: list[Message] = []
    for anew, added in steps:
        conversation = [*([] if anew else conversation), *added]
        request = Request(tuple(conversation), (), 100)

        sent = openai_messages.body(request, profile, grown)

        whole = messages(request.messages, reasoning=profile.replay_reasoning)
        assert b',"messages":%s,' % strict_json.encoded(adapted(whole, profile)) in sent


def test_what_was_sent_before_is_not_encoded_again() -> None:
    """Only the new messages are translated, and a user's message that another one may join."""
    seen: list[int] = []

    def translate(part: Sequence[Message]) -> list[str]:
        seen.append(len(part))
        return [str(message) for message in part]

    grown = Grown(translate, lambda specs: specs, by_parts=True)
    conversation: list[Message] = [System("S"), User("U")]
    for number in range(3):
        assert len(json.loads(b"[%s]" % grown.items(conversation))) == len(conversation)
        conversation += [Assistant(f"A{number}"), User("Go on.")]

    assert seen == [1, 1, 2, 1, 2, 1]
