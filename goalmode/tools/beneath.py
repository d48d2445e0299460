"""openat2: the kernel itself resolves a path and keeps it below a directory, in one step that nothing can race."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

from goalmode.tools.syscall import syscall

_OPENAT2 = 437
_NO_MAGICLINKS, _BENEATH = 0x02, 0x08

KNOWN = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
"""Where the numbers above are right."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def enter(root: int, path: str) -> int | None:
    """A directory's descriptor, relative links on the way followed as long as they stay below `root`.

    None: it is not there, lies outside, or cannot be known so: an older kernel, or an absolute link.
    """
    if not KNOWN:
        return None
    how = _How(os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    try:
        return syscall(_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    except OSError:
        return None
