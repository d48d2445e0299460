"""From a snapshot to the sections of its context, each item worded in the goal's language and ready to be shown.

What the model wrote never comes back in its own closing words: a sentence with a closing phrase is replaced by a
mark (`goalmode.context.phrases.withhold`). What the user wrote is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goalmode.context.budgets import budget_lines, time_text
from goalmode.context.escape import block, item, line
from goalmode.context.fit import Section
from goalmode.context.phrases import sentences, withhold
from goalmode.context.render import Words
from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import ProtectedFile, Requirement, basis_of
from goalmode.domain.goal import EARNED_AFTER, Goal
from goalmode.domain.questions import Question
from goalmode.domain.snapshot import Action, Observed, Snapshot
from goalmode.domain.text import head_tail
from goalmode.domain.work import ItemKind, ItemStatus, Provenance, WorkItem

MODEL_WRITTEN = frozenset(
    {
        "deliverables",
        "key_info",
        "progress_summary",
        "next_steps",
        "established",
        "pending_verification",
        "failed_approaches",
        "obstacles",
        "recent_actions",
        "questions",
        "long_term_memory",
        "last_wakeup",
    }
)
"""Sections that hold words of the model, if only in a path or a command line."""

ITEM_CHARACTERS = 2_000
"""Longest text of one item; a longer one is cut to head and tail, and says so."""

PROTECTED_SHOWN = 40
"""Protected files that a context lists; of the others it tells the number."""

WRITTEN_SHOWN = 30
"""The newest files beyond the contract's that a context lists; of the older ones it tells the number."""

BRIEF_CHARACTERS = 200
PIECE_CHARACTERS = 400
"""Running text is fitted in lines; a longer line in groups of sentences, or parts of one, of at most this length.

Small pieces, because what does not fit ends the queue: one piece of a thousand tokens would keep out all behind it.
"""


@dataclass(frozen=True, slots=True)
class _Rule:
    priority: int
    floor: int = 0
    cap: int | None = None
    stable: bool = False


_RULES = {
    "objective": _Rule(0, floor=1, stable=True),
    "contract": _Rule(1, floor=1, stable=True),
    "deliverables": _Rule(1, floor=1),
    "key_info": _Rule(2, cap=4_000),
    "progress_summary": _Rule(3, cap=1_500),
    "next_steps": _Rule(2, cap=1_500),
    "established": _Rule(3, cap=6_000),
    "pending_verification": _Rule(1, floor=1),
    "failed_approaches": _Rule(3, cap=2_000),
    "obstacles": _Rule(2, cap=1_500),
    "recent_actions": _Rule(3, cap=1_000),
    "questions": _Rule(2, floor=1, cap=3_000),
    "user_notes": _Rule(2, floor=1, cap=4_000),
    "long_term_memory": _Rule(3, cap=1_500),
    "last_wakeup": _Rule(0, floor=1),
    "instruction": _Rule(0, floor=1),
    "time_and_budgets": _Rule(0, floor=1),
}
"""How each section fares when room is short: objective, contract, deliverables and pending items last longest.

Caps are tokens, and keep a context small where its budget would allow a large one.
"""

CutObjective = Callable[[str], str]


def build(
    snapshot: Snapshot, words: Words, *, instruction: str, turns_left: int, cut_objective: CutObjective
) -> tuple[Section, ...]:
    """The sections that have something to say, in the order in which they are rendered.

    Args:
        instruction: of the movement that the goal is in.
        turns_left: of the wakeup that is about to begin.
        cut_objective: gives the clean objective, or head and tail of it where it is too long.
    """
    goal, work = snapshot.goal, snapshot.work
    saved = _Saved(words("claim"))
    made = (
        *contract(goal, words, cut_objective, seen=snapshot),
        _deliverables(snapshot, words, saved),
        _section("key_info", _pieces(saved(work.checkpoint.key_info)), saved),
        _section("progress_summary", _pieces(saved(work.checkpoint.summary)), saved),
        _section(
            "next_steps", (words("step", text=saved.item(s)) for s in work.checkpoint.next_steps), saved
        ),
        _section("established", _established(work.items, words, saved), saved),
        _section("pending_verification", _pending(work.pending, words, saved), saved),
        _section("failed_approaches", _failed(work.items, words, saved), saved),
        _section("obstacles", _obstacles(goal, words, saved), saved),
        _section("recent_actions", _actions(snapshot.actions, words, saved), saved),
        _section("questions", _questions(snapshot.questions, words, saved), saved),
        _section("user_notes", _notes(snapshot, words)),
        _section("long_term_memory", _memories(snapshot, words, saved), saved),
        _section("last_wakeup", (_ending(snapshot, words, saved),), saved),
        _section("instruction", (instruction,)),
        _section("time_and_budgets", ("\n".join(budget_lines(snapshot, words, turns_left)),)),
    )
    return tuple(section for section in made if section.items)


