"""What the agent has saved of its work, and the one pure function that changes it.

Within a goal, items are numbered from 1 in the order they were first saved; a number never changes and is never
used again, so `W3` means the same item in every wakeup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class ItemKind(StrEnum):
    DONE = "done"
    PENDING = "pending"
    FAILED_APPROACH = "failed_approach"


class ItemStatus(StrEnum):
    OPEN = "open"
    """Pending: awaits verification."""
    CLAIMED = "claimed"
    """Done, says the model."""
    VERIFIED = "verified"
    """Verified by a recorded `verify` with evidence."""
    FAILED = "failed"
    """A failed approach, or a verification that failed."""
    STALE = "stale"
    """Was verified, but a file that it rests on has changed since. Seen, never stored: see `WorkState.as_seen`."""


class Provenance(StrEnum):
    USER = "user"
    MODEL = "model"
    TOOL = "tool"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One thing done, awaiting verification, or tried and failed.

    Attributes:
        evidence: what a `verify` cited, or the outcome of a failed approach.
        wakeup: the wakeup's sequence number in which it was last changed.
        count: how often it was saved; a failed approach tried again counts up.
        rests_on: files (path, hash) that its verification looked at.
    """

    number: int
    kind: ItemKind
    status: ItemStatus
    text: str
    evidence: str = ""
    provenance: Provenance = Provenance.MODEL
    wakeup: int = 0
    count: int = 1
    rests_on: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        return f"W{self.number}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the agent last saved in its own words."""

    key_info: str = ""
    summary: str = ""
    next_steps: tuple[str, ...] = ()
    wakeup: int = 0


@dataclass(frozen=True, slots=True)
class WorkState:
    items: tuple[WorkItem, ...] = ()
    checkpoint: Checkpoint = Checkpoint()
    found: tuple[str, ...] = ()
    """Paths the agent named as deliverables beyond the contract's."""

    def item(self, name: str) -> WorkItem | None:
        """The item called `name`: its label (`W3`, in either case) or its exact text."""
        wanted = name.strip()
        return next((i for i in self.items if i.label == wanted.upper() or i.text == wanted), None)

    @property
    def pending(self) -> tuple[WorkItem, ...]:
        return tuple(i for i in self.items if i.kind is ItemKind.PENDING)


@dataclass(frozen=True, slots=True)
class StatePatch:
    """A change to the work state. None and empty mean "as it was".

    Attributes:
        failed: approach -> outcome.
        verified: item label -> (passed, evidence).
    """

    key_info: str | None = None
    summary: str | None = None
    next_steps: tuple[str, ...] | None = None
    done: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    found: tuple[str, ...] = ()
    verified: Mapping[str, tuple[bool, str]] = field(default_factory=dict)


def apply(state: WorkState, patch: StatePatch, *, wakeup: int) -> WorkState:
    """The state after `patch`. Saving the same thing twice changes nothing but a failed approach's count."""
    items = list(state.items)
    for text in patch.done:
        _add(items, WorkItem(0, ItemKind.DONE, ItemStatus.CLAIMED, text, wakeup=wakeup))
    for text in patch.pending:
        _add(items, WorkItem(0, ItemKind.PENDING, ItemStatus.OPEN, text, wakeup=wakeup))
    for approach, outcome in patch.failed.items():
        _add(
            items, WorkItem(0, ItemKind.FAILED_APPROACH, ItemStatus.FAILED, approach, outcome, wakeup=wakeup)
        )
    for label, (passed, evidence) in patch.verified.items():
        _verify(items, label, passed, evidence, wakeup)
    return WorkState(tuple(items), _save(state.checkpoint, patch, wakeup), _union(state.found, patch.found))


def _add(items: list[WorkItem], new: WorkItem) -> None:
    for position, old in enumerate(items):
        if old.text != new.text:
            continue
        if new.kind is ItemKind.FAILED_APPROACH and old.kind is new.kind:
            evidence = new.evidence or old.evidence
            items[position] = replace(old, count=old.count + 1, evidence=evidence, wakeup=new.wakeup)
            return
        if old.kind is new.kind or ItemKind.FAILED_APPROACH not in (old.kind, new.kind):
            # Saying "done" of a pending item does not verify it, and a verified one does not become pending again.
            return
    items.append(replace(new, number=len(items) + 1))


def _verify(items: list[WorkItem], label: str, passed: bool, evidence: str, wakeup: int) -> None:
    for position, old in enumerate(items):
        if old.label == label:
            kind = ItemKind.DONE if passed else ItemKind.PENDING
            status = ItemStatus.VERIFIED if passed else ItemStatus.FAILED
            items[position] = replace(old, kind=kind, status=status, evidence=evidence, wakeup=wakeup)


def _save(old: Checkpoint, patch: StatePatch, wakeup: int) -> Checkpoint:
    new = replace(
        old,
        key_info=old.key_info if patch.key_info is None else patch.key_info,
        summary=old.summary if patch.summary is None else patch.summary,
        next_steps=old.next_steps if patch.next_steps is None else patch.next_steps,
    )
    return old if new == old else replace(new, wakeup=wakeup)


def _union(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(old + new))
