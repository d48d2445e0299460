"""What a model is sent for one cell: the contexts are goalmode's own, rendered as for any goal, then the question."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from goalmode.context.rebuild import rebuild
from goalmode.context.render import Prompts
from goalmode.context.tokens import Remembered, TokenCounter, counter, request_tokens
from goalmode.domain.budget import Limits, Spent
from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import Deliverable
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import ContextPolicy, Control, Goal, GoalSettings
from goalmode.domain.messages import Assistant, Message, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.snapshot import Action, LastEnding, Observed, Snapshot
from goalmode.domain.work import Checkpoint, ItemKind, ItemStatus, WorkItem, WorkState
from goalmode.errors import ContextDoesNotFit
from goalmode.evals.design import DRAWS, Cell, Condition, draw_of
from goalmode.evals.wording import EvalGoal, Wording, wording

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The time in every context: the same cell is the same text whenever it is asked."""

ACTIONS = 10
"""Calls that the rebuilt context is rendered from at most."""

TOOLS = tuple(
    ToolSpec(name, "", {})
    for name in (
        "shell",
        "read_file",
        "write_file",
        "update_working_checkpoint",
        "verify",
        "complete",
        "wait",
    )
)
"""Named in the system prompt. No tool goes into a request: the answer is a word."""


class TooLong(Exception):
    """The cell does not fit into the model's window. The text says by how much."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent. `tokens` are counted by us; `digest` is of the whole text."""

    messages: tuple[Message, ...]
    tokens: int
    digest: str


@dataclass(frozen=True)
class Renderer:
    """Attributes:
    prompts: the templates, the user's own among them.
    answer_tokens: what a reply may take of the window.
    """

    profile: ModelProfile
    prompts: Prompts
    answer_tokens: int

    @cached_property
    def counter(self) -> TokenCounter:
        # Most texts stand in many cells.
        return Remembered(counter(self.profile.encoding, self.profile.token_factor))

    def prompt(self, cell: Cell) -> Prompt:
        """Everything that is sent for `cell`.

        Raises:
            TooLong: it does not fit into the model's window.
        """
        told = wording(cell.lang)
        snapshot = _snapshot(cell, told)
        try:
            rendered = rebuild(snapshot, self.profile, TOOLS, counter=self.counter, prompts=self.prompts)
        except ContextDoesNotFit as error:
            raise TooLong(str(error)) from None
        if _replies(rendered.messages) < len(snapshot.earlier) // 2:
            raise TooLong(f"{cell.turns} turns do not fit into its window of {self.profile.window} tokens")
        messages = _asking(rendered.messages, told.question(tool_first=cell.tool_first))
        tokens = request_tokens(self.counter, messages, ())
        if tokens + self.answer_tokens > self.profile.window:
            raise TooLong(f"{tokens} tokens do not fit into its window of {self.profile.window}")
        return Prompt(messages, tokens, _digest(messages))


def earlier(condition: Condition, turns: int, lang: str, goal: str) -> tuple[Message, ...]:
    """The conversation that is replayed: the user goes on asking, the model has answered."""
    if condition not in (Condition.REPLAY, Condition.CONTROL):
        return ()
    told = wording(lang)
    said: list[Message] = []
    for number in range(turns):
        turn = told.turns[_place(told, goal, number)]
        text = turn.completion if condition is Condition.REPLAY else turn.progress
        said += [User(told.go_on), Assistant(text)]
    return tuple(said)


def _place(told: Wording, goal: str, number: int) -> int:
    beginning = draw_of(told.lang, goal) * len(told.turns) // DRAWS
    return (beginning + number) % len(told.turns)


def _digest(messages: tuple[Message, ...]) -> str:
    told = [[type(message).__name__, message.text] for message in messages]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _replies(messages: tuple[Message, ...]) -> int:
    return sum(isinstance(message, Assistant) for message in messages)


def _asking(messages: tuple[Message, ...], question: str) -> tuple[Message, ...]:
    *before, last = messages
    assert isinstance(last, User), "every context ends in a message of the user"
    return (*before, User(f"{last.text}\n\n{question}"))


def _snapshot(cell: Cell, told: Wording) -> Snapshot:
    """The state that the context is rendered from: after `cell.turns` wakeups, each of one turn that was prose."""
    goal = next(known for known in told.goals if known.id == cell.goal)
    policy = ContextPolicy.REBUILD if cell.condition is Condition.REBUILT else ContextPolicy.REPLAY
    first = Snapshot(
        _goal(goal, cell.lang, policy, cell.turns),
        cell.turns + 1,
        NOW,
        observed=(Observed(goal.deliverable, exists=False),),
    )
    if policy is ContextPolicy.REPLAY:
        return replace(first, earlier=earlier(cell.condition, cell.turns, cell.lang, cell.goal))
    return first if cell.turns == 0 else _worked(first, goal, told, cell.turns)


def _worked(first: Snapshot, goal: EvalGoal, told: Wording, turns: int) -> Snapshot:
    """What goalmode has stored after so many turns. The last summary claims completion, as the replayed turns do."""
    saved = told.turns[_place(told, goal.id, turns - 1)].completion
    items = (
        WorkItem(1, ItemKind.DONE, ItemStatus.CLAIMED, goal.done, wakeup=1),
        WorkItem(2, ItemKind.PENDING, ItemStatus.OPEN, goal.pending, wakeup=1),
    )
    calls = (
        Action(n, 1, f"call_{n}", "shell", goal.commands[n % len(goal.commands)], CallOutcome.SUCCESS, 0)
        for n in range(max(1, turns - ACTIONS + 1), turns + 1)
    )
    return replace(
        first,
        work=WorkState(items, Checkpoint(summary=saved, next_steps=(goal.pending,), wakeup=turns)),
        actions=tuple(calls),
        last=LastEnding(turns, ExitReason.YIELDED, "", 1, NOW - timedelta(minutes=1)),
    )


def _goal(goal: EvalGoal, lang: str, policy: ContextPolicy, turns: int) -> Goal:
    return Goal(
        id=1,
        uid="eval",
        objective=goal.objective,
        workspace=".",
        revision=1,
        limits_revision=1,
        wrapped_limits_revision=0,
        requirements=(),
        deliverables=(Deliverable(goal.deliverable),),
        limits=Limits(),
        spent=Spent(turns=turns, wakeups=turns),
        settings=GoalSettings(lang=lang, policy=policy),
        status=GoalStatus.ACTIVE,
        status_detail="",
        control=Control.NONE,
        fence=1,
        inbox_head=0,
        next_wakeup_at=None,
        wake_reason="",
        host_label="",
        movement="pursue",
        streak=0,
        failures=0,
        created_at=NOW,
        updated_at=NOW,
    )
