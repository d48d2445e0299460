"""The first messages of a wakeup, within its token budget."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from goalmode.context import replay, sections
from goalmode.context.cut import to_tokens
from goalmode.context.fit import Kept, Section, fit
from goalmode.context.movement import instruction
from goalmode.context.overflow import sawtooth
from goalmode.context.overflow.sawtooth import WINDOW_RESERVE, Outgrown
from goalmode.context.phrases import completion_phrases
from goalmode.context.render import Prompts, package_prompts
from goalmode.context.tokens import Remembered, TokenCounter, message_tokens, request_tokens
from goalmode.domain.goal import ContextPolicy, Goal
from goalmode.domain.messages import Assistant, Message, System, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.snapshot import Snapshot
from goalmode.errors import ContextDoesNotFit

OBJECTIVE_TOKENS = 12_000
"""Longest objective shown whole; also, no objective takes more than half of the room for sections.

A longer one is shown head and tail, and says so. It is stored whole in any case.
"""

REPLAY_SECTIONS = (
    "objective",
    "contract",
    "deliverables",
    "questions",
    "user_notes",
    "instruction",
    "time_and_budgets",
)
"""What the message that continues a replayed conversation holds: no saved state, the conversation stands for it."""

_REFITS = 4

_SHORT = 400
"""Characters of a section's items up to which its text is remembered."""


