"""What the agent has saved of its work, and the one pure function that changes it.

Within a goal, items are numbered from 1 in the order they were first saved; a number never changes and is never
used again, so `W3` means the same item in every wakeup.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

MAX_DONE = 500
MAX_PENDING = 200
MAX_FAILED = 200
"""Items of each kind that an agent may save in a goal. What is pending and gets verified may exceed `MAX_DONE`."""

MAX_FOUND = 200
"""Deliverables beyond the contract's that an agent may name in a goal."""

MAX_WRITTEN = 200
"""Paths of files the host saw written that are kept, the newest."""

MAX_REPORTS = 50
"""Reports of movements that are kept, the newest."""


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
        changed: of a STALE item, those of them that are not as they were then. Seen, never stored.
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
    changed: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"W{self.number}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the agent last saved in its own words.

    Attributes:
        provenance: TOOL for what its program held before it saved anything in this goal.
    """

    key_info: str = ""
    summary: str = ""
    next_steps: tuple[str, ...] = ()
    wakeup: int = 0
    provenance: Provenance = Provenance.MODEL


@dataclass(frozen=True, slots=True)
class WorkState:
    items: tuple[WorkItem, ...] = ()
    checkpoint: Checkpoint = Checkpoint()
    found: tuple[str, ...] = ()
    """Paths the agent named as deliverables beyond the contract's."""
    written: tuple[str, ...] = ()
    """Paths of files that the host saw written, in the order in which they were first, the newest `MAX_WRITTEN`."""

    def item(self, name: str) -> WorkItem | None:
        """The item called `name`: by its label (`W3`, in either case), or by its text, a failed approach last."""
        label, text = name.strip().upper(), normal(name)
        named = next((item for item in self.items if item.label == label), None)
        alike = (item for item in self.items if normal(item.text) == text)
        return named or min(alike, key=lambda item: item.kind is ItemKind.FAILED_APPROACH, default=None)

    def approach(self, text: str) -> WorkItem | None:
        """The failed approach of this text."""
        wanted, failed = normal(text), ItemKind.FAILED_APPROACH
        return next((i for i in self.items if i.kind is failed and normal(i.text) == wanted), None)

    @property
    def pending(self) -> tuple[WorkItem, ...]:
        return tuple(i for i in self.items if i.kind is ItemKind.PENDING)

    def as_seen(self, hash_of: Callable[[str], str | None]) -> WorkState:
        """The state beside the workspace: a verified item is pending and STALE if a file that it rests on changed.

        Not for storing: the files may be as they were again.

        Args:
            hash_of: of a file's content just now; None: it is not there.
        """
        return replace(self, items=tuple(_as_seen(item, hash_of) for item in self.items))


@dataclass(frozen=True, slots=True)
class StatePatch:
    """A change to the work state. None and empty mean "as it was".

    Attributes:
        failed: approach -> outcome.
        written: files (path, hash of the new content) that the host wrote for the agent.
        verified: item label -> (passed, evidence).
        rests_on: item label -> files (path, hash) that its verification looked at.
    """

    key_info: str | None = None
    summary: str | None = None
    next_steps: tuple[str, ...] | None = None
    done: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    found: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()
    verified: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    rests_on: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


def apply(state: WorkState, patch: StatePatch, *, wakeup: int) -> WorkState:
    """The state after `patch`. Saving the same thing twice changes nothing but a failed approach's count.

    Texts that differ in case and white space alone are the same thing.
    """
    items = _Items(state.items)
    for text in patch.done:
        items.add(WorkItem(0, ItemKind.DONE, ItemStatus.CLAIMED, text, wakeup=wakeup))
    for text in patch.pending:
        items.add(WorkItem(0, ItemKind.PENDING, ItemStatus.OPEN, text, wakeup=wakeup))
    for approach, outcome in patch.failed.items():
        items.add(WorkItem(0, ItemKind.FAILED_APPROACH, ItemStatus.FAILED, approach, outcome, wakeup=wakeup))
    for label, (passed, evidence) in patch.verified.items():
        looked_at = patch.rests_on.get(label, ()) if passed else ()
        _verify(items.items, label, passed, evidence, looked_at, wakeup)
    written = _union(state.written, tuple(path for path, _ in patch.written))[-MAX_WRITTEN:]
    checkpoint = _save(state.checkpoint, patch, wakeup)
    return WorkState(tuple(items.items), checkpoint, _union(state.found, patch.found), written)


