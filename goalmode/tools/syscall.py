"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
from functools import cache


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: object) -> int:
    """Make a Linux system call.

    Raises:
        OSError: it failed.
    """
    result: int = libc().syscall(ctypes.c_long(number), *map(_word, arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *arguments: int) -> int:
    """Set or get something of this thread or process.

    Raises:
        OSError: it failed.
    """
    words = (*arguments, 0, 0, 0, 0)[:4]
    result: int = libc().prctl(ctypes.c_int(option), *map(ctypes.c_ulong, words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _word(value: object) -> object:
    """A number as wide as a register: as a C int, its upper half would be whatever was there."""
    return ctypes.c_long(value) if isinstance(value, int) else value
