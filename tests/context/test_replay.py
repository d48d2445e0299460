from dataclasses import replace

from goalmode.context.rebuild import Rendered, rebuild
from goalmode.context.replay import newest_turns, replayable
from goalmode.context.tokens import counter
from goalmode.domain.goal import ContextPolicy
from goalmode.domain.messages import Assistant, Message, System, ToolCall, ToolResult, User
from tests.context.builders import PROFILE, TOOLS, full

O200K = counter("o200k_base")
PROSE = "All tasks are done. 最终交付。"


def _turn(number: int, text: str = "") -> tuple[Message, ...]:
    call = ToolCall("call_1", "shell", f'{{"command": "echo {number}"}}')
    return Assistant(text, (call,)), ToolResult("call_1", "shell", f"out {number}")


def _render(earlier: tuple[Message, ...], window: int = 128_000) -> Rendered:
    snapshot = full(policy=ContextPolicy.REPLAY)
    profile = replace(PROFILE, window=window, max_output=1_000)
    return rebuild(replace(snapshot, earlier=earlier), profile, TOOLS, counter=O200K)


def test_replay_sends_the_earlier_messages_and_counts_their_prose() -> None:
    """The conversation comes back, ids told apart, with the same objective and instruction at its end (B01)."""
    earlier = (System("old"), User("begin"), *_turn(1), Assistant(""), *_turn(2, PROSE), User("go on"))
    rendered = _render(earlier)
    system, *middle, user = rendered.messages
    names = [s.name for s in rendered.sections]

    assert isinstance(system, System)
    assert [m.text for m in middle if isinstance(m, User)] == ["begin", "go on"]
    assert [m.call_id for m in middle if isinstance(m, ToolResult)] == ["earlier_1", "earlier_2"]
    assert [c.id for m in middle if isinstance(m, Assistant) for c in m.calls] == ["earlier_1", "earlier_2"]
    assert PROSE in rendered.text
    assert rendered.completion_phrases == 2
    assert isinstance(user, User)
    assert rendered.text.count("Write the report on tides.") == 1
    assert names == [
        "objective",
        "contract",
        "deliverables",
        "questions",
        "user_notes",
        "instruction",
        "time_and_budgets",
    ]


def test_replay_drops_whole_oldest_turns_beyond_the_window() -> None:
    """Beyond the window the oldest turns go, pairs stay together, and a user's message comes first."""
    earlier: tuple[Message, ...] = (User("begin"),)
    for number in range(400):
        earlier += _turn(number, "a thought about it " * 5)
    rendered = _render(earlier, window=8_000)
    middle = rendered.messages[1:-1]
    calls = [c.id for m in middle if isinstance(m, Assistant) for c in m.calls]

    assert rendered.tokens <= rendered.budget == 8_000 - 1_024
    assert isinstance(middle[0], User)
    assert middle[0].text.startswith("The messages that follow")
    assert "echo 399" in rendered.text
    assert "echo 0}" not in rendered.text
    assert calls == [m.call_id for m in middle if isinstance(m, ToolResult)]


def test_a_result_without_its_call_is_left_out() -> None:
    """No result is sent whose call is not."""
    assert replayable((ToolResult("c9", "shell", "x"), User("u"))) == (User("u"),)


def test_nothing_fits_and_nothing_is_kept() -> None:
    """Where not one turn fits, none is kept, and no opening stands alone."""
    assert newest_turns((User("u"), *_turn(1)), 5, lambda m: 10, User("opening")) == ()