def contract(
    goal: Goal, words: Words, cut_objective: CutObjective, *, seen: Snapshot | None = None
) -> tuple[Section, ...]:
    """The objective, and the requirements and protected files of its contract where there are any.

    Args:
        seen: how the workspace was found; None where nobody has looked.
    """
    shown = cut_objective(block(goal.objective))
    if shown != block(goal.objective):
        shown = words("objective_cut", shown=shown, characters=len(goal.objective), uid=goal.uid)
    basis = None if seen is None else basis_of((o.path, o.sha256) for o in seen.observed)
    wanted = [_requirement(requirement, words, basis) for requirement in goal.requirements]
    wanted += _protected(goal.protected, () if seen is None else seen.changed, words)
    sections = (_section("objective", (shown,)), _section("contract", wanted))
    return tuple(section for section in sections if section.items)


def expected(goal: Goal, words: Words) -> Section:
    """The deliverables as the contract names them, without a look at them."""
    return _section("deliverables", (words("expected", path=line(d.path)) for d in goal.deliverables))


def _requirement(requirement: Requirement, words: Words, basis: str | None) -> str:
    check, file = requirement.check, requirement.file
    told = requirement.text in (check, file.written if file else None)  # By the check itself.
    outdated = basis is not None and requirement.is_outdated(basis)
    return words(
        "requirement",
        id=requirement.id,
        kind=requirement.kind,
        text="" if told else item(requirement.text),
        check=line(check or ""),
        test=file.test if file else "",
        path=line(file.path) if file else "",
        value=line(file.value, BRIEF_CHARACTERS) if file else "",
        status="outdated" if outdated else requirement.status,
    )


def _protected(files: Sequence[ProtectedFile], changed: Iterable[tuple[str, str]], words: Words) -> list[str]:
    if not files:
        return []
    paths = tuple(line(file.path, BRIEF_CHARACTERS) for file in files[:PROTECTED_SHOWN])
    shown = [words("protected", paths=paths, left_out=len(files) - len(paths))]
    return shown + [words("unprotected", path=line(path), state=line(state)) for path, state in changed]


