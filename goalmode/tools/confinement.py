"""What a command is started in, as the launcher sees it; and the one that holds nothing back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from subprocess import Popen
from typing import Any, Protocol

from goalmode.domain.sandbox import SandboxMode


class Confinement(Protocol):
    """Starts commands. Implemented by `goalmode.tools.confined`."""

    @property
    def mode(self) -> SandboxMode: ...

    @property
    def leads(self) -> bool:
        """Whether the process that is started stands in front of the command's own, and ends all of it if it ends."""
        ...

    def environment(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """What the command gets of an environment."""
        ...

    def start(self, command: Sequence[bytes], *, lock: int | None, **options: Any) -> Popen[bytes]:
        """`subprocess.Popen` with these options.

        Args:
            lock: a descriptor that stays open as long as anything runs that the command started.

        Raises:
            OSError: it cannot be started.
        """
        ...

    def close(self) -> None:
        """Leave nothing behind of what was made for the commands."""
        ...


class Free:
    """No confinement: a command can do all that this user can."""

    mode = SandboxMode.NONE
    leads = False

    def environment(self, given: Mapping[str, str]) -> Mapping[str, str]:
        return given

    def start(self, command: Sequence[bytes], *, lock: int | None, **options: Any) -> Popen[bytes]:
        return Popen(command, pass_fds=() if lock is None else (lock,), **options)

    def close(self) -> None:
        pass


FREE: Confinement = Free()
