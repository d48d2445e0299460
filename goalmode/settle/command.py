"""A requirement's command: it holds if it exits 0, run by the host, in the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from goalmode.domain.contract import Requirement
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line
from goalmode.errors import ToolError
from goalmode.state.checks import CheckResult
from goalmode.tools.confinement import Confinement
from goalmode.tools.launch import run_command
from goalmode.tools.registry import EffectGate, GateHold

TAIL = 4_000
"""Characters of a check's output that are stored; the model is shown fewer."""

_SHOWN = 600


async def check(
    requirement: Requirement,
    *,
    workspace: Path,
    environment: Mapping[str, str],
    gate: EffectGate | None,
    call_id: str,
    seconds: float,
    redact: Redactor,
    confinement: Confinement,
) -> tuple[CheckResult, str]:
    """Run the requirement's command: its result, and what is missing (empty if it holds).

    Args:
        gate: None outside of a wakeup.
        seconds: its time limit; after it the command's whole process group is ended.

    Raises:
        Fenced: another owner has the goal.
    """
    assert requirement.check is not None
    try:
        with _entered(gate, f"{call_id}/{requirement.id}") as hold:
            ran = await run_command(
                requirement.check,
                cwd=workspace,
                environment=environment,
                hold=hold,
                timeout_seconds=seconds,
                redact=redact,
                confinement=confinement,
            )
    except ToolError as error:
        return CheckResult(requirement.id, passed=False, tail=str(error)), f"{_name(requirement)}: {error}"
    output = redact(ran.output).strip()
    ending = f"timed out after {seconds:g} s" if ran.timed_out else f"exit code {ran.exit_code}"
    digest = hashlib.sha256(output.encode("utf-8", "surrogatepass")).hexdigest()
    tail = f"{output}\n[{ending}]".strip() if ran.timed_out else output
    result = CheckResult(
        requirement.id, ran.exit_code == 0, ran.exit_code, tail=tail[-TAIL:], output_sha256=digest
    )
    if result.passed:
        return result, ""
    said = f"; its output ends with: {output[-_SHOWN:]}" if output else "; it printed nothing"
    return result, f"{_name(requirement)}: {ending}{said}"


def _entered(gate: EffectGate | None, call_id: str) -> AbstractContextManager[GateHold | None]:
    return nullcontext() if gate is None else gate.enter(call_id)


def _name(requirement: Requirement) -> str:
    return f"requirement {requirement.id} (check: {one_line(requirement.check or '', 200)})"