class _Saved:
    """What the model wrote, without its closing words. Counts what it withholds until the count is taken."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._withheld = 0

    def __call__(self, text: str) -> str:
        shown, withheld = withhold(text, self._mark)
        self._withheld += withheld
        return shown

    def item(self, text: str) -> str:
        return item(head_tail(self(text), ITEM_CHARACTERS))

    def line(self, text: str, limit: int = 0) -> str:
        return line(self(text), limit)

    def taken(self) -> int:
        taken, self._withheld = self._withheld, 0
        return taken


def _section(name: str, items: Iterable[str], saved: _Saved | None = None) -> Section:
    rule = _RULES[name]
    rendered = tuple(items)  # before the count is taken: rendering counts
    return Section(
        name,
        rendered,
        priority=rule.priority,
        floor=rule.floor,
        cap=rule.cap,
        stable=rule.stable,
        withheld=saved.taken() if saved else 0,
    )


def _pieces(text: str) -> list[str]:
    """Running text in pieces that are fitted one by one: its lines, and long lines in groups of sentences."""
    pieces: list[str] = []
    for row in block(text).split("\n"):
        current = ""
        for sentence in sentences(row) if len(row) > PIECE_CHARACTERS else [row]:
            if current and len(current) + len(sentence) > PIECE_CHARACTERS:
                pieces.append(current)
                current = ""
            current += sentence
        while len(current) > PIECE_CHARACTERS:
            end = _break(current)
            pieces.append(current[:end])
            current = current[end:]
        pieces.append(current)
    return [piece.rstrip() for piece in pieces if piece.strip()]


def _break(sentence: str) -> int:
    """Where a sentence that is longer than a piece is cut: behind its last blank or comma, unless that is far off."""
    near = max(sentence.rfind(mark, PIECE_CHARACTERS // 2, PIECE_CHARACTERS) for mark in " ,;，、；")
    return near + 1 if near >= 0 else PIECE_CHARACTERS


def _deliverables(snapshot: Snapshot, words: Words, saved: _Saved) -> Section:
    observed = [_deliverable(seen, words) for seen in snapshot.observed]
    work, listed = snapshot.work, {seen.path for seen in snapshot.observed}
    named = [p for p in work.found if p not in listed]
    listed.update(named)
    written = [p for p in reversed(work.written) if p not in listed]
    others = [words("named", path=saved.line(p), written=p in work.written) for p in named]
    others += [words("written", path=saved.line(p)) for p in written[:WRITTEN_SHOWN]]
    if len(written) > WRITTEN_SHOWN:
        others.append(words("written_more", count=len(written) - WRITTEN_SHOWN))
    return _section("deliverables", observed + others, saved)


def _deliverable(seen: Observed, words: Words) -> str:
    return words(
        "deliverable",
        path=line(seen.path),
        exists=seen.exists,
        size=seen.size,
        sha=(seen.sha256 or "")[:12],
        problem=line(seen.problem),
        hint=line(seen.hint),
        verified=seen.verified,
    )


def _newest(items: Iterable[WorkItem]) -> list[WorkItem]:
    return sorted(items, key=lambda i: (i.wakeup, i.number), reverse=True)


def _established(items: Iterable[WorkItem], words: Words, saved: _Saved) -> list[str]:
    return [
        words(
            "established",
            label=i.label,
            verified=i.status is ItemStatus.VERIFIED,
            report=i.provenance is Provenance.HOST,
            noted=i.provenance is Provenance.TOOL,
            text=saved.item(i.text),
            evidence=saved.item(i.evidence),
            wakeup=i.wakeup,
        )
        for i in _newest(i for i in items if i.kind is ItemKind.DONE)
    ]


def _pending(items: Iterable[WorkItem], words: Words, saved: _Saved) -> list[str]:
    """Those that failed their verification first, then those whose files changed since, then the oldest."""
    order = (ItemStatus.FAILED, ItemStatus.STALE)
    ordered = sorted(items, key=lambda i: (order.index(i.status) if i.status in order else 2, i.number))
    return [
        words(
            "pending",
            label=i.label,
            failed=i.status is ItemStatus.FAILED,
            changed=tuple(map(line, i.changed)),
            text=saved.item(i.text),
            evidence=saved.item(i.evidence),
        )
        for i in ordered
    ]


def _failed(items: Iterable[WorkItem], words: Words, saved: _Saved) -> list[str]:
    return [
        words("failed", label=i.label, text=saved.item(i.text), outcome=saved.item(i.evidence), count=i.count)
        for i in _newest(i for i in items if i.kind is ItemKind.FAILED_APPROACH)
    ]


def _obstacles(goal: Goal, words: Words, saved: _Saved) -> list[str]:
    return [
        words(
            "obstacle",
            id=o.id,
            text=saved.item(o.text),
            requirement=o.requirement,
            met=len(o.wakeups),
            needed=EARNED_AFTER,
        )
        for o in reversed(goal.obstacles)
    ]


def _actions(actions: tuple[Action, ...], words: Words, saved: _Saved) -> list[str]:
    return [
        words(
            "action",
            wakeup=a.wakeup,
            turn=a.turn,
            tool=saved.line(a.tool, BRIEF_CHARACTERS),
            brief=saved.line(a.brief, BRIEF_CHARACTERS),
            outcome=a.outcome,
            exit_code=a.exit_code,
        )
        for a in reversed(actions)
    ]


def _questions(questions: Iterable[Question], words: Words, saved: _Saved) -> list[str]:
    """What nobody has answered yet first, then the newest answers, each beside its question."""
    return [
        words(
            "question",
            label=q.label,
            by=q.answered_by.value if q.answered_by else "",
            at=time_text(q.answered_at or q.asked_at),
            text=saved.item(q.asking.text),
            options=tuple(saved.line(option) for option in q.asking.options),
            default=saved.line(q.asking.default, BRIEF_CHARACTERS),
            default_at=time_text(q.asking.default_at) if q.asking.default_at else "",
            answer=item(head_tail(q.answer, 2 * ITEM_CHARACTERS)),
        )
        for q in sorted(questions, key=lambda q: (not q.is_open, -q.number))
    ]


def _notes(snapshot: Snapshot, words: Words) -> list[str]:
    return [
        words(
            "note",
            kind=entry.kind,
            at=time_text(entry.at),
            text=item(head_tail(entry.text, 2 * ITEM_CHARACTERS)),
        )
        for entry in reversed(snapshot.inbox)
        if entry.kind in ("note", "answer")
    ]


def _memories(snapshot: Snapshot, words: Words, saved: _Saved) -> list[str]:
    return [
        words(
            "memory",
            label=memory.label,
            kind=memory.kind,
            own=memory.goal == snapshot.goal.uid,
            goal=line(memory.goal),
            promoted=not memory.workspace,
            at=f"{memory.created_at:%Y-%m-%d}",
            text=saved.item(memory.text),
        )
        for memory in snapshot.memories
    ]


def _ending(snapshot: Snapshot, words: Words, saved: _Saved) -> str:
    last = snapshot.last
    if last is None:
        return words("first_wakeup")
    return words(
        "ending",
        wakeup=last.wakeup,
        reason=last.reason,
        turns=last.turns,
        detail=saved.line(last.detail, ITEM_CHARACTERS),
        interrupted=any(a.outcome is CallOutcome.INTERRUPTED for a in snapshot.actions),
    )
