"""What a command of ours gives up where it is started by root, and what nobody's command needs."""

from __future__ import annotations

import os
from contextlib import suppress

from goalmode.tools.syscall import prctl

KEPT = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
}
"""Root's powers over files' owners and modes, as far as it may touch them; so that root in a container can work in a
user's directory. Not kept is all that reaches beyond files: signals, mounts, devices, tracing, raw sockets."""

_LAST = 63
_CAPBSET_DROP = 24
_NO_NEW_PRIVILEGES = 38
_SET_DUMPABLE = 4


def bound() -> None:
    """Bound what this thread's children can ever be allowed. The thread itself is of no other use afterwards.

    Raises:
        OSError: the kernel refuses.
    """
    prctl(_NO_NEW_PRIVILEGES, 1)
    if os.geteuid() == 0:
        for number in range(_LAST + 1):
            if number not in KEPT.values():
                with suppress(
                    OSError
                ):  # Beyond the kernel's last one, or not ours to drop, so not ours either.
                    prctl(_CAPBSET_DROP, number)


def hide_memory() -> None:
    """Keep this process's memory and environment, which hold keys, from other processes of the same user.

    Linux: no core dumps, and no debugger or profiler that is not root attaches. Elsewhere nothing.
    """
    with suppress(OSError, AttributeError):
        prctl(_SET_DUMPABLE, 0)
