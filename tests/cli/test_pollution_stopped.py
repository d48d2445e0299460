"""Ctrl-C in a real process, while the model is silent."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from goalmode.evals.results import FILE
from goalmode.testing.steps import Step, stall
from tests.cli.conftest import wait_until
from tests.evals.builders import inclined


@pytest.mark.slow
def test_ctrl_c_ends_an_evaluation_cleanly(serve: Any, spawn: Callable[..., Any], tmp_path: Path) -> None:
    """One line, exit code 130, and a file of whole lines with every answer that had come."""
    never = threading.Event()

    def rule(request: Mapping[str, Any], number: int) -> Step:
        step = inclined(request, number)
        return step if number < 5 else stall(step, until=never)  # type: ignore[arg-type]

    stub = serve(rule)
    asked = (
        "--model",
        "openai:m",
        "--base-url",
        stub.base_url,
        "--out",
        str(tmp_path / "out"),
        "--quick",
        "-y",
        "-q",
    )
    child = spawn("eval", "pollution", *asked)
    wait_until(lambda: len(stub.requests) == 6, child.process)
    child.signal(signal.SIGINT)
    done = child.done()
    never.set()

    assert (done.code, done.out) == (130, "")
    assert done.line().startswith("goalmode: stopped. 3 of 192 cells are in ")
    assert (tmp_path / "out" / FILE).read_bytes().count(b"\n") == 4