@dataclass(frozen=True, slots=True)
class RenderedSection:
    """One section as the model sees it. `left_out` counts items, `withheld` sentences that claimed completion."""

    name: str
    text: str
    tokens: int
    left_out: int = 0
    withheld: int = 0
    stable: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A context, ready to be stored and sent.

    Attributes:
        messages: the conversation a wakeup begins with.
        tokens: of the whole first request, the tools' schemas and the messages' overhead included.
        budget: what `tokens` was held to.
        text: what the model sees of the messages, as `goalmode context` prints it; ends in one newline.
        completion_phrases: closing phrases in what is shown of the model's own words: the sections that hold any
            (policy `rebuild`), or the replayed replies (policy `replay`). The user's words and ours do not count.
    """

    messages: tuple[Message, ...]
    sections: tuple[RenderedSection, ...]
    tokens: int
    budget: int
    text: str
    sha256: str
    completion_phrases: int


@dataclass(frozen=True, slots=True)
class _SectionView:
    """All that the template `section.j2` sees."""

    name: str
    items: tuple[str, ...]
    left_out: int
    withheld: int


def rebuild(
    snapshot: Snapshot,
    profile: ModelProfile,
    tools: Sequence[ToolSpec],
    *,
    counter: TokenCounter,
    prompts: Prompts | None = None,
    turns_left: int | None = None,
    outgrown: Outgrown | None = None,
) -> Rendered:
    """The context of the wakeup `snapshot.wakeup`, by the goal's policy.

    Args:
        turns_left: of the wakeup about to begin; None for its full quota, or what the goal's turn limit leaves of it.
        outgrown: the conversation of a running wakeup that begins anew: its last turns follow the context.

    Raises:
        ContextDoesNotFit: what must be there is larger than the budget.
        TemplateError: a template is broken.
    """
    frame = _Frame(
        snapshot.goal, profile, tuple(tools), Remembered.of(counter), prompts or package_prompts(), outgrown
    )
    left = _quota(snapshot.goal) if turns_left is None else turns_left
    if snapshot.goal.settings.policy is ContextPolicy.REPLAY and outgrown is None:
        return _replayed(snapshot, frame, left)
    return _rebuilt(snapshot, frame, left)


def edited(
    goal: Goal, profile: ModelProfile, *, counter: TokenCounter, prompts: Prompts | None = None
) -> str:
    """The prompt that tells a running wakeup of the user's changes: the new objective and contract, once."""
    frame = _Frame(goal, profile, (), Remembered.of(counter), prompts or package_prompts())
    words = frame.prompts.words(goal.settings.lang)
    made = sections.contract(goal, words, frame.cut_objective(frame.budget()))
    shown = (*made, sections.expected(goal, words))
    texts = [frame.section(Kept(s, s.items)).text for s in shown if s.items]
    return frame.prompts.frame("edited", goal.settings.lang, sections=texts, revision=goal.revision)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the sections, and what everything is measured with."""

    goal: Goal
    profile: ModelProfile
    tools: tuple[ToolSpec, ...]
    counter: Remembered
    prompts: Prompts
    outgrown: Outgrown | None = None

    def budget(self) -> int:
        own = self.goal.settings.context_tokens
        wanted = self.profile.context_tokens if own is None else own
        if self.outgrown is None:
            window = sawtooth.work_window(self.goal.settings, self.profile)
        else:
            window = self.outgrown.limit
        if window is not None:
            wanted = min(wanted, sawtooth.context_share(window))
        return min(wanted, self.profile.window - WINDOW_RESERVE)

    def system(self) -> System:
        names = frozenset(tool.name for tool in self.tools)
        until_budget = self.goal.settings.until_budget
        return System(
            self.prompts.frame("system", self.goal.settings.lang, tools=names, until_budget=until_budget)
        )

    def user(self, shown: Sequence[RenderedSection]) -> User:
        texts = [section.text for section in shown]
        text = self.prompts.frame("goal", self.goal.settings.lang, sections=texts)
        if self.outgrown is None:
            return User(text)
        calls = any(sawtooth.complete_turns(self.outgrown.messages))
        remark = self.prompts.frame("rerendered", self.goal.settings.lang, calls=calls)
        # Behind the state: what changes least comes first, so that a provider's cache holds across the teeth.
        return User(f"{text}\n\n{remark}")

    def section(self, kept: Kept) -> RenderedSection:
        section = kept.section
        view = _SectionView(section.name, kept.items, kept.left_out, section.withheld)
        is_short = sum(map(len, kept.items)) <= _SHORT
        frame = self.prompts.remembered if is_short else self.prompts.frame
        text = frame("section", self.goal.settings.lang, section=view)
        tokens = self.counter.count(text)
        return RenderedSection(section.name, text, tokens, kept.left_out, section.withheld, section.stable)

    def framed(self, section: Section) -> Section:
        """`section` with the tokens of its tags, its title and its remarks measured."""
        return replace(section, frame=self.section(Kept(section, ())).tokens + 1)

    def request_tokens(self, messages: Sequence[Message]) -> int:
        return request_tokens(self.counter, messages, ()) + self.counter.tools_tokens(self.tools)

    def cut_objective(self, room: int) -> sections.CutObjective:
        cap = min(OBJECTIVE_TOKENS, room // 2)

        def cut(objective: str) -> str:
            return to_tokens(objective, cap, self.counter.count)

        return cut


def _quota(goal: Goal) -> int:
    limit = goal.limits.turns
    quota = goal.settings.max_turns
    return quota if limit is None else max(0, min(quota, limit - goal.spent.turns))


def _rebuilt(snapshot: Snapshot, frame: _Frame, turns_left: int) -> Rendered:
    budget = frame.budget()
    system = frame.system()
    made, base = _sections(snapshot, frame, turns_left, budget, (system,))
    shown, user, tokens = _fitted(frame, made, (system,), budget, base)
    phrases = sum(completion_phrases(s.text) for s in shown if s.name in sections.MODEL_WRITTEN)
    if frame.outgrown is None:
        return _rendered((system, user), shown, tokens, budget, phrases)

    limit, cost = frame.outgrown.limit, partial(message_tokens, frame.counter)
    room = sawtooth.kept_share(limit, tokens)
    turns = sawtooth.last_turns(frame.outgrown.messages, room, cost, frame.counter.count)
    phrases += sum(
        completion_phrases(c.arguments) for m in turns if isinstance(m, Assistant) for c in m.calls
    )
    return _rendered((system, user, *turns), shown, tokens + sum(map(cost, turns)), limit, phrases)


def _replayed(snapshot: Snapshot, frame: _Frame, turns_left: int) -> Rendered:
    """The earlier conversation, its oldest turns dropped where the window cannot hold it, and a request to go on."""
    budget = frame.profile.window - max(WINDOW_RESERVE, frame.profile.max_output)
    system = frame.system()
    made, base = _sections(snapshot, frame, turns_left, frame.budget(), (system,))
    made = tuple(section for section in made if section.name in REPLAY_SECTIONS)
    shown, user, tokens = _fitted(frame, made, (system,), min(budget, frame.budget()), base)
    opening = User(frame.prompts.frame("earlier_cut", snapshot.goal.settings.lang))
    cost = partial(message_tokens, frame.counter)
    earlier = replay.newest_turns(replay.replayable(snapshot.earlier), budget - tokens, cost, opening)
    messages = (system, *earlier, user)
    tokens = frame.request_tokens(messages)
    if tokens > budget:
        raise ContextDoesNotFit(tokens, budget)
    phrases = sum(completion_phrases(m.text) for m in earlier if isinstance(m, Assistant))
    return _rendered(messages, shown, tokens, budget, phrases)


def _sections(
    snapshot: Snapshot, frame: _Frame, turns_left: int, budget: int, before: tuple[Message, ...]
) -> tuple[tuple[Section, ...], int]:
    """All sections, and the tokens of a request without any of them."""
    base = frame.request_tokens((*before, frame.user(())))
    words = frame.prompts.words(snapshot.goal.settings.lang)
    cut = frame.cut_objective(max(0, budget - base))
    told = instruction(snapshot.goal, frame.prompts, pending=bool(snapshot.work.pending))
    made = sections.build(snapshot, words, instruction=told, turns_left=turns_left, cut_objective=cut)
    return tuple(map(frame.framed, made)), base


def _fitted(
    frame: _Frame, made: Sequence[Section], before: tuple[Message, ...], budget: int, base: int
) -> tuple[tuple[RenderedSection, ...], User, int]:
    """The sections that fit, the message that holds them, and the tokens of the whole request, counted once more.

    Parts that are counted alone add up to about the whole, not to exactly the whole: where the whole turns out larger
    than its budget, it is fitted again into that much less.
    """
    room = budget - base
    needed = base
    for _ in range(_REFITS):
        if room <= 0:
            break
        try:
            fitted = fit(made, room, frame.counter.count)
        except ContextDoesNotFit as error:
            raise ContextDoesNotFit(error.needed + base, budget) from None
        shown = tuple(map(frame.section, fitted.sections))
        user = frame.user(shown)
        needed = frame.request_tokens((*before, user))
        if needed <= budget:
            return shown, user, needed
        room -= needed - budget
    raise ContextDoesNotFit(needed, budget)


def _rendered(
    messages: tuple[Message, ...],
    shown: tuple[RenderedSection, ...],
    tokens: int,
    budget: int,
    phrases: int,
) -> Rendered:
    text = "\n\n".join(map(_text, messages)).rstrip("\n") + "\n"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Rendered(messages, shown, tokens, budget, text, digest, phrases)


def _text(message: Message) -> str:
    """What the model sees of a message, for people."""
    match message:
        case System(text) | User(text) | ToolResult(text=text):
            return text
        case Assistant(text, calls):
            told = [text] if text else []
            return "\n".join(told + [f"{call.name} {call.arguments}" for call in calls])
