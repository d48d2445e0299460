"""The words of the sandbox: what a user may ask for, and what a wakeup's commands ran in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

AUTO = "auto"
"""The strongest that works on this machine: bubblewrap, else Landlock, else none."""


class SandboxMode(StrEnum):
    """What shell commands and checks run in; stored with each wakeup."""

    BWRAP = "bwrap"
    """bubblewrap: namespaces, in which what is not to be seen is not there."""
    LANDLOCK = "landlock"
    """Linux's Landlock: what is not to be touched is refused."""
    NONE = "none"


CHOICES = (AUTO, *(mode.value for mode in SandboxMode))


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What the user has configured for all goals.

    Attributes:
        mode: of goals that name none, out of `CHOICES`.
        read: directories and files that commands may read beside the system's, absolute.
        env: names of environment variables that commands get beside the usual ones.
        private: files that no command may reach, beside the store: the configuration.
    """

    mode: str = AUTO
    read: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
