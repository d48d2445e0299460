"""A requirement's test of one file, read through the workspace jail."""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from goalmode.domain.contract import FileCheck, FileTest, Requirement
from goalmode.domain.text import one_line
from goalmode.errors import BadInput
from goalmode.state.checks import CheckResult
from goalmode.tools.paths import Missing, PathError, Workspace

MAX_READ = 8_000_000
"""Bytes of the largest file that is looked into for `contains` and `json`."""


def check(workspace: Workspace, requirement: Requirement) -> tuple[CheckResult, str]:
    """Whether the requirement's file is as it should be: the result, and what is missing (empty if it holds)."""
    assert requirement.file is not None
    problem = _problem(workspace, requirement.file)
    result = CheckResult(requirement.id, not problem, tail=problem)
    shown = one_line(requirement.file.written, 200)
    return result, f"requirement {requirement.id} (file {shown}): {problem}" if problem else ""


def _problem(workspace: Workspace, wanted: FileCheck) -> str:
    try:
        with workspace.open(wanted.path) as file:
            return _look(file, wanted)
    except Missing as error:
        return f"the file does not exist ({error.hint})" if error.hint else "the file does not exist"
    except PathError as error:
        return error.problem
    except BadInput as error:
        return error.expected


def _look(file: BinaryIO, wanted: FileCheck) -> str:
    size = os.fstat(file.fileno()).st_size
    match wanted.test:
        case FileTest.EXISTS:
            return ""
        case FileTest.NON_EMPTY:
            return "" if size else "the file is empty"
        case FileTest.LARGER:
            least = int(wanted.value)
            return "" if size > least else f"the file has {size:,} bytes, more than {least:,} are wanted"
    if size > MAX_READ:
        return f"the file has {size:,} bytes; {wanted.test} looks into files of at most {MAX_READ:,}"
    data = file.read(MAX_READ)
    if wanted.test is FileTest.JSON:
        return _not_json(data)
    return "" if wanted.value.encode() in data else f"the file does not hold {one_line(wanted.value, 200)!r}"


def _not_json(data: bytes) -> str:
    try:
        json.loads(data, parse_constant=_refuse, parse_int=str, parse_float=str)
    except RecursionError:
        return "the file is nested too deeply to be read as JSON"
    except ValueError as error:
        return f"the file is not valid JSON: {one_line(str(error), 200)}"
    return ""


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON value")