def with_report(state: WorkState, movement: str, why: str, *, wakeup: int) -> WorkState:
    """The state after a movement was left: what was said of it is an item of the host's. The oldest ones go."""
    text = f"report of {movement}, wakeup {wakeup}: {why}"
    items = _Items(state.items)
    items.add(WorkItem(0, ItemKind.DONE, ItemStatus.CLAIMED, text, provenance=Provenance.HOST, wakeup=wakeup))
    reports = [item.number for item in items.items if item.provenance is Provenance.HOST]
    surplus = set(reports[:-MAX_REPORTS])
    return replace(state, items=tuple(item for item in items.items if item.number not in surplus))


def too_many(before: WorkState, after: WorkState) -> str:
    """What is wrong with a save that leaves more items than a goal may have; empty if nothing is."""
    had = {kind: _count(before, kind) for kind in ItemKind}
    has = {kind: _count(after, kind) for kind in ItemKind}
    done, pending, failed = ItemKind.DONE, ItemKind.PENDING, ItemKind.FAILED_APPROACH
    both = has[done] + has[pending]
    if has[done] > max(had[done], MAX_DONE):
        return f"done: {had[done]} items are saved and at most {MAX_DONE} may be; sum up in key_info instead"
    if has[pending] > had[pending] and (has[pending] > MAX_PENDING or both > MAX_DONE + MAX_PENDING):
        return f"pending: {had[pending]} items are saved, at most {MAX_PENDING} may be; verify some of them first"
    if has[failed] > max(had[failed], MAX_FAILED):
        return f"failed_approaches: {had[failed]} are saved, at most {MAX_FAILED} may be; sum up in key_info instead"
    if len(after.found) > max(len(before.found), MAX_FOUND):
        return f"deliverables: {len(before.found)} are named and at most {MAX_FOUND} may be; name a directory instead"
    return ""


def normal(text: str) -> str:
    """By what equal texts are known: case and white space do not count."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class _Items:
    """Items to which others are added. What has the same text is the same item, but a failed approach is by itself."""

    def __init__(self, items: tuple[WorkItem, ...]) -> None:
        self.items = list(items)
        self._places: dict[tuple[bool, str], int] = {}

    def add(self, new: WorkItem) -> None:
        """What is pending stays so until it is verified, whatever is said of it; what is verified stays verified."""
        if not self._places:
            for place, item in enumerate(self.items):
                self._places.setdefault(_name(item), place)
        place = self._places.setdefault(_name(new), len(self.items))
        if place == len(self.items):
            self.items.append(replace(new, number=self.items[-1].number + 1 if self.items else 1))
            return
        old = self.items[place]
        if new.kind is ItemKind.FAILED_APPROACH:
            evidence = new.evidence or old.evidence
            self.items[place] = replace(old, count=old.count + 1, evidence=evidence, wakeup=new.wakeup)
        elif new.kind is ItemKind.PENDING and old.status is ItemStatus.CLAIMED:
            self.items[place] = replace(old, kind=new.kind, status=new.status, wakeup=new.wakeup)


def _name(item: WorkItem) -> tuple[bool, str]:
    return item.kind is ItemKind.FAILED_APPROACH, normal(item.text)


def _count(state: WorkState, kind: ItemKind) -> int:
    """Items of a kind that the agent saved."""
    return sum(item.kind is kind and item.provenance is not Provenance.HOST for item in state.items)


def _verify(
    items: list[WorkItem],
    label: str,
    passed: bool,
    evidence: str,
    rests_on: tuple[tuple[str, str], ...],
    wakeup: int,
) -> None:
    for position, old in enumerate(items):
        if old.label == label:
            items[position] = replace(
                old,
                kind=ItemKind.DONE if passed else ItemKind.PENDING,
                status=ItemStatus.VERIFIED if passed else ItemStatus.FAILED,
                evidence=evidence,
                wakeup=wakeup,
                rests_on=rests_on,
            )


def _as_seen(item: WorkItem, hash_of: Callable[[str], str | None]) -> WorkItem:
    if item.status is not ItemStatus.VERIFIED:
        return item
    changed = tuple(path for path, sha in item.rests_on if hash_of(path) != sha)
    if not changed:
        return item
    return replace(item, kind=ItemKind.PENDING, status=ItemStatus.STALE, changed=changed)


def _save(old: Checkpoint, patch: StatePatch, wakeup: int) -> Checkpoint:
    new = replace(
        old,
        key_info=old.key_info if patch.key_info is None else patch.key_info,
        summary=old.summary if patch.summary is None else patch.summary,
        next_steps=old.next_steps if patch.next_steps is None else patch.next_steps,
    )
    return old if new == old else replace(new, wakeup=wakeup, provenance=Provenance.MODEL)


def _union(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(old + new))
