"""The contract: what must hold when a goal is done. It is the user's; the model can neither change nor narrow it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CheckKind(StrEnum):
    """How a requirement is shown to hold."""

    COMMAND = "command"
    """A shell command exits 0."""
    FILE = "file"
    """A file of the workspace is as it should be."""
    HUMAN = "human"
    """A person has accepted it (`goalmode accept`)."""
    EVIDENCE = "evidence"
    """The claim cites a recorded call or a file: for what no command can show."""


class FileTest(StrEnum):
    """What a file of the workspace must be."""

    EXISTS = "exists"
    NON_EMPTY = "non-empty"
    CONTAINS = "contains"
    """It holds `FileCheck.value`, exactly as written."""
    JSON = "json"
    """It is valid JSON."""
    LARGER = "larger"
    """It has more than `FileCheck.value` bytes."""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A test of one file. `path` is relative to the workspace; `value` is a text, or for LARGER a number as text."""

    test: FileTest
    path: str
    value: str = ""

    @property
    def written(self) -> str:
        """As a user writes it: `contains:report.md:Total`."""
        return ":".join((self.test, self.path, *([self.value] if self.value else [])))


class RequirementStatus(StrEnum):
    OPEN = "open"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of the contract.

    Attributes:
        id: `R1`, `R2`, ... in the order of the contract.
        text: in words; of a command or a file check, that check as the user wrote it.
        check: of a COMMAND: exits 0 when the requirement holds.
        file: of a FILE.
        human: a person has to accept it.
        status: at the last check.
        checked_at: aware UTC.
        basis: of a HUMAN requirement that was accepted: a digest of the deliverables that the person saw.
    """

    id: str
    text: str
    check: str | None = None
    file: FileCheck | None = None
    human: bool = False
    status: RequirementStatus = RequirementStatus.OPEN
    checked_at: datetime | None = None
    basis: str | None = None

    @property
    def kind(self) -> CheckKind:
        if self.check is not None:
            return CheckKind.COMMAND
        if self.file is not None:
            return CheckKind.FILE
        return CheckKind.HUMAN if self.human else CheckKind.EVIDENCE

    def is_accepted(self, basis: str) -> bool:
        """Whether a person has accepted this HUMAN requirement, and with the deliverables as they are now (`basis`)."""
        return self.human and self.status is RequirementStatus.PASSED and self.basis == basis

    def is_outdated(self, basis: str) -> bool:
        """Whether a person has accepted it, but the deliverables have changed since."""
        return self.human and self.status is RequirementStatus.PASSED and self.basis != basis


def basis_of(seen: Iterable[tuple[str, str | None]]) -> str:
    """What a person accepts: a digest of the deliverables' paths and hashes (None: absent), in the contract's order."""
    return hashlib.sha256(json.dumps([list(pair) for pair in seen]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A path in the workspace that must exist and not be empty when the goal is done.

    Attributes:
        path: relative to the workspace, in the form the user wrote, without `.` and `..` parts.
        sha_seen: hash of the content last observed, None if it was absent.
        sha_verified: hash of the content that a completion was accepted with.
    """

    path: str
    sha_seen: str | None = None
    sha_verified: str | None = None


@dataclass(frozen=True, slots=True)
class ProtectedFile:
    """A file that the work must leave as it was: a change refuses every claim until the user accepts it.

    Attributes:
        path: relative to the workspace.
        sha256: of its content when the goal was made, or last accepted by the user; None: it was absent.
        named_by: the requirement whose check names it (`R1`), or the user's glob.
        accepted_at: aware UTC; when the user last accepted a change of it.
    """

    path: str
    sha256: str | None
    named_by: str
    accepted_at: datetime | None = None
