"""The work window of a wakeup: when the model is asked to save, and when its conversation begins anew.

Between two such teeth the conversation only grows at its end. What becomes of it at a tooth is
`goalmode.context.overflow`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from goalmode.context.overflow.sawtooth import WINDOW_RESERVE, kept_share
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import ContextPolicy, GoalSettings
from goalmode.domain.messages import NO_USAGE, ToolCall, User
from goalmode.domain.signals import ErrorKind
from goalmode.domain.text import head_tail, one_line
from goalmode.errors import ContextDoesNotFit, Stopped
from goalmode.loop.history import History
from goalmode.model.ids import used_ids, with_unique_ids
from goalmode.tools.workers import in_worker

if TYPE_CHECKING:
    from goalmode.loop.turn import Run

MAX_REBUILDS = 1
"""Times in one wakeup that a context is rendered anew because the provider calls the conversation too long."""

PROMPT_RESERVE = 256
"""Tokens of the work window that are left for the host's own prompts behind a conversation: a wrap-up, a handoff."""

MAX_NEWS = 20
"""Notes and answers that are told at once, the newest ones; the next context holds the others too."""

MAX_NEWS_TEXT = 4_000
"""Characters of a note or an answer, head and tail: as many as in a context."""

MAX_NEWS_ABOUT = 500
"""Characters of a question, or of a note that no longer stands."""

OVERFLOWS = frozenset({ErrorKind.CONTEXT_OVERFLOW, ErrorKind.REQUEST_TOO_LARGE})


@dataclass
class Window:
    """Where a wakeup stands in its work window.

    Attributes:
        limit: tokens that a request may have; None where the policy has no work window.
        asked: whether the model was asked for a checkpoint since the conversation began anew.
        forced: the provider refused the conversation as too long: it begins anew however small it is.
        left_behind: ids of the calls that the conversation no longer holds.
    """

    limit: int | None
    asked: bool = False
    forced: bool = False
    left_behind: set[str] = field(default_factory=set)

    def full(self, tokens: int) -> bool:
        return self.limit is not None and (self.forced or tokens > self.limit - PROMPT_RESERVE)

    def nearly_full(self, tokens: int) -> bool:
        """Whether four fifths are used."""
        return self.limit is not None and tokens * 5 >= self.limit * 4

    def next_tooth(self, tokens: int, context_tokens: int) -> int:
        """About how many tokens the request after the next will have if the conversation begins anew before it, else 0.

        Nothing of these will be in the provider's cache.
        """
        if self.limit is None or not self.nearly_full(tokens):
            return 0
        return min(self.limit, context_tokens + kept_share(self.limit, context_tokens))


async def make_room(run: Run) -> None:
    """Make the next request fit into the work window.

    Where there is room for them, what the user changed and said is told, and once a tooth a checkpoint is asked for.
    Where there is none, the conversation begins anew.

    Raises:
        Stopped: CONTEXT_OVERFLOW, not even a context that is rendered anew fits.
    """
    window, goal = run.window, run.wake.goal
    news = [] if run.history.pauses else _news(run)  # A paused turn goes back as it is.
    if window.full(run.tokens + sum(map(run.ports.count_message, news))):
        await begin_anew(run)
        return
    if news:
        run.revision = goal.revision
        run.say(*news)
        run.wake.hear()
    if window.asked or not window.nearly_full(run.tokens) or not run.history.unsaved:
        return
    if run.history.pauses or run.history.turn >= goal.settings.max_turns:
        return  # Neither into a paused turn; and a handoff asks for the same.
    request = run.prompt("checkpoint_request")
    if window.full(run.tokens + run.ports.count_message(request)):
        await begin_anew(run)
        return
    window.asked = True
    run.say(request)


def _news(run: Run) -> list[User]:
    """What the user did since the conversation was last told: the contract as it is now, then what was said."""
    goal, news = run.wake.goal, run.wake.news
    told = [] if goal.revision == run.revision else [User(run.ports.edited(goal))]
    if news:
        entries = tuple(
            (one.kind.value, head_tail(one.text, MAX_NEWS_TEXT), one_line(one.about, MAX_NEWS_ABOUT))
            for one in news[-MAX_NEWS:]
        )
        told.append(run.prompt("note", entries=entries, left_out=max(0, len(news) - MAX_NEWS)))
    return told


async def begin_anew(run: Run, *, keep_turns: bool = True) -> None:
    """Put a context that is rendered from the state as stored now in the conversation's place, and its last turns.

    Raises:
        Stopped: CONTEXT_OVERFLOW, what must be in the context does not fit.
    """
    window, profile, goal = run.window, run.ports.profile, run.wake.goal
    left = goal.settings.max_turns - run.history.turn
    if goal.limits.turns is not None:
        left = min(left, goal.limits.turns - goal.spent.turns)
    limit = profile.window - WINDOW_RESERVE if window.limit is None else window.limit - PROMPT_RESERVE
    before, called = run.tokens, used_ids(run.messages)
    run.usage = NO_USAGE  # Paid for; and of the new conversation nothing is in the provider's cache.
    rerender = partial(
        run.wake.rerender,
        run.messages[: run.settled] if keep_turns else [],
        limit=limit,
        turns_left=max(0, left),
        reserve_output=run.reserve.output,
    )
    try:
        await in_worker(rerender)
    except ContextDoesNotFit as error:
        raise Stopped(Exit(ExitReason.CONTEXT_OVERFLOW, str(error), error.facts)) from None
    run.begin()
    window.asked = window.forced = False
    window.left_behind |= called - used_ids(run.messages)
    run.emit("context_rerendered", turn=run.history.turn, tokens_before=before, context_tokens=run.tokens)


def may_shrink(history: History, settings: GoalSettings) -> bool:
    """Whether a conversation that the provider calls too long is rendered anew, once a wakeup."""
    return history.rebuilds < MAX_REBUILDS and settings.policy is not ContextPolicy.REPLAY


def shrink(run: Run) -> None:
    """The provider calls the conversation too long: it begins anew before the next request.

    The model's window is smaller than its profile says, or its tokens are more: from now on this wakeup's work window
    is at most three quarters of what was refused.
    """
    run.history = replace(run.history, rebuilds=run.history.rebuilds + 1)
    refused = run.tokens * 3 // 4
    run.window.limit = refused if run.window.limit is None else min(run.window.limit, refused)
    run.window.forced = True


def renamed(run: Run, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls with no id that one had whom the conversation no longer holds: an id names one call of the wakeup."""
    gone = run.window.left_behind
    if not any(call.id in gone for call in calls):
        return calls
    return with_unique_ids(calls, gone | used_ids(run.messages))
