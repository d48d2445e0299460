"""Files that commands write and read: what is written is new, and for its user alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from goalmode.errors import BadInput


def write_new(path: Path, text: str, field: str = "output") -> None:
    """Write a file that is not there yet, as UTF-8, readable by its user alone.

    Raises:
        BadInput: something is there already, or it cannot be written; nothing is left behind.
    """
    try:
        # What is at the path, if only a link, is never followed and never written over.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise BadInput(field, str(path), "a file that is not there yet") from None
    except OSError as error:
        raise BadInput(field, str(path), f"a file that can be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise BadInput(field, str(path), f"a file that can be written ({error.strerror})") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def read_whole(path: str, field: str) -> bytes:
    """The bytes of a file; `-` is standard input.

    Raises:
        BadInput: it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(field, path, f"a file that can be read ({error.strerror})") from None
