"""Figures that the suites have measured, told at the end of the run; and a quick way to new processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import pytest

from tests.state import processes

multiprocessing.get_context("forkserver").set_forkserver_preload([processes.__name__, "tests.crash.nursery"])

Report = Callable[[str], None]

_LINES: list[str] = []


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Tells a line at the end of the run, beside the name of the test."""
    return lambda line: _LINES.append(f"{request.node.name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _LINES:
        terminalreporter.write_line(line)
