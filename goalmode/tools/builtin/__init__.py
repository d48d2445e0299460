"""The tools that every goal has, unless it is limited to some of them."""

from __future__ import annotations

from goalmode.tools.builtin.checkpoint import update_working_checkpoint, verify
from goalmode.tools.builtin.control import complete, wait
from goalmode.tools.builtin.files import edit_file, list_files, read_file, write_file
from goalmode.tools.builtin.memory import MEMORY_TOOLS
from goalmode.tools.builtin.shell import shell
from goalmode.tools.registry import Registry


def builtin_tools() -> Registry:
    """All built-in tools, in the order in which a model is told of them."""
    return Registry(
        (
            shell,
            read_file,
            write_file,
            edit_file,
            list_files,
            update_working_checkpoint,
            verify,
            complete,
            wait,
            *MEMORY_TOOLS,
        )
    )
