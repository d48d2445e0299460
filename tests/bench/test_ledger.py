"""The ledger: what repeats, what a request has in tokens, and what full replay would have cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from goalmode.bench.ledger import Ledger, repeated_prefix
from goalmode.domain.goal import ContextPolicy
from tests.bench.conftest import World


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"", b"abc", 0),
        (b"abc", b"abc", 3),
        (b"abc", b"abd", 2),
        (b"abc", b"abcdef", 3),
        (b"abcdef", b"abc", 3),
        (b"xbc", b"abc", 0),
        (b"a" * 5_000 + b"x" + b"b" * 99, b"a" * 5_000 + b"y" + b"b" * 99, 5_000),
    ],
)
def test_how_much_of_a_request_repeats_the_one_before(before: bytes, after: bytes, same: int) -> None:
    """Only the common beginning counts, whatever is the same behind it."""
    assert repeated_prefix(before, after) == same


def request(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages), "tools": []}).encode()


def turn(number: int, tool: str = "look") -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": '{"about": "records"}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": "found " * 50},
    ]


START = [{"role": "system", "content": "Work."}, {"role": "user", "content": "The goal."}]
PROMPT = {"role": "user", "content": "Save now."}


def test_a_conversation_that_only_grows_costs_what_its_replay_costs() -> None:
    """Where nothing is left out and nothing is asked to be saved, both sums are the same."""
    ledger = Ledger(100_000)
    for turns in range(6):
        ledger.note(request(*START, *(message for n in range(turns) for message in turn(n))))

    found = ledger.summary()
    assert found["tokens"] == found["replay_tokens"]
    assert found["requests"] == 6
    assert found["over"] == 0


def test_what_the_host_asks_to_be_saved_is_no_part_of_a_replay() -> None:
    """A prompt, the call that answers it and its result cost goalmode something, and the replay nothing."""
    plain, saving = Ledger(100_000), Ledger(100_000)
    first = [*START, *turn(1)]
    saved = [*first, PROMPT, *turn(2, "update_working_checkpoint")]
    for messages in (START, first, [*first, *turn(3)]):
        plain.note(request(*messages))
    for messages in (START, [*first, PROMPT], saved, [*saved, *turn(3)]):
        saving.note(request(*messages))

    assert saving.summary()["replay_tokens"] == plain.summary()["replay_tokens"]
    assert saving.summary()["tokens"] > plain.summary()["tokens"]


def test_a_request_above_its_bound_is_counted() -> None:
    """The bound itself is none."""
    size = Ledger(0).tokens(json.loads(request(*START)))
    at, above = Ledger(size), Ledger(size - 1)
    at.note(request(*START))
    above.note(request(*START))

    assert (at.summary()["over"], above.summary()["over"]) == (0, 1)


def test_what_is_cached_costs_a_tenth() -> None:
    """The second time a request is sent, all of it is in the cache."""
    ledger = Ledger(100_000)
    usage = [ledger.note(request(*START)) for _ in range(2)]

    tokens = usage[0]["prompt_tokens"]
    assert [one["prompt_tokens_details"]["cached_tokens"] for one in usage] == [0, tokens]
    assert ledger.summary()["cost"] == pytest.approx(1.1 * tokens)
    assert ledger.summary()["share"] == 1.0


def test_full_replay_is_counted_as_a_goal_that_replays_sends_it(world: Callable[..., World]) -> None:
    """The sum for a goal that is never replayed is held against one that really is."""
    replayed = world(bound=100_000, policy=ContextPolicy.REPLAY)
    replayed.take(12)

    found = replayed.ledger.summary()
    # It is asked for a handoff at the end of its quota, and it saves the facts once.
    handoff = found["largest"]
    assert found["tokens"] - handoff == pytest.approx(found["replay_tokens"], rel=0.08)
